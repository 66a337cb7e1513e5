//! Untyped memory (03, section 3).

use super::{Call, Outcome};
use crate::error::Error;
use crate::state::State;

/// Invokes untyped memory.
pub fn invoke(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    let _ = (s, call);
    todo!("model-caps")
}
