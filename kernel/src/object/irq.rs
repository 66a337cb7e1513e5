//! Interrupts: who may handle them, and whom they wake (03, section 7).
//!
//! Invariant: a line is recorded exactly while its IRQ is issued; the notification capability of
//! an IRQ is an ordinary member of the derivation list, in a slot that belongs to the kernel.

#[cfg(not(target_os = "none"))]
mod inspect;

use crate::Kernel;
use core::cell::Cell;

use crate::arch::abi::{Irq, Line, MAX_IRQ};
use crate::mem::{Ref, Slot, Span};

const IRQS: usize = MAX_IRQ as usize + 1;

/// log2 of the number of slots that the kernel needs for the notifications of IRQs.
pub const IRQ_SLOTS_RADIX: u8 = IRQS.trailing_zeros() as u8;

/// The state of all IRQs.
pub struct IrqTable {
    lines: [Cell<Option<Line>>; IRQS],
    slots: Cell<Option<Span>>,
}

impl IrqTable {
    pub const fn new() -> Self {
        IrqTable {
            lines: [const { Cell::new(None) }; IRQS],
            slots: Cell::new(None),
        }
    }

    /// Gives the table its slots, at boot.
    pub fn set_slots(&self, _: &Kernel, slots: Span) {
        self.slots.set(Some(slots));
    }

    /// Where `irq` comes from; `None` while it is not issued.
    pub fn line(&self, irq: Irq) -> Option<Line> {
        self.lines[usize::from(irq) & (IRQS - 1)].get()
    }

    /// `irq` comes from `line` from now on; `None` takes it back.
    pub fn set_line(&self, _: &Kernel, irq: Irq, line: Option<Line>) {
        self.lines[usize::from(irq) & (IRQS - 1)].set(line);
    }

    /// The slot of the notification that `irq` signals.
    pub fn slot(&self, irq: Irq) -> Option<Ref<Slot>> {
        self.slots.get()?.slot(u64::from(irq) & MAX_IRQ)
    }
}
