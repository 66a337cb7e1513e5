//! CNode operations (02, section 6).

use super::{Call, Outcome};
use crate::error::Error;
use crate::state::State;

/// Invokes a CNode.
pub fn invoke(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    let _ = (s, call);
    todo!("model-caps")
}
