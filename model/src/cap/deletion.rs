//! Deletion and revocation (02, section 7), without preemption.

use crate::state::{SlotId, State};

/// Deletes the capability in `slot`, if any (02, section 7.1).
pub fn delete(s: &mut State, slot: SlotId) {
    let _ = (s, slot);
    todo!("model-caps")
}

/// Deletes all children of the capability in `slot` (02, section 7.2).
pub fn revoke(s: &mut State, slot: SlotId) {
    let _ = (s, slot);
    todo!("model-caps")
}
