//! The machine as a value: interrupt controllers, clock, address spaces, serial line. The pure parts (clock
//! arithmetic, ACPI tables, memory types) are compiled everywhere, the rest only on the bare target.

pub mod acpi;
#[cfg(test)]
pub(super) mod bytes;
pub mod clock;
#[cfg(any(target_os = "none", test))]
pub(super) mod memory_types;
pub mod rate;
pub mod speculation;

#[cfg(target_os = "none")]
pub(super) mod apic;
#[cfg(target_os = "none")]
pub(in crate::arch) mod aside;
#[cfg(target_os = "none")]
pub(super) mod barriers;
#[cfg(target_os = "none")]
pub(in crate::arch) mod core_data;
#[cfg(target_os = "none")]
pub(in crate::arch) mod cpu;
#[cfg(target_os = "none")]
pub(in crate::arch) mod layout;
#[cfg(target_os = "none")]
pub(super) mod machine_check;
#[cfg(target_os = "none")]
pub(super) mod mtrr;
#[cfg(target_os = "none")]
pub(super) mod paging;
#[cfg(target_os = "none")]
pub mod platform;
#[cfg(all(target_os = "none", feature = "debug"))]
pub(super) mod screen;
#[cfg(target_os = "none")]
pub(super) mod serial;
#[cfg(target_os = "none")]
pub(super) mod vectors;
#[cfg(target_os = "none")]
pub(super) mod window;
#[cfg(target_os = "none")]
pub mod words;
