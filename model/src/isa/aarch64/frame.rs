//! Frames (03, section 9.3). What they do to caches is no part of the state.

use super::{entry_bits, walk};
use crate::cap::{derivation, rights};
use crate::error::Error;
use crate::invoke::{Call, Outcome};
use crate::state::{Cap, Entry, FrameRights, LookupFailure, Mapping, State};
use crate::vspace;
use sandglass_abi::invocation::aarch64 as invocation;
use sandglass_abi::rights::Rights;
use sandglass_abi::vspace::aarch64::{attributes, USER_TOP};

/// Invokes a frame.
///
/// # Errors
/// Of Map and of the maintenance of caches; for labels that frames do not know.
pub fn invoke(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    match call.label {
        invocation::PAGE_MAP => map(s, call),
        invocation::PAGE_UNMAP => Ok(unmap(s, call)),
        invocation::PAGE_GET_ADDRESS => match call.cap {
            Cap::Frame { start, .. } => Ok(Outcome::Words(vec![start])),
            other => panic!("a frame is invoked, not {other:?}"),
        },
        invocation::PAGE_CLEAN_DATA
        | invocation::PAGE_INVALIDATE_DATA
        | invocation::PAGE_CLEAN_INVALIDATE_DATA
        | invocation::PAGE_UNIFY_INSTRUCTION => maintain(s, call),
        _ => Err(Error::IllegalOperation),
    }
}

/// The frame that is invoked, mapped as `new` says.
fn mapped(cap: Cap, new: Option<Mapping>) -> Cap {
    match cap {
        Cap::Frame {
            start,
            bits,
            device,
            rights,
            ..
        } => Cap::Frame {
            start,
            bits,
            device,
            rights,
            mapping: new,
        },
        other => panic!("a frame is invoked, not {other:?}"),
    }
}

/// The mapping goes, if it is (still) there.
fn unmap(s: &mut State, call: &Call) -> Outcome {
    if let Cap::Frame {
        start,
        bits,
        mapping: Some(mapping),
        ..
    } = call.cap
    {
        vspace::unmap_frame(s, start, bits, mapping);
    }
    derivation::replace(s, call.slot, mapped(call.cap, None));
    Outcome::Done
}

/// # Errors
/// In the order of 03, section 9.3.
fn map(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    let Cap::Frame {
        start,
        bits,
        rights: own,
        mapping,
        ..
    } = call.cap
    else {
        panic!("a frame is invoked");
    };
    call.require(3, 1)?;
    let [vaddr, rights, attributes] = [0, 1, 2].map(|i| call.words[i]);
    let (root, asid) = vspace::assigned_root(call.extra_cap(s, 0).flatten())?;
    vspace::require_current(s, root, asid)?;
    let size = 1u64 << bits;
    if !vaddr.is_multiple_of(size) {
        return Err(Error::Alignment);
    }
    match mapping {
        Some(old) if old.asid != asid => return Err(Error::InvalidCapability(1)),
        Some(old) if old.vaddr != vaddr => return Err(Error::InvalidArgument(0)),
        None if vaddr > USER_TOP || vaddr + (size - 1) > USER_TOP => {
            return Err(Error::InvalidArgument(0))
        }
        _ => (),
    }
    let (table, level) = walk(s, root, vaddr);
    if entry_bits(level) != u32::from(bits) {
        let bits_left = entry_bits(level).into();
        return Err(Error::FailedLookup {
            is_source: false,
            failure: LookupFailure::MissingCapability { bits_left },
        });
    }
    let entry = Entry::Page {
        start,
        rights: rights::mask_frame(own, Rights(rights)),
        attributes: (attributes & (attributes::CACHEABLE | attributes::EXECUTE_NEVER)) as u8,
    };
    vspace::set_entry(s, table, level, vaddr, Some(entry));
    let new = Some(Mapping { asid, vaddr });
    derivation::replace(s, call.slot, mapped(call.cap, new));
    Ok(Outcome::Done)
}

/// # Errors
/// In the order of 03, section 9.3.
fn maintain(s: &State, call: &Call) -> Result<Outcome, Error> {
    let Cap::Frame {
        start: frame,
        bits,
        mapping,
        ..
    } = call.cap
    else {
        panic!("a frame is invoked");
    };
    call.require(2, 0)?;
    let mapping = mapping.ok_or(Error::IllegalOperation)?;
    let root = vspace::root_of(s, mapping.asid).ok_or(Error::FailedLookup {
        is_source: false,
        failure: LookupFailure::InvalidRoot,
    })?;
    let (start, end, size) = (call.words[0], call.words[1], 1u64 << bits);
    if end <= start {
        return Err(Error::InvalidArgument(1));
    }
    if start >= size || end > size {
        return Err(Error::InvalidArgument(0));
    }
    let (table, level) = walk(s, root, mapping.vaddr);
    match vspace::entry(s, table, level, mapping.vaddr) {
        Some(Entry::Page { start, rights, .. })
            if start == frame && entry_bits(level) == u32::from(bits) =>
        {
            let invalidates = call.label == invocation::PAGE_INVALIDATE_DATA;
            if invalidates && rights != FrameRights::ReadWrite {
                return Err(Error::IllegalOperation);
            }
            Ok(Outcome::Done)
        }
        _ => Err(Error::InvalidCapability(0)),
    }
}
