//! Page tables (03, section 9.2).

use super::{entry_bits, walk};
use crate::cap::derivation;
use crate::error::Error;
use crate::invoke::{Call, Outcome};
use crate::state::{Cap, Entry, Level, Mapping, State, TableId};
use crate::vspace;
use sandglass_abi::invocation::aarch64 as invocation;
use sandglass_abi::vspace::aarch64::USER_TOP;

/// The capability to the table `object`, mapped so.
fn cap(object: TableId, mapping: Option<Mapping>) -> Cap {
    Cap::Paging {
        object,
        level: Level::PageTable,
        mapping,
    }
}

/// Invokes the page table `object`.
///
/// # Errors
/// Of Map and Unmap; for labels that it does not know.
pub fn invoke(
    s: &mut State,
    call: &Call,
    object: TableId,
    mapping: Option<Mapping>,
) -> Result<Outcome, Error> {
    match call.label {
        invocation::PAGE_TABLE_UNMAP => unmap(s, call, object, mapping),
        invocation::PAGE_TABLE_MAP => map(s, call, object, mapping),
        _ => Err(Error::IllegalOperation),
    }
}

/// # Errors
/// There are other capabilities to the table.
fn unmap(
    s: &mut State,
    call: &Call,
    object: TableId,
    mapping: Option<Mapping>,
) -> Result<Outcome, Error> {
    if !derivation::is_final(s, call.slot) {
        return Err(Error::RevokeFirst);
    }
    if let Some(mapping) = mapping {
        vspace::unmap_table(s, object, Level::PageTable, mapping);
        s.table_mut(object).entries.clear();
    }
    derivation::replace(s, call.slot, cap(object, None));
    Ok(Outcome::Done)
}

/// # Errors
/// In the order of 03, section 9.2.
fn map(
    s: &mut State,
    call: &Call,
    object: TableId,
    mapping: Option<Mapping>,
) -> Result<Outcome, Error> {
    call.require(2, 1)?;
    if mapping.is_some() {
        return Err(Error::InvalidCapability(0));
    }
    let (root, asid) = vspace::assigned_root(call.extra_cap(s, 0).flatten())?;
    let vaddr = call.words[0];
    if vaddr > USER_TOP {
        return Err(Error::InvalidArgument(0));
    }
    vspace::require_current(s, root, asid)?;
    let (parent, level) = walk(s, root, vaddr);
    if level == Level::PageTable || vspace::entry(s, parent, level, vaddr).is_some() {
        return Err(Error::DeleteFirst);
    }
    let entry = Entry::Table {
        table: object,
        attributes: 0,
    };
    vspace::set_entry(s, parent, level, vaddr, Some(entry));
    let covered = 1 << entry_bits(level);
    let vaddr = vaddr / covered * covered;
    derivation::replace(s, call.slot, cap(object, Some(Mapping { asid, vaddr })));
    Ok(Outcome::Done)
}
