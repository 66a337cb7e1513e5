//! The ABI of aarch64: what user level sees of the architecture, and nothing of the machine below. It is
//! the interface that every architecture's `abi` has for the rest of the kernel, as `arch/x86_64/abi` lists it.

pub mod boot;
pub mod cap;
pub mod clock;
pub mod context;
pub mod devices;
pub mod exception;
pub mod invoke;
pub mod irq;
pub mod kind;
pub mod mapping;
pub mod object;
pub mod pte;
pub mod retype;
pub mod space;

pub use crate::arch::{no_debug_fault as debug_fault, no_debugging as debugging};
pub use devices::{Devices, Line, Space};
pub use exception::Exception;
pub use irq::{Irq, MAX_IRQ};
pub use mapping::Mapping;
pub use object::State;

/// End of the user addresses: the first that is none.
pub const USER_TOP_EXCLUSIVE: u64 = sandglass_abi::vspace::aarch64::USER_TOP_EXCLUSIVE;
