//! Which interrupts there are: those of the GIC, and signals of those that software generates (03, sections 7.1 and 7.3 to
//! 7.5).

use super::{IrqNumber, Pin};
use crate::cap::{derivation, lookup};
use crate::error::Error;
use crate::invoke::irq::set_masked;
use crate::invoke::{Call, Outcome};
use crate::state::{Cap, Irq, SlotId, State};
use sandglass_abi::invocation::{self, aarch64};
use sandglass_abi::vspace::aarch64::{FIRST_SPI, IRQ_TIMER, MAX_IRQ, MAX_SGI_TARGET_GICV2, SGIS};

/// Invokes the control capability: an interrupt is issued.
///
/// # Errors
/// In the order of 03, sections 7.1 and 7.3 to 7.5.
pub fn invoke_control(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    let one = s.cores.len() == 1;
    match call.label {
        invocation::IRQ_CONTROL_GET => {
            call.require(3, 1)?;
            let id = id_of(call)?;
            issue(s, call, id, 0, None, [call.words[1], call.words[2]])
        }
        aarch64::IRQ_CONTROL_GET_TRIGGER => {
            call.require(4, 1)?;
            let id = id_of(call)?;
            if !one && id < FIRST_SPI {
                return Err(Error::IllegalOperation);
            }
            let edge = Some(call.words[1] != 0);
            issue(s, call, id, 0, edge, [call.words[2], call.words[3]])
        }
        aarch64::IRQ_CONTROL_ISSUE_SGI_SIGNAL if one => issue_sgi(s, call),
        aarch64::IRQ_CONTROL_GET_TRIGGER_CORE if !one => {
            // What is not there is told (docs, deliberate difference 16).
            call.require(5, 1)?;
            let id = id_of(call)?;
            let core = call.words[4];
            if core >= s.cores.len() as u64 {
                return Err(Error::InvalidArgument(4));
            }
            let edge = Some(call.words[1] != 0);
            let place = [call.words[2], call.words[3] & 0xff];
            issue(s, call, id, core as u8, edge, place)
        }
        _ => Err(Error::IllegalOperation),
    }
}

/// The number of an interrupt, word 0.
fn id_of(call: &Call) -> Result<u64, Error> {
    require_at_most(call.words[0], MAX_IRQ)?;
    Ok(call.words[0])
}

/// The kernel's number of the interrupt `id` of `core`: the private ones of each core come first (06, section 7).
fn number(s: &State, id: u64, core: u8) -> IrqNumber {
    let others = s.cores.len() as u64 - 1;
    let before = if id < FIRST_SPI {
        u64::from(core)
    } else {
        others
    };
    (FIRST_SPI * before + id) as IrqNumber
}

/// Issues the interrupt `id`; its handler goes where `place`, index and depth, says.
fn issue(
    s: &mut State,
    call: &Call,
    id: u64,
    core: u8,
    edge: Option<bool>,
    place: [u64; 2],
) -> Result<Outcome, Error> {
    let number = number(s, id, core);
    let is_reserved = id == IRQ_TIMER || (s.cores.len() > 1 && id <= 1);
    if is_reserved || s.irqs.contains_key(&number) {
        return Err(Error::RevokeFirst);
    }
    let slot = empty_slot(s, call, place)?;
    let line = Irq::Gic {
        id: id as u16,
        core,
        edge,
    };
    s.irqs.insert(number, line);
    s.devices.routes.insert(number, number);
    set_masked(s, number, false);
    derivation::insert(s, slot, Cap::IrqHandler { irq: number }, call.slot);
    Ok(Outcome::Done)
}

/// 03, section 7.5.
fn issue_sgi(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    call.require(4, 1)?;
    let (sgi, target) = (call.words[0], call.words[1]);
    require_at_most(sgi, SGIS - 1)?;
    if target > MAX_SGI_TARGET_GICV2 {
        return Err(Error::InvalidArgument(1));
    }
    let slot = empty_slot(s, call, [call.words[2], call.words[3]])?;
    let (sgi, target) = (sgi as u8, target as u32);
    derivation::insert(s, slot, Cap::SgiSignal { sgi, target }, call.slot);
    Ok(Outcome::Done)
}

fn empty_slot(s: &State, call: &Call, [index, depth]: [u64; 2]) -> Result<SlotId, Error> {
    let root = call.extra_cap(s, 0).flatten();
    let slot = lookup::of_operation(s, root, index, depth, false)?;
    match derivation::get(s, slot) {
        Some(_) => Err(Error::DeleteFirst),
        None => Ok(slot),
    }
}

fn require_at_most(value: u64, max: u64) -> Result<(), Error> {
    if value > max {
        return Err(Error::Range { min: 0, max });
    }
    Ok(())
}

/// What raises `irq`: itself.
pub fn pin_of(_: Irq, irq: IrqNumber) -> Option<Pin> {
    Some(irq)
}
