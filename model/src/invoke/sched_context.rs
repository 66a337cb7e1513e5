//! Scheduling contexts (03, section 6.2).

use super::{Call, Outcome};
use crate::error::Error;
use crate::state::{ContextId, State};

/// Invokes `context`.
pub fn invoke(s: &mut State, call: &Call, context: ContextId) -> Result<Outcome, Error> {
    let _ = (s, call, context);
    todo!("model-time")
}
