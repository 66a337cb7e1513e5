//! Untyped memory (03, section 3).

use super::{Call, Outcome};
use crate::cap::{derivation, lookup};
use crate::error::Error;
use crate::object::{self, Kind};
use crate::state::{Address, Cap, LookupFailure, SlotId, State};
use sandglass_abi::cnode::MAX_RETYPE_OBJECTS;
use sandglass_abi::invocation;

/// Invokes untyped memory.
///
/// # Errors
/// In the order of 03, section 3.
pub fn invoke(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    if call.label != invocation::UNTYPED_RETYPE {
        return Err(Error::IllegalOperation);
    }
    call.require(6, 1)?;
    let kind = Kind::of(call.words[0], call.words[1])?;
    let slots = destination(s, call)?;
    let number = slots.len() as u64;

    let untyped = Untyped::of(call.cap);
    let used = if derivation::has_children(s, call.slot) {
        untyped.watermark
    } else {
        0
    };
    let free = untyped.size() - used;
    if free >> kind.bits() < number {
        return Err(Error::NotEnoughMemory(free));
    }
    if untyped.device && !matches!(kind, Kind::Frame { .. } | Kind::Untyped { .. }) {
        return Err(Error::InvalidArgument(1));
    }

    if used == 0 {
        reset(s, untyped);
    }
    let first = used.next_multiple_of(1 << kind.bits());
    for (i, slot) in (0..).zip(slots) {
        let address = untyped.start + first + (i << kind.bits());
        let cap = object::create(s, kind, address, untyped.device);
        derivation::insert_original(s, slot, cap, call.slot);
    }
    let watermark = first + (number << kind.bits());
    derivation::replace(
        s,
        call.slot,
        Untyped {
            watermark,
            ..untyped
        }
        .cap(),
    );
    Ok(Outcome::Done)
}

/// Memory that is used by no object becomes 0, as far as it may have been used. The memory of
/// devices is left alone.
fn reset(s: &mut State, untyped: Untyped) {
    let used = untyped.start..untyped.start + untyped.watermark;
    if !untyped.device {
        s.memory.retain(|address, _| !used.contains(address));
    }
}

/// The slots for the new objects: they exist and are empty.
///
/// # Errors
/// Checks 8 to 13.
fn destination(s: &State, call: &Call) -> Result<Vec<SlotId>, Error> {
    let [index, depth, offset, number] = [2, 3, 4, 5].map(|i| call.words[i]);
    let root = call.extra_cap(s, 0).flatten();
    let node = match depth {
        0 => root,
        _ => derivation::get(s, lookup::of_operation(s, root, index, depth, false)?),
    };
    let Some(Cap::CNode { object, radix, .. }) = node else {
        let failure = LookupFailure::MissingCapability { bits_left: depth };
        return Err(Error::FailedLookup {
            is_source: false,
            failure,
        });
    };
    let size = 1_u64 << radix;
    require_in(offset, 0, size - 1)?;
    require_in(number, 1, MAX_RETYPE_OBJECTS)?;
    require_in(number, 1, size - offset)?;
    let slots = (offset..offset + number)
        .map(|i| SlotId::CNode(object, i))
        .collect::<Vec<_>>();
    if slots.iter().any(|slot| derivation::get(s, *slot).is_some()) {
        return Err(Error::DeleteFirst);
    }
    Ok(slots)
}

fn require_in(value: u64, min: u64, max: u64) -> Result<(), Error> {
    if value < min || value > max {
        return Err(Error::Range { min, max });
    }
    Ok(())
}

/// The contents of a capability to untyped memory.
#[derive(Clone, Copy)]
struct Untyped {
    start: Address,
    bits: u8,
    device: bool,
    watermark: u64,
}

impl Untyped {
    /// # Panics
    /// `cap` is of another kind.
    fn of(cap: Cap) -> Self {
        match cap {
            Cap::Untyped {
                start,
                bits,
                device,
                watermark,
            } => Self {
                start,
                bits,
                device,
                watermark,
            },
            other => panic!("untyped memory is invoked, not {other:?}"),
        }
    }

    fn cap(self) -> Cap {
        let Self {
            start,
            bits,
            device,
            watermark,
        } = self;
        Cap::Untyped {
            start,
            bits,
            device,
            watermark,
        }
    }

    /// Bytes.
    fn size(self) -> u64 {
        1 << self.bits
    }
}
