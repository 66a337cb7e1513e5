//! Threads stop, resume, and leave what they wait for (04, section 10).

use crate::state::{State, ThreadId};

/// Suspends `thread` (04, section 10).
pub fn suspend(s: &mut State, thread: ThreadId) {
    let _ = (s, thread);
    todo!("model-time")
}

/// Resumes `thread` (04, section 10).
pub fn resume(s: &mut State, thread: ThreadId) {
    let _ = (s, thread);
    todo!("model-time")
}

/// `thread` leaves whatever it waits for, and is inactive; its fault is cleared (04, sections 7.5
/// and 10).
pub fn cancel_ipc(s: &mut State, thread: ThreadId) {
    let _ = (s, thread);
    todo!("model-time")
}
