//! The ABI of x86_64: what user level sees of the architecture, and nothing of the machine below. It is
//! the interface that every architecture's `abi` has for the rest of the kernel:
//!
//! * [`context`]: the registers of a thread, by role; [`exception`]: what a processor exception is to it.
//! * [`debugging`]: what is watched of a thread; [`debug_fault`]: the messages about it.
//! * [`kind`], [`cap`], [`Mapping`]: the kinds of capability that it adds, and what copying
//!   and deriving them means.
//! * [`object`]: the layouts of their objects, and [`State`], what a kernel has once.
//! * [`space`]: address spaces, from a thread to the machine.
//! * [`invoke`]: invocations of its kinds, of frames, and of IRQ control; the end of its objects.
//! * [`retype`]: what else untyped memory becomes.
//! * [`boot`]: what the root task is given, and told.
//! * [`clock`]: the unit in which the clock's frequency is told, and the timer's precision.
//! * [`devices`]: what it needs of a machine.

pub mod boot;
pub mod cap;
pub mod clock;
pub mod context;
#[cfg(feature = "hardware-debug")]
pub mod debug_fault;
#[cfg(feature = "hardware-debug")]
pub mod debugging;
pub mod devices;
pub mod exception;
pub mod firmware;
pub mod invoke;
pub mod kind;
pub mod mapping;
pub mod object;
pub mod pte;
pub mod retype;
pub mod space;

#[cfg(not(feature = "hardware-debug"))]
pub use crate::arch::{no_debug_fault as debug_fault, no_debugging as debugging};
pub use devices::{Devices, Line};
pub use exception::Exception;
pub use mapping::Mapping;
pub use object::State;

use crate::arch::PhysAddr;

/// What names an address space to the machine: its root table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space(PhysAddr);

impl Space {
    /// No address space.
    pub const NONE: Self = Space(PhysAddr::new(0));

    pub const fn new(root: PhysAddr) -> Self {
        Space(root)
    }

    /// Its root table.
    pub const fn root(self) -> PhysAddr {
        self.0
    }
}

/// Number of an IRQ.
pub type Irq = u8;

/// Highest number of an IRQ (03, section 7).
pub const MAX_IRQ: u64 = sandglass_abi::vspace::x86_64::MAX_IRQ;

/// End of the user addresses: the first that is none.
pub const USER_TOP_EXCLUSIVE: u64 = sandglass_abi::vspace::x86_64::USER_TOP_EXCLUSIVE;
