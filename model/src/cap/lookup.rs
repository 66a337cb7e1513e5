//! Capability addresses (02, section 4).

use crate::error::Error;
use crate::state::{Cap, LookupFailure, SlotId, State, ThreadId};

/// The slot that `cptr` names in the space of `thread`: a system-call lookup.
pub fn of_syscall(s: &State, thread: ThreadId, cptr: u64) -> Result<SlotId, LookupFailure> {
    let _ = (s, thread, cptr);
    todo!("model-caps")
}

/// The slot that `index` and `depth` name below `root`: a lookup of a CNode operation. `None` is a null root.
pub fn of_operation(
    s: &State,
    root: Option<Cap>,
    index: u64,
    depth: u64,
    is_source: bool,
) -> Result<SlotId, Error> {
    let _ = (s, root, index, depth, is_source);
    todo!("model-caps")
}
