//! aarch64: its ABI, which the hosted machine speaks as well if it is told to; the machine as a value; and the way from
//! the processor into the kernel and back.

pub mod abi;
#[cfg(target_os = "none")]
pub mod entry;
#[cfg(not(target_os = "none"))]
pub mod hosted;
pub mod machine;
