//! The machine: entry and exit, interrupt controllers, clock, page tables of the kernel, boot. The
//! pure parts (clock arithmetic, ACPI tables, what the loader tells) are compiled everywhere, the rest
//! only on the bare target.

pub mod acpi;
#[cfg(test)]
mod bytes;
pub mod loader;
pub mod multiboot2;
pub mod rate;
pub mod start_info;
pub mod words;

#[cfg(target_os = "none")]
mod apic;
#[cfg(target_os = "none")]
mod core_data;
#[cfg(target_os = "none")]
mod cores;
#[cfg(target_os = "none")]
mod cpu;
#[cfg(target_os = "none")]
mod descriptors;
#[cfg(target_os = "none")]
mod entry;
#[cfg(target_os = "none")]
mod entry_code;
#[cfg(target_os = "none")]
pub mod fatal;
#[cfg(target_os = "none")]
mod layout;
#[cfg(target_os = "none")]
mod legacy;
#[cfg(target_os = "none")]
mod paging;
#[cfg(target_os = "none")]
pub mod platform;
#[cfg(target_os = "none")]
mod pvh;
#[cfg(target_os = "none")]
mod requests;
#[cfg(target_os = "none")]
mod same_time;
#[cfg(all(target_os = "none", feature = "debug"))]
mod screen;
#[cfg(target_os = "none")]
mod serial;
#[cfg(all(target_os = "none", feature = "spoil"))]
mod spoil;
#[cfg(target_os = "none")]
mod start;
#[cfg(target_os = "none")]
mod turn;
#[cfg(target_os = "none")]
mod vectors;
#[cfg(target_os = "none")]
mod window;
