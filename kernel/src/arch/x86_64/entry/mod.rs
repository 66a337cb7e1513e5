//! Entry and exit, the turns of cores, and the start of the machine. The pure parts (what the loader
//! tells) are compiled everywhere, the rest only on the bare target.

pub mod loader;
pub mod multiboot2;
pub mod start_info;

#[cfg(target_os = "none")]
mod clocks;
#[cfg(target_os = "none")]
mod code;
#[cfg(target_os = "none")]
mod cores;
#[cfg(all(target_os = "none", feature = "hardware-debug"))]
mod debugging;
#[cfg(target_os = "none")]
mod descriptors;
#[cfg(target_os = "none")]
pub mod fatal;
#[cfg(target_os = "none")]
mod handlers;
#[cfg(target_os = "none")]
mod legacy;
#[cfg(target_os = "none")]
mod pvh;
#[cfg(target_os = "none")]
mod same_time;
#[cfg(target_os = "none")]
mod start;
#[cfg(target_os = "none")]
mod start_cores;

#[cfg(target_os = "none")]
pub use handlers::leave;
