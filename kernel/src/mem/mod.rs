//! Memory: typed references to kernel objects, and physical memory.
//!
//! The only part of the kernel besides `arch/` that contains `unsafe`. What it guarantees:
//!
//! * Every reference to a kernel object derives from the one base pointer of its machine
//!   ([`crate::arch::Platform::base`]).
//! * A [`Ref`] is minted only for memory that an untyped capability handed out for an object of
//!   that type ([`objects::region`]), or taken from a word into which a `Ref` of that type was packed
//!   ([`Tagged`], [`Packed`], [`Branch`]). No safe function turns a number into a reference.
//! * Object fields are `Cell`s and no `Sync` crosses the kernel: shared borrows may alias, and
//!   none survives reclamation of the memory, because reclaiming takes `&mut Memory`.
//! * User memory is only read and written by raw copies of words ([`user`]; in a kernel with traces
//!   also `log`).
//!
//! What these rest on outside of this room: `cap/` keeps each capability's memory to itself (it
//! copies words only by derivation, and never lowers the watermark of untyped memory), and calls
//! [`objects::region::reclaim`] only through Retype, for memory without children.
//!
//! That a stored handle is not stale is the deletion invariant: the last capability to an object
//! goes only after every field that names the object has been cleared.

mod branch;
mod handle;
#[cfg(feature = "trace")]
mod log;
mod memory;
pub mod objects;
mod packed;
mod per_core;
mod slot;
mod span;
mod tagged;
pub mod user;

pub use crate::arch::PhysAddr;
pub use branch::{Branch, Fork, Forked, Key};
pub use handle::Ref;
#[cfg(feature = "trace")]
pub use log::Log;
pub use memory::Memory;
pub use packed::Packed;
pub use per_core::PerCore;
pub use slot::Slot;
pub use span::{CNodeWord, PairBeginning, PairWord, Span};
pub use tagged::{ControlKind, FixedSize, Kind, Object, Tagged, Zeroed};
