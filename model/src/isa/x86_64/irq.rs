//! Which interrupts there are: those of pins, and messages (03, sections 7.1 and 7.2).

use super::{IrqNumber, Pin};
use crate::cap::{derivation, lookup};
use crate::error::Error;
use crate::invoke::irq::set_masked;
use crate::invoke::{Call, Outcome};
use crate::state::{Cap, Irq, State};
use sandglass_abi::invocation::{self, x86_64};
use sandglass_abi::vspace::x86_64::{IRQ_USER_OFFSET, MAX_IRQ_VECTOR};

/// Invokes the control capability: an interrupt is issued.
///
/// # Errors
/// In the order of 03, sections 7.1 and 7.2.
pub fn invoke_control(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    match call.label {
        invocation::IRQ_CONTROL_GET => {
            call.require(3, 1)?;
            // There are I/O APICs, whose interrupts have a call of their own.
            Err(Error::IllegalOperation)
        }
        x86_64::IRQ_CONTROL_GET_IOAPIC => issue(s, call, pin_argument),
        x86_64::IRQ_CONTROL_GET_MSI => issue(s, call, message_of),
        _ => Err(Error::IllegalOperation),
    }
}

/// Issues the interrupt that `line_of` reads from words 2 to 5 (03, section 7.2).
fn issue(
    s: &mut State,
    call: &Call,
    line_of: fn(&State, [u64; 4]) -> Result<Irq, Error>,
) -> Result<Outcome, Error> {
    call.require(7, 1)?;
    let vector = call.words[6];
    require_at_most(vector, MAX_IRQ_VECTOR)?;
    let number = (vector + IRQ_USER_OFFSET) as IrqNumber;
    if s.irqs.contains_key(&number) {
        return Err(Error::RevokeFirst);
    }
    let root = call.extra_cap(s, 0).flatten();
    let slot = lookup::of_operation(s, root, call.words[0], call.words[1], false)?;
    if derivation::get(s, slot).is_some() {
        return Err(Error::DeleteFirst);
    }
    let line = line_of(s, [2, 3, 4, 5].map(|i| call.words[i]))?;

    // An interrupt has one line: the one that it was issued for last.
    s.devices.routes.retain(|_, other| *other != number);
    s.irqs.insert(number, line);
    if let Irq::Pin { ioapic, pin, .. } = line {
        s.devices.routes.insert((ioapic, pin), number);
    }
    set_masked(s, number, false);
    derivation::insert(s, slot, Cap::IrqHandler { irq: number }, call.slot);
    Ok(Outcome::Done)
}

/// The pin of an I/O APIC: which, pin, level, polarity.
fn pin_argument(s: &State, [ioapic, pin, level, polarity]: [u64; 4]) -> Result<Irq, Error> {
    let last = (s.devices.ioapics.len() as u64)
        .checked_sub(1)
        .ok_or(Error::IllegalOperation)?;
    require_at_most(ioapic, last)?;
    let pins = s.devices.ioapics[ioapic as usize];
    require_at_most(pin, u64::from(pins) - 1)?;
    require_at_most(level, 1)?;
    require_at_most(polarity, 1)?;
    let (ioapic, pin) = (ioapic as u8, pin as u8);
    Ok(Irq::Pin {
        ioapic,
        pin,
        level: level == 1,
        active_low: polarity == 1,
    })
}

/// A message of a PCI function: bus, device, function, handle.
fn message_of(_: &State, [bus, device, function, _]: [u64; 4]) -> Result<Irq, Error> {
    require_at_most(bus, 255)?;
    require_at_most(device, 31)?;
    require_at_most(function, 7)?;
    Ok(Irq::Message)
}

fn require_at_most(value: u64, max: u64) -> Result<(), Error> {
    if value > max {
        return Err(Error::Range { min: 0, max });
    }
    Ok(())
}

/// The pin of `line`; messages have none, and are never masked.
pub fn pin_of(line: Irq, _: IrqNumber) -> Option<Pin> {
    match line {
        Irq::Pin { ioapic, pin, .. } => Some((ioapic, pin)),
        _ => None,
    }
}
