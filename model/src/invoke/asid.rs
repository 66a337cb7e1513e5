//! Address-space identifiers (03, sections 8.4 and 8.5; 07, section 8).

use super::{Call, Outcome};
use crate::error::Error;
use crate::state::State;

/// Invokes the control capability.
pub fn invoke_control(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    let _ = (s, call);
    todo!("model-caps")
}

/// Invokes a pool.
pub fn invoke_pool(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    let _ = (s, call);
    todo!("model-caps")
}
