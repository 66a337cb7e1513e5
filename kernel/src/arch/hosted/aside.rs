//! What straight lines seldom call, as on the bare machine ([`arch/aside.rs`](../../aside.rs)), where these keep registers.

pub use crate::arch::spaces::switch_anew;
pub use crate::time::schedule::is_due_from;
