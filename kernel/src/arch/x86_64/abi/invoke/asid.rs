//! Invocations of ASID control and ASID pools (03, sections 8.4 and 8.5).

use sandglass_abi::invocation::x86_64 as label;
use sandglass_abi::object::ASID_POOL_BITS;

use crate::arch::abi::object::asid::AsidPool;
use crate::arch::abi::object::paging::Pml4;
use crate::arch::abi::space;
use crate::arch::bounds;
use crate::cap::{derivation, Capability};
use crate::invoke::{empty_slot, untyped, Error, Invocation, Outcome};
use crate::mem::objects::region;
use crate::mem::{Ref, Slot};
use crate::time::Turn;
use crate::{Kernel, View};

/// A checked MakePool.
#[derive(Clone, Copy)]
struct MakePool {
    untyped: Ref<Slot>,
    slot: Ref<Slot>,
    number: u64,
}

/// Invokes ASID control.
pub fn invoke_control(k: &mut Kernel, call: &Invocation) -> Result<Outcome, Error> {
    let make = decode_control(k, call)?;
    make_pool(k, make);
    Ok(Outcome::Done)
}

fn decode_control(k: &View, call: &Invocation) -> Result<MakePool, Error> {
    if call.label() != label::ASID_CONTROL_MAKE_POOL {
        return Err(Error::IllegalOperation);
    }
    call.need(2)?;
    let (untyped, root) = (call.extra_slot(0)?, call.extra_cap(k, 1)?);
    let number = k.arch.asids.lowest_free().ok_or(Error::DeleteFirst)?;
    match untyped.at(k).cap().untyped() {
        Some(memory) if u32::from(memory.bits()) == ASID_POOL_BITS && !memory.is_device() => {}
        _ => return Err(Error::InvalidCapability(1)),
    }
    if derivation::has_children(k, untyped) {
        return Err(Error::RevokeFirst);
    }
    let slot = empty_slot(k, root, call.word(k, 0), call.word(k, 1))?;
    Ok(MakePool {
        untyped,
        slot,
        number,
    })
}

/// Makes the pool. Its memory is reset first, in one step of its 4 KiB. The capability is inserted
/// like a copy of the memory's: it is never a parent (02, section 5.1).
fn make_pool(k: &mut Kernel, make: MakePool) {
    let MakePool {
        untyped,
        slot,
        number,
    } = make;
    bounds::commit();
    let _ = untyped::reset::<{ 1 << ASID_POOL_BITS }>(k, untyped);
    let pool = region::carve(k, untyped, ASID_POOL_BITS as u8)
        .and_then(|region| region.into_zeroed::<AsidPool>());
    if let Some(word) = pool {
        if let Some(pool) = word.get() {
            k.arch.asids.set(k, number, Some(pool));
        }
        let cap = Capability::original(word).with_number(number);
        derivation::insert_copy(k, untyped, slot, cap);
    }
}

/// A checked Assign.
#[derive(Clone, Copy)]
struct Assign {
    slot: Ref<Slot>,
    pool: Ref<AsidPool>,
    asid: u16,
}

/// Invokes an ASID pool.
pub fn invoke_pool(k: &Kernel, call: &Invocation) -> Result<Outcome, Error> {
    let Assign { slot, pool, asid } = decode_pool(k, call)?;
    assign(k, slot, pool, asid);
    Ok(Outcome::Done)
}

fn decode_pool(k: &View, call: &Invocation) -> Result<Assign, Error> {
    if call.label() != label::ASID_POOL_ASSIGN {
        return Err(Error::IllegalOperation);
    }
    let slot = call.extra_slot(0)?;
    let root = slot.at(k).cap();
    if root.word().get::<Pml4>().is_none() || root.root_asid().is_some() {
        return Err(Error::InvalidCapability(1));
    }
    let number = call.cap.pool_number();
    let pool = k.arch.asids.numbered(number);
    let pool = pool.ok_or(Error::invalid_root())?;
    if call.cap.word().get() != Some(pool) {
        return Err(Error::InvalidCapability(0));
    }
    let asid = pool.at(k).lowest_free(number).ok_or(Error::DeleteFirst)?;
    Ok(Assign { slot, pool, asid })
}

/// Gives the root table in `slot` the identifier `asid` of `pool`.
pub fn assign(k: &Kernel, slot: Ref<Slot>, pool: Ref<AsidPool>, asid: u16) {
    let cap = slot.at(k).cap();
    pool.at(k).set_root(k, asid, cap.word().get());
    slot.at(k).set_cap(k, cap.with_number(u64::from(asid)));
}

/// The last capability to an ASID pool goes: its address spaces lose their translation.
pub fn remove_pool(k: &Kernel, turn: &Turn, cap: Capability) {
    let number = cap.pool_number();
    if k.arch.asids.numbered(number) == cap.word().get() {
        k.arch.asids.set(k, number, None);
        space::revoked(k, turn);
    }
}

/// The last capability to a root table goes: its identifier is free.
pub fn free(k: &Kernel, turn: &Turn, cap: Capability) {
    let Some(asid) = cap.root_asid() else { return };
    let Some(pool) = k.arch.asids.pool(asid) else {
        return;
    };
    if pool.at(k).root(asid) == cap.word().get() {
        pool.at(k).set_root(k, asid, None);
        space::revoked(k, turn);
    }
}
