//! Paging structures below the root (03, section 8.2).

use crate::cap::derivation;
use crate::error::Error;
use crate::invoke::{Call, Outcome};
use crate::state::{Cap, Entry, Level, Mapping, State, TableId};
use crate::vspace;
use sandglass_abi::invocation::x86_64 as invocation;
use sandglass_abi::vspace::x86_64::{attributes, USER_TOP};

/// The contents of the capability that is invoked.
#[derive(Clone, Copy)]
struct Structure {
    object: TableId,
    level: Level,
    mapping: Option<Mapping>,
}

impl Structure {
    /// # Panics
    /// `cap` is of another kind.
    fn of(cap: Cap) -> Self {
        match cap {
            Cap::Paging {
                object,
                level,
                mapping,
            } => Self {
                object,
                level,
                mapping,
            },
            other => panic!("a paging structure is invoked, not {other:?}"),
        }
    }

    fn cap(self) -> Cap {
        let Self {
            object,
            level,
            mapping,
        } = self;
        Cap::Paging {
            object,
            level,
            mapping,
        }
    }

    /// The labels of Map and Unmap.
    fn labels(self) -> [u64; 2] {
        match self.level {
            Level::PageTable => [invocation::PAGE_TABLE_MAP, invocation::PAGE_TABLE_UNMAP],
            Level::PageDirectory => [
                invocation::PAGE_DIRECTORY_MAP,
                invocation::PAGE_DIRECTORY_UNMAP,
            ],
            Level::Pdpt => [invocation::PDPT_MAP, invocation::PDPT_UNMAP],
            Level::Pml4 => panic!("roots are not mapped"),
        }
    }
}

/// Invokes a PDPT, page directory or page table.
///
/// # Errors
/// Of Map and Unmap; for labels that the structure does not know.
pub fn invoke(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    let structure = Structure::of(call.cap);
    let [map_label, unmap_label] = structure.labels();
    if call.label == map_label {
        map(s, call, structure)
    } else if call.label == unmap_label {
        unmap(s, call, structure)
    } else {
        Err(Error::IllegalOperation)
    }
}

/// # Errors
/// There are other capabilities to the structure.
fn unmap(s: &mut State, call: &Call, structure: Structure) -> Result<Outcome, Error> {
    if !derivation::is_final(s, call.slot) {
        return Err(Error::RevokeFirst);
    }
    if let Some(mapping) = structure.mapping {
        vspace::unmap_table(s, structure.object, structure.level, mapping);
        s.table_mut(structure.object).entries.clear();
    }
    derivation::replace(
        s,
        call.slot,
        Structure {
            mapping: None,
            ..structure
        }
        .cap(),
    );
    Ok(Outcome::Done)
}

/// # Errors
/// In the order of 03, section 8.2.
fn map(s: &mut State, call: &Call, structure: Structure) -> Result<Outcome, Error> {
    call.require(2, 1)?;
    if structure.mapping.is_some() {
        return Err(Error::InvalidCapability(0));
    }
    let (root, asid) = vspace::assigned_root(call.extra_cap(s, 0).flatten())?;
    let coverage = 1 << vspace::coverage_bits(structure.level);
    let vaddr = call.words[0] / coverage * coverage;
    if vaddr > USER_TOP {
        return Err(Error::InvalidArgument(0));
    }
    vspace::require_current(s, root, asid)?;
    let level = vspace::parent(structure.level);
    let parent = vspace::table_at(s, root, level, vaddr)?;
    if vspace::entry(s, parent, level, vaddr).is_some() {
        return Err(Error::DeleteFirst);
    }

    let entry = Entry::Table {
        table: structure.object,
        attributes: (call.words[1] & attributes::UNCACHED) as u8,
    };
    vspace::set_entry(s, parent, level, vaddr, Some(entry));
    let mapping = Some(Mapping { asid, vaddr });
    derivation::replace(
        s,
        call.slot,
        Structure {
            mapping,
            ..structure
        }
        .cap(),
    );
    Ok(Outcome::Done)
}
