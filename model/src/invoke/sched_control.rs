//! Control of scheduling (03, section 6.1).

use super::{Call, Outcome};
use crate::error::Error;
use crate::state::State;

/// Invokes the control capability.
pub fn invoke(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    let _ = (s, call);
    todo!("model-time")
}
