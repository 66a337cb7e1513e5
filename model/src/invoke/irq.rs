//! Interrupts (03, section 7).

use super::{Call, Outcome};
use crate::cap::{deletion, derivation};
use crate::error::Error;
use crate::ipc::notification;
use crate::isa::{self, IrqNumber};
use crate::state::{Cap, SlotId, State};
use sandglass_abi::invocation;

/// Invokes the handler of `irq` (03, section 7.6).
///
/// # Errors
/// Of SetNotification; for labels that handlers do not know.
pub fn invoke_handler(s: &mut State, call: &Call, irq: IrqNumber) -> Result<Outcome, Error> {
    let slot = SlotId::Irq(irq);
    match call.label {
        invocation::IRQ_HANDLER_ACK => set_masked(s, irq, false),
        invocation::IRQ_HANDLER_SET_NOTIFICATION => {
            call.require(0, 1)?;
            let cap = call.extra_cap(s, 0).flatten();
            let cap = cap
                .filter(|cap| is_sendable(*cap))
                .ok_or(Error::InvalidCapability(0))?;
            deletion::delete(s, slot);
            derivation::insert(s, slot, cap, call.extra[0]);
        }
        invocation::IRQ_HANDLER_CLEAR => deletion::delete(s, slot),
        _ => return Err(Error::IllegalOperation),
    }
    Ok(Outcome::Done)
}

fn is_sendable(cap: Cap) -> bool {
    matches!(cap, Cap::Notification { rights, .. } if rights.write)
}

/// The device interrupt `irq` arrives: its notification is signalled, if it has one; its line stays
/// masked until it is acknowledged, or issued (03, section 7.6).
pub fn arrive(s: &mut State, irq: IrqNumber) {
    if let Some(Cap::Notification {
        object,
        badge,
        rights,
    }) = derivation::get(s, SlotId::Irq(irq))
    {
        if rights.write {
            notification::signal(s, object, badge);
        }
    }
    set_masked(s, irq, true);
}

/// Masks or unmasks the line of `irq`, if it has one of its own, which raises the interrupt for which it was programmed
/// last (03, section 7).
pub fn set_masked(s: &mut State, irq: IrqNumber, masked: bool) {
    let Some(pin) = s
        .irqs
        .get(&irq)
        .and_then(|line| isa::irq::pin_of(*line, irq))
    else {
        return;
    };
    if s.devices.routes.get(&pin) != Some(&irq) {
        return;
    }
    if masked {
        s.devices.masked.insert(pin);
    } else {
        s.devices.masked.remove(&pin);
    }
}
