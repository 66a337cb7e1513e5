//! The derivation lists (02, section 5).

use crate::state::{Cap, SlotId, State};

/// The capability in `slot`; `None` if it is empty.
pub fn get(s: &State, slot: SlotId) -> Option<Cap> {
    let _ = (s, slot);
    todo!("model-caps")
}

/// Puts `cap`, derived from the one in `source`, into the empty `slot` (02, section 5.1).
pub fn insert(s: &mut State, slot: SlotId, cap: Cap, source: SlotId) {
    let _ = (s, slot, cap, source);
    todo!("model-caps")
}

/// Puts `cap`, the first to a new object, into the empty `slot`, as a child of the one in `parent` (02, section 5.1).
pub fn insert_original(s: &mut State, slot: SlotId, cap: Cap, parent: SlotId) {
    let _ = (s, slot, cap, parent);
    todo!("model-caps")
}

/// Changes the capability in `slot`; its place and flags stay.
pub fn replace(s: &mut State, slot: SlotId, cap: Cap) {
    let _ = (s, slot, cap);
    todo!("model-caps")
}

/// Moves what is in `from` to the empty `to`, with its place, as `cap` (02, section 5.1).
pub fn move_to(s: &mut State, from: SlotId, to: SlotId, cap: Cap) {
    let _ = (s, from, to, cap);
    todo!("model-caps")
}

/// Whether the next in the list is a child (02, section 5.3).
pub fn has_children(s: &State, slot: SlotId) -> bool {
    let _ = (s, slot);
    todo!("model-caps")
}

/// Whether no other capability names the object (02, section 5.3).
pub fn is_final(s: &State, slot: SlotId) -> bool {
    let _ = (s, slot);
    todo!("model-caps")
}
