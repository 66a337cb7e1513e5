//! The objects that aarch64 adds, and what a kernel has once of it.

pub mod asid;
pub mod paging;
pub mod table;

use self::asid::{AsidPool, AsidTable};
use self::paging::{PageTable, VSpace};
use crate::arch::abi::devices::Maintenance;
use crate::mem::{FixedSize, Kind, Object, PhysAddr, Zeroed};

macro_rules! objects {
    ($($type:ident),* $(,)?) => {
        $(
            // SAFETY: each type has the kind of its own name, so kinds are not shared; all are aligned
            // to 4 KiB, in untyped memory, which lies below 2^47.
            unsafe impl Object for $type {
                const KIND: Kind = Kind::$type;
            }

            const _: () = assert!(align_of::<$type>() == 4096);

            impl FixedSize for $type {}

            // SAFETY: entries are words; a zeroed one is absent, or names nothing.
            unsafe impl Zeroed for $type {}
        )*
    };
}

objects!(PageTable, VSpace, AsidPool);

/// How far a preempted cache maintenance has come: all that it is about, and where the next step begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    pub work: Work,
    /// Bytes that are done.
    pub done: u64,
}

/// A cache maintenance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    pub what: Maintenance,
    pub start: PhysAddr,
    pub bytes: u64,
}

/// What a kernel has once of this architecture.
pub struct State {
    pub asids: AsidTable,
}

impl State {
    pub const fn new() -> Self {
        State {
            asids: AsidTable::new(),
        }
    }
}
