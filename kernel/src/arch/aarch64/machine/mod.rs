//! The machine as a value, and what it is made of: interrupt controller, clock, address spaces, serial port. The pure
//! parts are compiled everywhere, the rest only on the bare
//! target.

pub mod change;
pub mod layout;
pub mod loaded;

#[cfg(target_os = "none")]
pub mod aside;
#[cfg(target_os = "none")]
pub mod cache;
#[cfg(target_os = "none")]
pub mod core_data;
#[cfg(target_os = "none")]
pub mod cpu;
#[cfg(target_os = "none")]
mod debugger;
#[cfg(target_os = "none")]
pub mod firmware;
#[cfg(target_os = "none")]
pub mod gic;
#[cfg(target_os = "none")]
mod memory_functions;
#[cfg(target_os = "none")]
mod mmio;
#[cfg(target_os = "none")]
pub mod paging;
#[cfg(target_os = "none")]
pub mod platform;
#[cfg(target_os = "none")]
pub mod serial;
#[cfg(target_os = "none")]
pub mod tlb;
#[cfg(target_os = "none")]
pub mod words;
