//! Messages: registers and the IPC buffer (01, sections 2 to 4).

use crate::state::{State, ThreadId};

/// Writes a message of `label` and `words` with badge 0 to `thread`, as the kernel does (01,
/// section 6; 04, section 9.2).
pub fn write(s: &mut State, thread: ThreadId, label: u64, words: &[u64]) {
    let _ = (s, thread, label, words);
    todo!("model-ipc")
}
