//! Invocations of paging structures (03, sections 8.1 and 8.2).

use sandglass_abi::invocation::x86_64 as label;

use crate::arch::abi::object::paging::Pml4;
use crate::arch::abi::object::table::{self, Child};
use crate::arch::abi::pte::Level;
use crate::arch::abi::{space, Mapping};
use crate::cap::{derivation, Capability};
use crate::invoke::{Error, Invocation, Outcome};
use crate::mem::{Kind, Ref, Slot};
use crate::{Kernel, View};

/// A checked invocation of a paging structure that is not a root.
#[derive(Clone, Copy)]
enum Operation {
    Map {
        slot: Ref<Slot>,
        root: Ref<Pml4>,
        mapping: Mapping,
        level: Level,
        attributes: u64,
    },
    Unmap(Ref<Slot>),
}

/// The level of the entry that leads to a table of `kind`, and its Map and Unmap labels.
fn parent_level(kind: Kind) -> (Level, u64, u64) {
    match kind {
        Kind::Pdpt => (Level::PML4, label::PDPT_MAP, label::PDPT_UNMAP),
        Kind::PageDirectory => (
            Level::PDPT,
            label::PAGE_DIRECTORY_MAP,
            label::PAGE_DIRECTORY_UNMAP,
        ),
        _ => (
            Level::PAGE_DIRECTORY,
            label::PAGE_TABLE_MAP,
            label::PAGE_TABLE_UNMAP,
        ),
    }
}

/// Invokes a paging structure.
pub fn invoke(k: &Kernel, call: &Invocation, kind: Kind) -> Result<Outcome, Error> {
    let operation = decode(k, call, kind)?;
    Ok(commit(k, kind, operation))
}

fn decode(k: &View, call: &Invocation, kind: Kind) -> Result<Operation, Error> {
    let (level, map, unmap) = parent_level(kind);
    if call.label() == unmap {
        if !derivation::is_final(k, call.slot) {
            return Err(Error::RevokeFirst);
        }
        return Ok(Operation::Unmap(call.slot));
    }
    if call.label() != map {
        return Err(Error::IllegalOperation);
    }
    call.need(2)?;
    let space = call.extra_cap(k, 0)?;
    if call
        .cap
        .paging()
        .is_none_or(|table| table.mapping.is_some())
    {
        return Err(Error::InvalidCapability(0));
    }
    let asid = space.root_asid().ok_or(Error::InvalidCapability(1))?;
    let vaddr = call.word(k, 0) & !((1 << level.entry_bits()) - 1);
    if vaddr > space::TOP {
        return Err(Error::InvalidArgument(0));
    }
    let root = super::resolve(k, space, asid)?;
    let parent = space::find(k, root.at(k).as_ref(), vaddr, level).map_err(Error::missing)?;
    if !matches!(parent.child(k, level, level.index(vaddr)), Child::Absent) {
        return Err(Error::DeleteFirst);
    }
    let mapping = Mapping { asid, vaddr };
    let attributes = call.word(k, 1);
    Ok(Operation::Map {
        slot: call.slot,
        root,
        mapping,
        level,
        attributes,
    })
}

fn commit(k: &Kernel, kind: Kind, operation: Operation) -> Outcome {
    match operation {
        Operation::Map {
            slot,
            root,
            mapping,
            level,
            attributes,
        } => {
            let cap = slot.at(k).cap();
            let parent = space::find(k, root.at(k).as_ref(), mapping.vaddr, level);
            let (Ok(parent), Some(table)) = (parent, table::named(cap.word())) else {
                never!("the walk succeeded in decode, and nothing has changed since");
                return Outcome::Done;
            };
            parent.set_table(k, level.index(mapping.vaddr), table, attributes);
            space::table_changed(k, root);
            slot.at(k).set_cap(k, cap.with_mapping(Some(mapping)));
        }
        Operation::Unmap(slot) => {
            let cap = slot.at(k).cap();
            unmap(k, kind, cap);
            if let Some(table) = table::named(cap.word()) {
                table.at(k).clear(k);
            }
            slot.at(k).set_cap(k, cap.with_mapping(None));
        }
    }
    Outcome::Done
}

/// Removes the paging structure `cap`, of `kind`, from its parent, if the entry still leads to it.
pub fn unmap(k: &Kernel, kind: Kind, cap: Capability) {
    let (level, _, _) = parent_level(kind);
    let Some(mapping) = cap.paging().and_then(|table| table.mapping) else {
        return;
    };
    let Some(root) = space::root_of(k, mapping.asid) else {
        return;
    };
    let parent = space::find(k, root.at(k).as_ref(), mapping.vaddr, level);
    let (Ok(parent), Some(table)) = (parent, table::named(cap.word())) else {
        return;
    };
    let index = level.index(mapping.vaddr);
    if parent.leads_to(level, index, table) {
        parent.clear_entry(k, index);
        space::table_changed(k, root);
    }
}
