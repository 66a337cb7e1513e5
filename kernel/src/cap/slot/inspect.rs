//! A look into [`Slot`].

use crate::inspect::SlotView;
use crate::mem::Slot;

impl Slot {
    /// Everything that the slot holds.
    pub fn inspect(&self) -> SlotView {
        SlotView {
            cap: self.cap(),
            prev: self.prev(),
            next: self.next(),
            revocable: self.flags().revocable(),
            first_badged: self.flags().first_badged(),
        }
    }
}
