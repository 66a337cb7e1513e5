//! Address-space identifiers (03, sections 8.4, 8.5 and 9.4; 07, section 8).

use super::{Call, Outcome};
use crate::cap::{derivation, lookup};
use crate::error::Error;
use crate::isa::{ASIDS_PER_POOL, ASID_CONTROL_MAKE_POOL, ASID_POOLS, ASID_POOL_ASSIGN};
use crate::state::{Cap, LookupFailure, PoolId, State, TableId};
use crate::vspace;
use sandglass_abi::object::ASID_POOL_BITS;
use std::collections::BTreeMap;

/// Invokes the control capability: a pool is made from untyped memory (03, section 8.4).
///
/// # Errors
/// In the order of 03, section 8.4.
pub fn invoke_control(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    if call.label != ASID_CONTROL_MAKE_POOL {
        return Err(Error::IllegalOperation);
    }
    call.require(2, 2)?;
    let number = (0..ASID_POOLS as u8).find(|number| !s.asids.contains_key(number));
    let number = number.ok_or(Error::DeleteFirst)?;
    let Some(Cap::Untyped {
        start,
        bits,
        device: false,
        ..
    }) = call.extra_cap(s, 0).flatten()
    else {
        return Err(Error::InvalidCapability(1));
    };
    if u32::from(bits) != ASID_POOL_BITS {
        return Err(Error::InvalidCapability(1));
    }
    let untyped = call.extra[0];
    if derivation::has_children(s, untyped) {
        return Err(Error::RevokeFirst);
    }
    let root = call.extra_cap(s, 1).flatten();
    let slot = lookup::of_operation(s, root, call.words[0], call.words[1], false)?;
    if derivation::get(s, slot).is_some() {
        return Err(Error::DeleteFirst);
    }

    let (object, size) = (PoolId(start), 1 << bits);
    let full = Cap::Untyped {
        start,
        bits,
        device: false,
        watermark: size,
    };
    derivation::replace(s, untyped, full);
    s.memory
        .retain(|address, _| !(start..start + size).contains(address));
    s.pools.insert(object, BTreeMap::new());
    s.asids.insert(number, object);
    derivation::insert(s, slot, Cap::AsidPool { object, number }, untyped);
    Ok(Outcome::Done)
}

/// Invokes a pool: an address space gets an identifier (03, section 8.5).
///
/// # Errors
/// In the order of 03, section 8.5.
pub fn invoke_pool(s: &mut State, call: &Call, pool: PoolId, number: u8) -> Result<Outcome, Error> {
    if call.label != ASID_POOL_ASSIGN {
        return Err(Error::IllegalOperation);
    }
    call.require(0, 1)?;
    let Some(Cap::Root { object, asid: None }) = call.extra_cap(s, 0).flatten() else {
        return Err(Error::InvalidCapability(1));
    };
    match s.asids.get(&number) {
        None => {
            let failure = LookupFailure::InvalidRoot;
            return Err(Error::FailedLookup {
                is_source: false,
                failure,
            });
        }
        Some(current) if *current != pool => return Err(Error::InvalidCapability(0)),
        Some(_) => (),
    }
    assign(s, call, pool, number, object)
}

/// Gives `root` the lowest identifier that is free in `pool`; the number 0 is no identifier.
fn assign(
    s: &mut State,
    call: &Call,
    pool: PoolId,
    number: u8,
    root: TableId,
) -> Result<Outcome, Error> {
    let spaces = s.pools.get_mut(&pool).expect("pools in use exist");
    let is_free = |index: &u16| !spaces.contains_key(index) && vspace::asid(number, *index) != 0;
    let index = (0..ASIDS_PER_POOL as u16)
        .find(is_free)
        .ok_or(Error::DeleteFirst)?;
    spaces.insert(index, root);
    let asid = Some(vspace::asid(number, index));
    derivation::replace(s, call.extra[0], Cap::Root { object: root, asid });
    Ok(Outcome::Done)
}
