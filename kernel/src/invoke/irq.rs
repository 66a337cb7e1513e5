//! Interrupts: who may handle them, and whom they wake (03, section 7).

use sandglass_abi::invocation as label;
use sandglass_abi::invocation::x86_64 as arch_label;
use sandglass_abi::vspace::x86_64::{IRQ_USER_OFFSET, MAX_IRQ_VECTOR};

use super::error::Error;
use super::{deletion, finalise, Invocation, Outcome};
use crate::arch::{Line, Platform};
use crate::cap::deletion::Remainder;
use crate::cap::{derivation, Capability};
use crate::ipc::notification;
use crate::mem::{Ref, Slot};
use crate::Kernel;

/// A device interrupt: signals its notification; the line stays masked until it is acknowledged.
pub fn interrupt(k: &Kernel, irq: u8) {
    let Some(line) = k.irqs.line(irq).get() else {
        return;
    };
    k.machine.set_masked(line, irq, true);
    let Some(slot) = k.irqs.slot(irq) else { return };
    if let Some(cap) = slot.at(k).cap().notification() {
        if cap.rights.write() {
            notification::signal(k, cap.object, cap.badge);
        }
    }
}

/// A checked issue of an IRQ handler.
#[derive(Clone, Copy)]
struct Issue {
    control: Ref<Slot>,
    slot: Ref<Slot>,
    irq: u8,
    line: Line,
}

/// Invokes IRQ control.
pub fn invoke_control(k: &Kernel, call: &Invocation) -> Result<Outcome, Error> {
    let issue = decode_control(k, call)?;
    Ok(commit_control(k, issue))
}

fn decode_control(k: &Kernel, call: &Invocation) -> Result<Issue, Error> {
    if call.label == label::IRQ_CONTROL_GET {
        // Lines by number are those of the legacy controller, which is disabled (03, section 7.1).
        call.need(3)?;
        call.extra_cap(k, 0)?;
        return Err(Error::IllegalOperation);
    }
    let is_pin = call.label == arch_label::IRQ_CONTROL_GET_IOAPIC;
    if !is_pin && call.label != arch_label::IRQ_CONTROL_GET_MSI {
        return Err(Error::IllegalOperation);
    }
    call.need(7)?;
    let root = call.extra_cap(k, 0)?;
    let vector = check(call.word(k, 6), MAX_IRQ_VECTOR)?;
    let irq = (vector + IRQ_USER_OFFSET) as u8;
    if k.irqs.line(irq).get().is_some() {
        return Err(Error::RevokeFirst);
    }
    let slot = call.empty_slot(k, root, call.word(k, 0), call.word(k, 1))?;
    let line = if is_pin {
        decode_pin(k, call)?
    } else {
        decode_msi(k, call)?
    };
    Ok(Issue {
        control: call.slot,
        slot,
        irq,
        line,
    })
}

fn check(value: u64, max: u64) -> Result<u64, Error> {
    if value > max {
        return Err(Error::Range { min: 0, max });
    }
    Ok(value)
}

fn decode_pin(k: &Kernel, call: &Invocation) -> Result<Line, Error> {
    let ioapics = k.machine.ioapics();
    let last = ioapics.checked_sub(1).ok_or(Error::IllegalOperation)?;
    let ioapic = check(call.word(k, 2), u64::from(last))? as u8;
    let pins = k.machine.ioapic_pins(ioapic);
    let pin = check(call.word(k, 3), u64::from(pins.saturating_sub(1)))? as u8;
    let level = check(call.word(k, 4), 1)? == 1;
    let active_low = check(call.word(k, 5), 1)? == 1;
    Ok(Line::IoApic {
        ioapic,
        pin,
        level,
        active_low,
    })
}

/// The device's address is only checked: the user programs the device.
fn decode_msi(k: &Kernel, call: &Invocation) -> Result<Line, Error> {
    check(call.word(k, 2), 255)?;
    check(call.word(k, 3), 31)?;
    check(call.word(k, 4), 7)?;
    Ok(Line::Msi)
}

/// Issues the handler and lets the line through.
fn commit_control(k: &Kernel, issue: Issue) -> Outcome {
    let Issue {
        control,
        slot,
        irq,
        line,
    } = issue;
    k.irqs.line(irq).set(Some(line));
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
pub fn invoke_handler(k: &Kernel, call: &Invocation) -> Result<Outcome, Error> {
    let operation = decode_handler(k, call)?;
    Ok(commit_handler(k, operation))
}

fn decode_handler(k: &Kernel, call: &Invocation) -> Result<HandlerOperation, Error> {
    let irq = call.cap.irq().ok_or(Error::InvalidCapability(0))?;
    match call.label {
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

fn commit_handler(k: &Kernel, operation: HandlerOperation) -> Outcome {
    match operation {
        HandlerOperation::Ack(irq) => {
            if let Some(line) = k.irqs.line(irq).get() {
                k.machine.set_masked(line, irq, false);
            }
        }
        HandlerOperation::SetNotification { irq, source } => {
            let Some(slot) = k.irqs.slot(irq) else {
                return Outcome::Done;
            };
            let cap = source.at(k).cap();
            if deletion::delete(k, slot) == deletion::Progress::Preempted {
                return Outcome::Preempted;
            }
            if source.at(k).cap() == cap {
                derivation::insert_copy(k, source, slot, cap);
            }
        }
        HandlerOperation::Clear(irq) => {
            let Some(slot) = k.irqs.slot(irq) else {
                return Outcome::Done;
            };
            if deletion::delete(k, slot) == deletion::Progress::Preempted {
                return Outcome::Preempted;
            }
        }
    }
    Outcome::Done
}

/// The last capability to the handler of `irq` goes: one step towards deleting its notification
/// capability, then the line is masked and may be issued again.
pub fn release(k: &Kernel, irq: u8) -> Remainder {
    if let Some(slot) = k.irqs.slot(irq) {
        if let Some(cap) = slot.at(k).cap().notification() {
            let emptied = !derivation::is_final(k, slot)
                || matches!(
                    finalise::empty_notification(k, cap.object),
                    Remainder::Nothing
                );
            if !emptied {
                return Remainder::Unfinished;
            }
            derivation::remove(k, slot);
        }
    }
    if let Some(line) = k.irqs.line(irq).get() {
        k.machine.set_masked(line, irq, true);
        k.irqs.line(irq).set(None);
    }
    Remainder::Nothing
}
