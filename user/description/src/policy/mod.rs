//! What the policies of a system are told: a table for each, which the builder makes of the
//! description and the policy's component finds as memory.
//!
//! Tables name what the component has by the names of its environment, and threads, budgets and
//! levels by number. Each module is named like the policy's library in `user/policies`.

pub mod allocations;
pub mod edf;
pub mod log;
pub mod mc_ipc;
pub mod modes;
pub mod partitions;
pub mod sharing;
pub mod timeouts;
pub mod timers;

use alloc::vec::Vec;

use serde::{de::DeserializeOwned, Serialize};

/// What a policy is told, of one kind.
pub trait Table: Serialize + DeserializeOwned {
    /// Name under which the component finds its table, unless there are several.
    const NAME: &'static str;

    /// The table as the builder packs it.
    ///
    /// # Errors
    /// Never for the tables of this crate: they have no maps of unknown length.
    fn encode(&self) -> Result<Vec<u8>, postcard::Error> {
        postcard::to_allocvec(self)
    }

    /// Reads an encoded table; what is behind it is ignored.
    ///
    /// # Errors
    /// `bytes` is no table of this kind: builder and component were made of different sources.
    fn decode(bytes: &[u8]) -> Result<Self, postcard::Error> {
        postcard::from_bytes(bytes)
    }
}
