//! Interrupts (ABI 03, section 7).

use sandglass_abi::invocation;

use super::{capability, invoke_unit, Capability, Notification, Slot};
use crate::arch::label;
use crate::error::Result;

capability! {
    /// Authority to make interrupt handlers.
    IrqControl
}
capability! {
    /// One interrupt.
    IrqHandler
}

/// An IOAPIC input and how it signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoApicPin {
    pub ioapic: u64,
    pub pin: u64,
    /// Level triggered, else edge triggered.
    pub level: bool,
    pub active_low: bool,
    /// The kernel's interrupt number minus 16, 0 to 107; each can be used once.
    pub vector: u64,
}

/// A PCI function that interrupts by messages; only the vector says which messages are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageSource {
    /// 0 to 255.
    pub bus: u64,
    /// 0 to 31.
    pub device: u64,
    /// 0 to 7.
    pub function: u64,
    pub handle: u64,
    /// The kernel's interrupt number minus 16, 0 to 107; each can be used once. The device writes
    /// this plus 0x30.
    pub vector: u64,
}

impl IrqControl {
    /// Makes a handler for the interrupt `irq` and puts its capability into `destination`: on aarch64 by its number in the
    /// GIC, from 0 to 159. Not on x86_64.
    ///
    /// # Errors
    /// RevokeFirst if the interrupt is in use.
    #[inline]
    pub fn get(self, irq: u64, destination: Slot) -> Result<()> {
        let words = [irq, destination.index(), u64::from(destination.depth())];
        let caps = [destination.root().cptr()];
        invoke_unit(self.cptr(), invocation::IRQ_CONTROL_GET, words, caps)
    }

    /// As [`Self::get`], of one that no core has for itself: level triggered, or else edge triggered.
    ///
    /// # Errors
    /// RevokeFirst if the interrupt is in use.
    #[inline]
    pub fn get_trigger(self, irq: u64, level: bool, destination: Slot) -> Result<()> {
        let words = [
            irq,
            u64::from(!level),
            destination.index(),
            u64::from(destination.depth()),
        ];
        let caps = [destination.root().cptr()];
        invoke_unit(self.cptr(), label::IRQ_CONTROL_GET_TRIGGER, words, caps)
    }

    /// Makes a handler for an IOAPIC input and puts its capability into `destination`.
    ///
    /// # Errors
    /// RevokeFirst if the vector is in use.
    #[inline]
    pub fn get_ioapic(self, source: IoApicPin, destination: Slot) -> Result<()> {
        let words = [
            destination.index(),
            u64::from(destination.depth()),
            source.ioapic,
            source.pin,
            u64::from(source.level),
            u64::from(source.active_low),
            source.vector,
        ];
        let caps = [destination.root().cptr()];
        invoke_unit(self.cptr(), label::IRQ_CONTROL_GET_IOAPIC, words, caps)
    }

    /// Makes a handler for messages and puts its capability into `destination`. The device is not
    /// set.
    ///
    /// # Errors
    /// RevokeFirst if the vector is in use.
    #[inline]
    pub fn get_msi(self, source: MessageSource, destination: Slot) -> Result<()> {
        let words = [
            destination.index(),
            u64::from(destination.depth()),
            source.bus,
            source.device,
            source.function,
            source.handle,
            source.vector,
        ];
        let caps = [destination.root().cptr()];
        invoke_unit(self.cptr(), label::IRQ_CONTROL_GET_MSI, words, caps)
    }
}

impl IrqHandler {
    /// Lets the interrupt be delivered again.
    #[inline]
    pub fn ack(self) -> Result<()> {
        invoke_unit(self.cptr(), invocation::IRQ_HANDLER_ACK, [], [])
    }

    /// Sets what the interrupt signals; the capability's badge is the signal.
    #[inline]
    pub fn set_notification(self, notification: Notification) -> Result<()> {
        let caps = [notification.cptr()];
        invoke_unit(
            self.cptr(),
            invocation::IRQ_HANDLER_SET_NOTIFICATION,
            [],
            caps,
        )
    }

    /// Makes the interrupt signal nothing.
    #[inline]
    pub fn clear(self) -> Result<()> {
        invoke_unit(self.cptr(), invocation::IRQ_HANDLER_CLEAR, [], [])
    }
}
