//! Frames of user memory, and their mapping (03, section 8.3).

use sandglass_abi::invocation::x86_64 as label;

use super::error::Error;
use super::paging::Pml4;
use super::{vspace, Invocation, Outcome};
use crate::arch::pte::{Access, Level};
use crate::arch::Platform;
use crate::cap::{FrameCap, FrameRights, Mapping, Rights, Slot};
use crate::mem::{Child, PhysAddr, Ref};
use crate::Kernel;

/// A checked invocation of a frame.
#[derive(Clone, Copy)]
pub enum Operation {
    Map(Map),
    Unmap(Ref<Slot>),
    GetAddress(PhysAddr),
}

/// A checked mapping.
#[derive(Clone, Copy)]
pub struct Map {
    slot: Ref<Slot>,
    root: Ref<Pml4>,
    mapping: Mapping,
    level: Level,
    access: Access,
    attributes: u64,
}

/// Checks an invocation of a frame.
pub fn decode(call: &Invocation) -> Result<Operation, Error> {
    let frame = call.cap.frame().ok_or(Error::InvalidCapability(0))?;
    match call.label {
        label::PAGE_MAP => decode_map(call, frame).map(Operation::Map),
        label::PAGE_UNMAP => Ok(Operation::Unmap(call.slot)),
        label::PAGE_GET_ADDRESS => Ok(Operation::GetAddress(frame.start())),
        _ => Err(Error::IllegalOperation),
    }
}

fn decode_map(call: &Invocation, frame: FrameCap) -> Result<Map, Error> {
    let k = call.k;
    call.need(3)?;
    let space = call.extra_cap(0)?;
    let asid = space.root_asid().ok_or(Error::InvalidCapability(1))?;
    let vaddr = call.word(0);
    let size = 1u64 << (frame.bits() & 63);
    match frame.mapping {
        Some(mapping) if mapping.asid != asid => return Err(Error::InvalidCapability(1)),
        Some(mapping) if mapping.vaddr != vaddr => return Err(Error::InvalidArgument(0)),
        Some(_) => {}
        None => {
            let end = vaddr.checked_add(size);
            if vaddr > vspace::TOP || end.is_none_or(|end| end > vspace::TOP) {
                return Err(Error::InvalidArgument(0));
            }
        }
    }
    let root = vspace::resolve(k, space, asid)?;
    if vaddr & (size - 1) != 0 {
        return Err(Error::Alignment);
    }
    let level = vspace::level_of_page(frame.bits());
    let table = vspace::table(k, root.at(k).as_ref(), vaddr, level).map_err(Error::missing)?;
    if matches!(table.child(k, level, level.index(vaddr)), Child::Table(_)) {
        return Err(Error::DeleteFirst);
    }
    let access = access(frame.rights.masked(Rights::new(call.word(1))));
    let mapping = Mapping { asid, vaddr };
    Ok(Map {
        slot: call.slot,
        root,
        mapping,
        level,
        access,
        attributes: call.word(2),
    })
}

/// Rights as the entry says them (07, section 6).
fn access(rights: FrameRights) -> Access {
    match rights {
        FrameRights::ReadWrite => Access {
            user: true,
            write: true,
        },
        FrameRights::ReadOnly => Access {
            user: true,
            write: false,
        },
        FrameRights::KernelOnly => Access {
            user: false,
            write: true,
        },
    }
}

/// Performs a checked invocation of a frame.
pub fn commit(k: &Kernel, operation: Operation) -> Outcome {
    match operation {
        Operation::Map(map) => {
            let Map {
                slot,
                root,
                mapping,
                level,
                access,
                attributes,
            } = map;
            let cap = slot.at(k).cap();
            let start = cap.word().address();
            // The walk succeeded in decode, and nothing has changed since.
            if let Ok(table) = vspace::table(k, root.at(k).as_ref(), mapping.vaddr, level) {
                let index = level.index(mapping.vaddr);
                let stale = !matches!(table.child(k, level, index), Child::Absent);
                table.set_page(level, index, start, access, attributes);
                if stale {
                    k.machine.flush_page(mapping.vaddr);
                }
            }
            slot.at(k).set_cap(cap.with_mapping(Some(mapping)));
            Outcome::Done
        }
        Operation::Unmap(slot) => {
            let cap = slot.at(k).cap();
            if let Some(frame) = cap.frame() {
                unmap(k, frame);
            }
            slot.at(k).set_cap(cap.with_mapping(None));
            Outcome::Done
        }
        Operation::GetAddress(start) => Outcome::Value(start.get()),
    }
}

/// Removes the mapping of `frame`, if the entry still leads to it.
pub fn unmap(k: &Kernel, frame: FrameCap) {
    let Some(mapping) = frame.mapping else { return };
    let Some(root) = vspace::root_of(k, mapping.asid) else {
        return;
    };
    let level = vspace::level_of_page(frame.bits());
    let Ok(table) = vspace::table(k, root.at(k).as_ref(), mapping.vaddr, level) else {
        return;
    };
    let index = level.index(mapping.vaddr);
    match table.child(k, level, index) {
        Child::Page(start) if start == frame.start() => {
            table.clear_entry(index);
            k.machine.flush_page(mapping.vaddr);
        }
        _ => {}
    }
}
