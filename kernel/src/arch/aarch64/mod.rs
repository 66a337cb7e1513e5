//! aarch64: the machine as a value, and the way from the processor into the kernel and back.

pub mod machine;
