//! Faults as messages (05).

use crate::state::{Cap, Fault, State, ThreadId};

/// `thread` faults (05, section 3).
pub fn raise(s: &mut State, thread: ThreadId, fault: Fault) {
    let _ = (s, thread, fault);
    todo!("model-ipc")
}

/// The timeout handler of `thread` is told, which it has (05, section 4).
pub fn raise_timeout(s: &mut State, thread: ThreadId) {
    let _ = (s, thread);
    todo!("model-ipc")
}

/// Whether `cap` may be a handler (05, section 5); `None` is the null capability.
pub fn is_valid_handler(cap: Option<Cap>) -> bool {
    let _ = (cap,);
    todo!("model-ipc")
}
