//! Threads (03, section 4).

use super::{Call, Outcome};
use crate::error::Error;
use crate::state::{State, ThreadId};

/// Invokes `thread`.
pub fn invoke(s: &mut State, call: &Call, thread: ThreadId) -> Result<Outcome, Error> {
    let _ = (s, call, thread);
    todo!("model-ipc")
}
