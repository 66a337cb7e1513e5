//! Frames of user memory, and their mapping (03, section 9.3).

use sandglass_abi::invocation::aarch64 as label;

use super::cache;
use crate::arch::abi::devices::{Devices, Maintenance};
use crate::arch::abi::object::Work;
use crate::arch::abi::pte::Access;
use crate::arch::abi::space::{self, End};
use crate::arch::abi::Mapping;
use crate::cap::FrameCap;
use crate::invoke::{Error, Invocation, Outcome, Stop};
use crate::mem::{Ref, Slot};
use crate::object::{FrameRights, Rights};
use crate::{Kernel, View};

/// The lowest label of a frame.
pub const FIRST_LABEL: u64 = label::PAGE_MAP;

/// Invokes a frame.
#[inline(always)]
pub fn invoke(k: &Kernel, call: &Invocation) -> Result<Outcome, Stop> {
    if call.label() == label::PAGE_MAP {
        let frame = call.cap.frame().ok_or(Error::InvalidCapability(0))?;
        let checked = decode_map(k, call, frame)?;
        map(k, call.slot, frame, checked);
        return Ok(Outcome::Done);
    }
    invoke_other(k, call)
}

/// The invocations that are made less often than Map.
#[inline(never)]
fn invoke_other(k: &Kernel, call: &Invocation) -> Result<Outcome, Stop> {
    let frame = call.cap.frame().ok_or(Error::InvalidCapability(0))?;
    match call.label() {
        label::PAGE_UNMAP => {
            unmap(k, frame);
            call.slot.at(k).set_cap(k, call.cap.with_mapping(None));
            Ok(Outcome::Done)
        }
        label::PAGE_GET_ADDRESS => Ok(Outcome::Value(frame.start().get())),
        label::PAGE_CLEAN_DATA
        | label::PAGE_INVALIDATE_DATA
        | label::PAGE_CLEAN_INVALIDATE_DATA
        | label::PAGE_UNIFY_INSTRUCTION => {
            let work = decode_maintenance(k, call, frame)?;
            cache::perform(k, call, work)?;
            Ok(Outcome::Done)
        }
        _ => Err(Error::IllegalOperation.into()),
    }
}

/// A checked mapping: the entry that is to lead to the frame.
struct Map<'k> {
    mapping: Mapping,
    place: End<'k>,
    /// The entry is in use, by this frame or another page.
    in_use: bool,
    access: Access,
    attributes: u64,
}

#[inline(always)]
fn decode_map<'k>(k: &'k View, call: &Invocation, frame: FrameCap) -> Result<Map<'k>, Error> {
    call.need(3)?;
    let space = call.extra_cap(k, 0)?;
    let asid = space.root_asid().ok_or(Error::InvalidCapability(1))?;
    let root = super::resolve(k, space, asid, 1)?;
    let vaddr = call.word(k, 0);
    // A gibibyte at most.
    let size = 1u64 << (frame.bits() & 31);
    if vaddr & (size - 1) != 0 {
        return Err(Error::Alignment);
    }
    match frame.mapping {
        Some(mapping) if mapping.asid != asid => return Err(Error::InvalidCapability(1)),
        Some(mapping) if mapping.vaddr != vaddr => return Err(Error::InvalidArgument(0)),
        Some(_) => {}
        None if vaddr > space::TOP - (size - 1) => return Err(Error::InvalidArgument(0)),
        None => {}
    }
    let place = space::walk(k, root.at(k).as_ref(), vaddr);
    if !place.level.holds(frame.bits()) {
        return Err(Error::missing(place.level.entry_bits()));
    }
    Ok(Map {
        mapping: Mapping { asid, vaddr },
        place,
        in_use: place.table.page(place.index).is_some(),
        access: access(frame.rights.masked(Rights::new(call.word(k, 1)))),
        attributes: call.word(k, 2),
    })
}

/// Makes the entry lead to `frame`, whose capability is in `slot`.
#[inline(always)]
fn map(k: &Kernel, slot: Ref<Slot>, frame: FrameCap, checked: Map) {
    let (mapping, place) = (checked.mapping, checked.place);
    if checked.in_use {
        // An entry that is in use must not become another one at once: cores could have both, one from a walk and one
        // from their caches, and what they do then is undefined ("break before make").
        place.table.clear_entry(k, place.index);
        k.machine.forget_page(mapping.asid, mapping.vaddr);
    }
    place.table.set_page(
        k,
        place.level,
        place.index,
        frame.word,
        checked.access,
        checked.attributes,
    );
    k.machine.tables_written();
    let cap = slot.at(k).cap();
    slot.at(k).set_cap(k, cap.with_mapping(Some(mapping)));
}

/// Rights as the entry says them (07, section 6).
fn access(rights: FrameRights) -> Access {
    Access {
        user: rights != FrameRights::KERNEL_ONLY,
        write: rights != FrameRights::READ_ONLY,
    }
}

/// A checked maintenance of the part `start..end` of the frame (03, section 9.3).
fn decode_maintenance(k: &View, call: &Invocation, frame: FrameCap) -> Result<Work, Error> {
    let what = cache::requested(call).ok_or(Error::IllegalOperation)?;
    call.need(2)?;
    let mapping = frame.mapping.ok_or(Error::IllegalOperation)?;
    let root = space::root_of(k, mapping.asid).ok_or(Error::invalid_root())?;
    let (start, end) = (call.word(k, 0), call.word(k, 1));
    let size = 1u64 << (frame.bits() & 31);
    if end <= start {
        return Err(Error::InvalidArgument(1));
    }
    if start >= size || end > size {
        return Err(Error::InvalidArgument(0));
    }
    let place = space::find(k, root.at(k).as_ref(), mapping.vaddr);
    let page = place.table.page(place.index);
    let page =
        page.filter(|page| place.level.holds(frame.bits()) && page.start == frame.start().get());
    let page = page.ok_or(Error::InvalidCapability(0))?;
    if what == Maintenance::Invalidate && !page.is_writable {
        return Err(Error::IllegalOperation);
    }
    Ok(Work {
        what,
        start: frame.start().offset(start),
        bytes: end - start,
    })
}

/// Removes the mapping of `frame`, if the entry still leads to it.
pub fn unmap(k: &Kernel, frame: FrameCap) {
    let Some(mapping) = frame.mapping else { return };
    let Some(root) = space::root_of(k, mapping.asid) else {
        return;
    };
    let place = space::find(k, root.at(k).as_ref(), mapping.vaddr);
    let page = place.table.page(place.index);
    if page.is_some_and(|page| page.start == frame.start().get()) && place.level.holds(frame.bits())
    {
        place.table.clear_entry(k, place.index);
        k.machine.forget_page(mapping.asid, mapping.vaddr);
    }
}
