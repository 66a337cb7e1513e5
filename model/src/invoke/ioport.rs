//! I/O ports (03, sections 8.6 and 8.7).

use super::{Call, Outcome};
use crate::error::Error;
use crate::state::State;

/// Invokes the control capability.
pub fn invoke_control(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    let _ = (s, call);
    todo!("model-caps")
}

/// Invokes the ports `first` to `last`.
pub fn invoke(s: &mut State, call: &Call, first: u16, last: u16) -> Result<Outcome, Error> {
    let _ = (s, call, first, last);
    todo!("model-caps")
}
