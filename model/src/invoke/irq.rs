//! Interrupts (03, section 7).

use super::{Call, Outcome};
use crate::error::Error;
use crate::state::State;

/// Invokes the control capability.
pub fn invoke_control(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    let _ = (s, call);
    todo!("model-caps")
}

/// Invokes the handler of `irq`.
pub fn invoke_handler(s: &mut State, call: &Call, irq: u8) -> Result<Outcome, Error> {
    let _ = (s, call, irq);
    todo!("model-caps")
}

/// The device interrupt `irq` arrives (03, section 7.6).
pub fn arrive(s: &mut State, irq: u8) {
    let _ = (s, irq);
    todo!("model-caps")
}
