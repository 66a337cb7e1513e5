//! Interrupts: who may handle them, and whom they wake (03, section 7).

use sandglass_abi::invocation as label;

use super::{deletion, finalise, Error, Invocation, Outcome};
use crate::arch::abi::{invoke as arch, Line};
use crate::arch::Platform;
use crate::cap::deletion::Remainder;
use crate::cap::{derivation, Capability};
use crate::ipc::notification;
use crate::mem::{Ref, Slot};
use crate::time::Turn;
use crate::{Kernel, View};

/// A device interrupt: signals its notification; the line stays masked until it is acknowledged.
pub fn interrupt(k: &Kernel, turn: &Turn, irq: u8) {
    let Some(line) = k.irqs.line(irq) else {
        return;
    };
    k.machine.set_masked(line, irq, true);
    let Some(slot) = k.irqs.slot(irq) else { return };
    if let Some(cap) = slot.at(k).cap().notification() {
        if cap.rights.write() {
            notification::signal(k, turn, cap.object, cap.badge);
        }
    }
}

/// A checked issue of an IRQ handler.
#[derive(Clone, Copy)]
pub struct Issue {
    pub control: Ref<Slot>,
    pub slot: Ref<Slot>,
    pub irq: u8,
    pub line: Line,
}

/// Invokes IRQ control.
pub fn invoke_control(k: &Kernel, call: &Invocation) -> Result<Outcome, Error> {
    let issue = arch::irq::decode_control(k, call)?;
    Ok(commit_control(k, issue))
}

/// Issues the handler and lets the line through.
fn commit_control(k: &Kernel, issue: Issue) -> Outcome {
    let Issue {
        control,
        slot,
        irq,
        line,
    } = issue;
    k.irqs.set_line(k, irq, Some(line));
    k.machine.route(line, irq);
    derivation::insert_copy(k, control, slot, Capability::irq_handler(irq));
    Outcome::Done
}

/// A checked invocation of an IRQ handler.
#[derive(Clone, Copy)]
enum HandlerOperation {
    Ack(u8),
    SetNotification { irq: u8, source: Ref<Slot> },
    Clear(u8),
}

/// Invokes an IRQ handler.
pub fn invoke_handler(k: &Kernel, turn: &Turn, call: &Invocation) -> Result<Outcome, Error> {
    let operation = decode_handler(k, call)?;
    Ok(commit_handler(k, turn, operation))
}

fn decode_handler(k: &View, call: &Invocation) -> Result<HandlerOperation, Error> {
    let irq = call.cap.irq().ok_or(Error::InvalidCapability(0))?;
    match call.label() {
        label::IRQ_HANDLER_ACK => Ok(HandlerOperation::Ack(irq)),
        label::IRQ_HANDLER_SET_NOTIFICATION => {
            let source = call.extra_slot(0)?;
            match source.at(k).cap().notification() {
                Some(cap) if cap.rights.write() => {}
                _ => return Err(Error::InvalidCapability(0)),
            }
            Ok(HandlerOperation::SetNotification { irq, source })
        }
        label::IRQ_HANDLER_CLEAR => Ok(HandlerOperation::Clear(irq)),
        _ => Err(Error::IllegalOperation),
    }
}

fn commit_handler(k: &Kernel, turn: &Turn, operation: HandlerOperation) -> Outcome {
    match operation {
        HandlerOperation::Ack(irq) => {
            if let Some(line) = k.irqs.line(irq) {
                k.machine.set_masked(line, irq, false);
            }
        }
        HandlerOperation::SetNotification { irq, source } => {
            let Some(slot) = k.irqs.slot(irq) else {
                never!("the boot gave the table its slots");
                return Outcome::Done;
            };
            let cap = source.at(k).cap();
            if deletion::delete(k, turn, slot) == deletion::Progress::Preempted {
                return Outcome::Preempted;
            }
            if source.at(k).cap() == cap {
                derivation::insert_copy(k, source, slot, cap);
            }
        }
        HandlerOperation::Clear(irq) => {
            let Some(slot) = k.irqs.slot(irq) else {
                never!("the boot gave the table its slots");
                return Outcome::Done;
            };
            if deletion::delete(k, turn, slot) == deletion::Progress::Preempted {
                return Outcome::Preempted;
            }
        }
    }
    Outcome::Done
}

/// The last capability to the handler of `irq` goes: one step towards deleting its notification
/// capability, then the line is masked and may be issued again.
pub fn release(k: &Kernel, turn: &Turn, irq: u8) -> Remainder {
    if let Some(slot) = k.irqs.slot(irq) {
        if let Some(cap) = slot.at(k).cap().notification() {
            let emptied = !derivation::is_final(k, slot)
                || matches!(
                    finalise::empty_notification(k, turn, cap.object),
                    Remainder::Nothing
                );
            if !emptied {
                return Remainder::Unfinished;
            }
            derivation::remove(k, slot);
        }
    }
    if let Some(line) = k.irqs.line(irq) {
        k.machine.set_masked(line, irq, true);
        k.irqs.set_line(k, irq, None);
    }
    Remainder::Nothing
}
