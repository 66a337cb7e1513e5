//! x86_64: its ABI, which the hosted machine speaks as well; the machine as a value; and the way from
//! the processor into the kernel and back.

pub mod abi;
pub mod entry;
pub mod machine;
