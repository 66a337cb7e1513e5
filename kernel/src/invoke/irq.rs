//! Interrupts: who may handle them, and whom they wake (03, section 7).

use sandglass_abi::invocation as label;

use super::deletion::{Deletion, Install};
use super::{finalise, Error, Invocation, Outcome, Stop};
use crate::arch::abi::{Irq, Line};
use crate::arch::Platform;
use crate::cap::{derivation, Capability};
use crate::ipc::notification;
use crate::mem::{Ref, Slot};
use crate::time::{Preempted, Turn};
use crate::{Kernel, View};

/// A device interrupt: signals its notification; the line stays masked until it is acknowledged.
pub fn interrupt(k: &Kernel, turn: &Turn, irq: Irq) {
    let Some(line) = k.irqs.line(irq) else {
        return;
    };
    k.machine.mask_taken(line, irq);
    let Some(slot) = k.irqs.slot(irq) else { return };
    if let Some(cap) = slot.at(k).cap().notification() {
        if cap.rights.write() {
            notification::signal(k, turn, cap.object, cap.badge);
        }
    }
}

/// A checked issue of an IRQ handler.
pub struct Issue {
    pub control: Ref<Slot>,
    pub slot: Ref<Slot>,
    pub irq: Irq,
    pub line: Line,
}

/// Issues the handler and lets the line through.
pub fn issue(k: &Kernel, new: Issue) -> Outcome {
    k.irqs.set_line(k, new.irq, Some(new.line));
    k.machine.route(new.line, new.irq);
    derivation::insert_copy(k, new.control, new.slot, Capability::irq_handler(new.irq));
    Outcome::Done
}

/// A checked invocation of an IRQ handler.
enum HandlerOperation {
    Ack,
    /// SetNotification, and Clear.
    Install(Install),
}

/// Invokes an IRQ handler.
pub fn invoke_handler(k: &Kernel, turn: &Turn, call: &Invocation) -> Result<Outcome, Stop> {
    let irq = call.cap.irq().ok_or(Error::InvalidCapability(0))?;
    let operation = decode_handler(k, call)?;
    commit_handler(k, turn, irq, operation)?;
    Ok(Outcome::Done)
}

fn decode_handler(k: &View, call: &Invocation) -> Result<HandlerOperation, Error> {
    match call.label() {
        label::IRQ_HANDLER_ACK => Ok(HandlerOperation::Ack),
        label::IRQ_HANDLER_SET_NOTIFICATION => {
            let source = call.extra_slot(0)?;
            let cap = source.at(k).cap();
            let signals = cap.notification().is_some_and(|cap| cap.rights.write());
            Error::InvalidCapability(0).when(!signals)?;
            Ok(HandlerOperation::Install(Some((source, cap))))
        }
        label::IRQ_HANDLER_CLEAR => Ok(HandlerOperation::Install(None)),
        _ => Err(Error::IllegalOperation),
    }
}

fn commit_handler(
    k: &Kernel,
    turn: &Turn,
    irq: Irq,
    operation: HandlerOperation,
) -> Result<(), Preempted> {
    match operation {
        HandlerOperation::Ack => {
            if let Some(line) = k.irqs.line(irq) {
                k.machine.set_masked(line, irq, false);
            }
        }
        HandlerOperation::Install(what) => match k.irqs.slot(irq) {
            Some(slot) => Deletion::new().replace(k, turn, slot, what, None)?,
            None => never!("the boot gave the table its slots"),
        },
    }
    Ok(())
}

/// The last capability to the handler of `irq` goes: its notification capability is deleted,
/// then the line is masked and may be issued again.
///
/// # Errors
/// As [`Deletion::delete`].
pub fn release(
    k: &Kernel,
    turn: &Turn,
    irq: Irq,
    deletion: &mut Deletion,
) -> Result<(), Preempted> {
    if let Some(slot) = k.irqs.slot(irq) {
        if let Some(cap) = slot.at(k).cap().notification() {
            if derivation::is_final(k, slot) {
                finalise::empty_notification(k, turn, cap.object, deletion)?;
            }
            derivation::remove(k, slot);
        }
    }
    if let Some(line) = k.irqs.line(irq) {
        k.machine.set_masked(line, irq, true);
        k.irqs.set_line(k, irq, None);
    }
    Ok(())
}
