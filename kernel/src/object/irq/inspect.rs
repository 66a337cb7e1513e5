//! A look into [`IrqTable`].

use crate::arch::abi::Irq;
use crate::inspect::{IrqSlots, IrqView};
use crate::object::IrqTable;

impl IrqTable {
    /// The state of `irq`.
    pub fn inspect(&self, irq: Irq) -> IrqView {
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
