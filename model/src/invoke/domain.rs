//! Domains (03, section 6.3; 04, section 11).

use super::{Call, Outcome};
use crate::error::Error;
use crate::state::State;

/// Invokes the domain capability.
pub fn invoke(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    let _ = (s, call);
    todo!("model-time")
}
