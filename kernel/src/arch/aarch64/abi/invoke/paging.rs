//! Invocations of page tables (03, section 9.2).

use sandglass_abi::invocation::aarch64 as label;

use crate::arch::abi::object::paging::{PageTable, VSpace};
use crate::arch::abi::object::table::Table;
use crate::arch::abi::pte::Level;
use crate::arch::abi::{space, Devices, Mapping};
use crate::arch::bounds::turns;
use crate::cap::{derivation, Capability};
use crate::invoke::{Error, Invocation, Outcome};
use crate::mem::{Ref, Slot};
use crate::{Kernel, View};

/// A checked invocation of a page table.
#[derive(Clone, Copy)]
enum Operation {
    Map {
        slot: Ref<Slot>,
        root: Ref<VSpace>,
        mapping: Mapping,
    },
    Unmap(Ref<Slot>),
}

/// Invokes a page table.
pub fn invoke(k: &Kernel, call: &Invocation) -> Result<Outcome, Error> {
    let operation = decode(k, call)?;
    Ok(commit(k, operation))
}

fn decode(k: &View, call: &Invocation) -> Result<Operation, Error> {
    if call.label() == label::PAGE_TABLE_UNMAP {
        if !derivation::is_final(k, call.slot) {
            return Err(Error::RevokeFirst);
        }
        return Ok(Operation::Unmap(call.slot));
    }
    if call.label() != label::PAGE_TABLE_MAP {
        return Err(Error::IllegalOperation);
    }
    call.need(2)?;
    let space = call.extra_cap(k, 0)?;
    if call.cap.table_mapping().is_some() {
        return Err(Error::InvalidCapability(0));
    }
    let asid = space.root_asid().ok_or(Error::InvalidCapability(1))?;
    let vaddr = call.word(k, 0);
    if vaddr > space::TOP {
        return Err(Error::InvalidArgument(0));
    }
    let root = super::resolve(k, space, asid, 1)?;
    let place = space::find(k, root.at(k).as_ref(), vaddr);
    if !place.level.has_tables() || place.table.page(place.index).is_some() {
        return Err(Error::DeleteFirst);
    }
    // What the entry covers.
    let vaddr = vaddr & !((1 << place.level.entry_bits()) - 1);
    Ok(Operation::Map {
        slot: call.slot,
        root,
        mapping: Mapping { asid, vaddr },
    })
}

fn commit(k: &Kernel, operation: Operation) -> Outcome {
    match operation {
        Operation::Map {
            slot,
            root,
            mapping,
        } => {
            let cap = slot.at(k).cap();
            let Some(table) = cap.word().get() else {
                never!("decode has seen a page table, and nothing has changed since");
                return Outcome::Done;
            };
            let place = space::find(k, root.at(k).as_ref(), mapping.vaddr);
            place.table.set_table(k, place.index, table);
            k.machine.tables_written();
            slot.at(k).set_cap(k, cap.with_mapping(Some(mapping)));
        }
        Operation::Unmap(slot) => {
            let cap = slot.at(k).cap();
            unmap(k, cap);
            if let Some(table) = cap.word().get::<PageTable>() {
                table.at(k).as_ref().clear(k);
            }
            slot.at(k).set_cap(k, cap.with_mapping(None));
        }
    }
    Outcome::Done
}

/// Removes the page table `cap` from its parent, if an entry still leads to it.
pub fn unmap(k: &Kernel, cap: Capability) {
    let (Some(mapping), Some(table)) = (cap.table_mapping(), cap.word().get()) else {
        return;
    };
    let Some(root) = space::root_of(k, mapping.asid) else {
        return;
    };
    if let Some((parent, index)) = parent(k, root.at(k).as_ref(), mapping.vaddr, table) {
        parent.clear_entry(k, index);
        k.machine.forget_space(mapping.asid);
    }
}

/// The table below `root`, on the way to `vaddr`, that has an entry which leads to `table`, and the entry: where a table is
/// mapped its level is found, not known.
fn parent<'k>(
    k: &'k View,
    root: &'k Table,
    vaddr: u64,
    table: Ref<PageTable>,
) -> Option<(&'k Table, usize)> {
    let (mut parent, mut level) = (root, Level::ROOT);
    for below in turns::<{ Level::BELOW.len() as u64 }, _>(Level::BELOW.into_iter()) {
        let index = level.index(vaddr);
        if parent.leads_to(index, table) {
            return Some((parent, index));
        }
        (parent, level) = (parent.table(k, index)?, below);
    }
    None
}
