//! IRQ control: the lines that interrupts come from (03, sections 7.1 and 7.2).

use sandglass_abi::invocation as label;
use sandglass_abi::invocation::x86_64 as arch_label;
use sandglass_abi::vspace::x86_64::{IRQ_USER_OFFSET, MAX_IRQ_VECTOR};

use crate::arch::abi::context::Context;
use crate::arch::abi::{Devices, Line};
use crate::invoke::irq::{issue, Issue};
use crate::invoke::{empty_slot, Error, Invocation, Outcome};
use crate::{Kernel, View};

/// Invokes IRQ control.
///
/// # Errors
/// The first check that failed, in the order of the ABI.
pub fn invoke_control(k: &Kernel, call: &Invocation) -> Result<Outcome, Error> {
    Ok(issue(k, decode_control(k, call)?))
}

fn decode_control(k: &View, call: &Invocation) -> Result<Issue, Error> {
    if call.label() == label::IRQ_CONTROL_GET {
        // Lines by number are those of the legacy controller, which is disabled (03, section 7.1).
        call.need(3)?;
        call.extra_cap(k, 0)?;
        return Err(Error::IllegalOperation);
    }
    let is_pin = call.label() == arch_label::IRQ_CONTROL_GET_IOAPIC;
    if !is_pin && call.label() != arch_label::IRQ_CONTROL_GET_MSI {
        return Err(Error::IllegalOperation);
    }
    call.need(7)?;
    let root = call.extra_cap(k, 0)?;
    let vector = check(call.word(k, 6), MAX_IRQ_VECTOR)?;
    let irq = (vector + IRQ_USER_OFFSET) as u8;
    if k.irqs.line(irq).is_some() {
        return Err(Error::RevokeFirst);
    }
    let slot = empty_slot(k, root, call.word(k, 0), call.word(k, 1))?;
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

/// DebugSendIPI (01, section 7), which there is on ARM only: nothing is sent.
pub fn send_ipi(_k: &Kernel, _caller: &Context) -> bool {
    false
}

fn check(value: u64, max: u64) -> Result<u64, Error> {
    Error::check_range(value, 0, max)?;
    Ok(value)
}

fn decode_pin(k: &View, call: &Invocation) -> Result<Line, Error> {
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
fn decode_msi(k: &View, call: &Invocation) -> Result<Line, Error> {
    check(call.word(k, 2), 255)?;
    check(call.word(k, 3), 31)?;
    check(call.word(k, 4), 7)?;
    Ok(Line::Msi)
}
