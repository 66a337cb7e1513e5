//! Frames of user memory, and their mapping (03, section 8.3).

use sandglass_abi::invocation::x86_64 as label;
use sandglass_abi::profile::THIS as PROFILE;

use super::iommu;
use crate::arch::abi::object::paging::Pml4;
use crate::arch::abi::object::table::{Child, Table};
use crate::arch::abi::pte::{Access, Level};
use crate::arch::abi::{space, Mapping};
use crate::cap::FrameCap;
use crate::invoke::{Error, Invocation, Outcome, Stop};
use crate::mem::{Ref, Slot};
use crate::object::{FrameRights, Rights};
use crate::{Kernel, View};

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
        label::PAGE_MAP_IO if PROFILE.iommu => Err(iommu::map_frame(call).into()),
        label::PAGE_GET_ADDRESS => Ok(Outcome::Value(frame.start().get())),
        _ => Err(Error::IllegalOperation.into()),
    }
}

/// A checked mapping: the entry that is to lead to the frame.
struct Map<'k> {
    root: Ref<Pml4>,
    mapping: Mapping,
    table: &'k Table,
    level: Level,
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
    let vaddr = call.word(k, 0);
    // A gibibyte at most.
    let size = 1u64 << (frame.bits() & 31);
    match frame.mapping {
        Some(mapping) if mapping.asid != asid => return Err(Error::InvalidCapability(1)),
        Some(mapping) if mapping.vaddr != vaddr => return Err(Error::InvalidArgument(0)),
        Some(_) => {}
        None if vaddr > space::TOP - size => return Err(Error::InvalidArgument(0)),
        None => {}
    }
    let root = super::resolve(k, space, asid)?;
    if vaddr & (size - 1) != 0 {
        return Err(Error::Alignment);
    }
    let level = Level::of_page(frame.bits());
    let table = space::table(k, root.at(k).as_ref(), vaddr, level).map_err(Error::missing)?;
    let in_use = match table.child(k, level, level.index(vaddr)) {
        Child::Table(_) => return Err(Error::DeleteFirst),
        Child::Page(_) => true,
        Child::Absent => false,
    };
    Ok(Map {
        root,
        mapping: Mapping { asid, vaddr },
        table,
        level,
        in_use,
        access: access(frame.rights.masked(Rights::new(call.word(k, 1)))),
        attributes: call.word(k, 2),
    })
}

/// Makes the entry lead to `frame`, whose capability is in `slot`.
#[inline(always)]
fn map(k: &Kernel, slot: Ref<Slot>, frame: FrameCap, checked: Map) {
    let Mapping { vaddr, .. } = checked.mapping;
    let level = checked.level;
    checked.table.set_page(
        k,
        level,
        level.index(vaddr),
        frame.word,
        checked.access,
        checked.attributes,
    );
    if checked.in_use {
        space::page_changed(k, checked.root, vaddr);
    }
    let cap = slot.at(k).cap();
    slot.at(k)
        .set_cap(k, cap.with_mapping(Some(checked.mapping)));
}

/// Rights as the entry says them (07, section 6).
fn access(rights: FrameRights) -> Access {
    Access {
        user: rights != FrameRights::KERNEL_ONLY,
        write: rights != FrameRights::READ_ONLY,
    }
}

/// Removes the mapping of `frame`, if the entry still leads to it.
pub fn unmap(k: &Kernel, frame: FrameCap) {
    let Some(mapping) = frame.mapping else { return };
    let Some(root) = space::root_of(k, mapping.asid) else {
        return;
    };
    let level = Level::of_page(frame.bits());
    let Ok(table) = space::find(k, root.at(k).as_ref(), mapping.vaddr, level) else {
        return;
    };
    let index = level.index(mapping.vaddr);
    match table.child(k, level, index) {
        Child::Page(start) if start == frame.start() => {
            table.clear_entry(k, index);
            space::page_changed(k, root, mapping.vaddr);
        }
        _ => {}
    }
}
