//! Paging structures (03, section 8.2).

use super::{Call, Outcome};
use crate::error::Error;
use crate::state::State;

/// Invokes a PDPT, page directory or page table.
pub fn invoke(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    let _ = (s, call);
    todo!("model-caps")
}
