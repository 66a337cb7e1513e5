//! A look into [`IrqTable`].

use crate::inspect::{IrqSlots, IrqView};
use crate::object::IrqTable;

impl IrqTable {
    /// The state of `irq`.
    pub fn inspect(&self, irq: u8) -> IrqView {
        IrqView {
            line: self.line(irq),
            slot: self.slot(irq),
        }
    }

    /// The slots of all interrupts.
    pub fn inspect_slots(&self) -> IrqSlots {
        self.slots.get()
    }
}
