//! x86_64: its ABI, which the hosted machine speaks as well, and the machine itself.

pub mod abi;
pub mod machine;
