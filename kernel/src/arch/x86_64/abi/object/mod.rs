//! The objects that x86_64 adds, and what a kernel has once of it.

pub mod asid;
pub mod ioport;
pub mod paging;
pub mod table;

use core::cell::Cell;

use self::asid::{AsidPool, AsidTable};
use self::ioport::PortTable;
use self::paging::{IoPageTable, PageDirectory, PageTable, Pdpt, Pml4};
use crate::mem::{FixedSize, Kind, Object, Zeroed};

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

objects!(PageTable, PageDirectory, Pdpt, Pml4, IoPageTable, AsidPool);

/// How far a preempted invocation of these has come: none is preempted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {}

/// What a kernel has once of this architecture.
pub struct State {
    pub asids: AsidTable,
    pub ports: PortTable,
    /// Whether the debug kernel has said that somebody was built for another profile.
    pub(in crate::arch) told: Cell<bool>,
}

impl State {
    pub const fn new() -> Self {
        State {
            asids: AsidTable::new(),
            ports: PortTable::new(),
            told: Cell::new(false),
        }
    }
}
