//! Frames (03, section 8.3).

use crate::cap::{derivation, rights};
use crate::error::Error;
use crate::invoke::{Call, Outcome};
use crate::state::{Address, Cap, Entry, FrameRights, Mapping, State, TableId};
use crate::vspace;
use sandglass_abi::invocation::x86_64 as invocation;
use sandglass_abi::object::x86_64::HUGE_PAGE_BITS;
use sandglass_abi::rights::Rights;
use sandglass_abi::vspace::x86_64::{attributes, USER_TOP};

/// The contents of the capability that is invoked.
#[derive(Clone, Copy)]
struct Frame {
    start: Address,
    bits: u8,
    device: bool,
    rights: FrameRights,
    mapping: Option<Mapping>,
}

impl Frame {
    /// # Panics
    /// `cap` is of another kind.
    fn of(cap: Cap) -> Self {
        match cap {
            Cap::Frame {
                start,
                bits,
                device,
                rights,
                mapping,
            } => Self {
                start,
                bits,
                device,
                rights,
                mapping,
            },
            other => panic!("a frame is invoked, not {other:?}"),
        }
    }

    fn cap(self) -> Cap {
        let Self {
            start,
            bits,
            device,
            rights,
            mapping,
        } = self;
        Cap::Frame {
            start,
            bits,
            device,
            rights,
            mapping,
        }
    }
}

/// Invokes a frame.
///
/// # Errors
/// Of Map; for labels that frames do not know.
pub fn invoke(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    let frame = Frame::of(call.cap);
    match call.label {
        invocation::PAGE_MAP => map(s, call, frame),
        invocation::PAGE_UNMAP => Ok(unmap(s, call, frame)),
        invocation::PAGE_GET_ADDRESS => Ok(Outcome::Words(vec![frame.start])),
        _ => Err(Error::IllegalOperation),
    }
}

/// The mapping goes, if it is (still) there.
fn unmap(s: &mut State, call: &Call, frame: Frame) -> Outcome {
    if let Some(mapping) = frame.mapping {
        vspace::unmap_frame(s, frame.start, frame.bits, mapping);
    }
    derivation::replace(
        s,
        call.slot,
        Frame {
            mapping: None,
            ..frame
        }
        .cap(),
    );
    Outcome::Done
}

/// # Errors
/// In the order of 03, section 8.3.
fn map(s: &mut State, call: &Call, frame: Frame) -> Result<Outcome, Error> {
    call.require(3, 1)?;
    let [vaddr, rights, attributes] = [0, 1, 2].map(|i| call.words[i]);
    let (root, asid) = vspace::assigned_root(call.extra_cap(s, 0).flatten())?;
    check_place(frame, asid, vaddr)?;
    vspace::require_current(s, root, asid)?;
    if vaddr % (1 << frame.bits) != 0 {
        return Err(Error::Alignment);
    }
    let table = table_for(s, frame, root, vaddr)?;

    let entry = Entry::Page {
        start: frame.start,
        rights: rights::mask_frame(frame.rights, Rights(rights)),
        attributes: attributes_for(frame, attributes),
    };
    let level = vspace::level_of_frame(frame.bits);
    vspace::set_entry(s, table, level, vaddr, Some(entry));
    let mapping = Some(Mapping { asid, vaddr });
    derivation::replace(s, call.slot, Frame { mapping, ..frame }.cap());
    Ok(Outcome::Done)
}

/// A frame is mapped again only where it is; otherwise below the end of user addresses.
fn check_place(frame: Frame, asid: u16, vaddr: u64) -> Result<(), Error> {
    match frame.mapping {
        Some(mapping) if mapping.asid != asid => Err(Error::InvalidCapability(1)),
        Some(mapping) if mapping.vaddr != vaddr => Err(Error::InvalidArgument(0)),
        None if vaddr > USER_TOP || vaddr + (1 << frame.bits) > USER_TOP => {
            Err(Error::InvalidArgument(0))
        }
        _ => Ok(()),
    }
}

/// The table for `frame` at `vaddr`; other frames that are mapped there give way, tables do not.
fn table_for(s: &State, frame: Frame, root: TableId, vaddr: u64) -> Result<TableId, Error> {
    let level = vspace::level_of_frame(frame.bits);
    let table = vspace::table_at(s, root, level, vaddr)?;
    match vspace::entry(s, table, level, vaddr) {
        Some(Entry::Table { .. }) => Err(Error::DeleteFirst),
        _ => Ok(table),
    }
}

/// What an attribute word means for `frame` (07, section 6).
fn attributes_for(frame: Frame, word: u64) -> u8 {
    let ignored = if u32::from(frame.bits) == HUGE_PAGE_BITS {
        attributes::WRITE_COMBINING
    } else {
        0
    };
    (word & attributes::MASK & !ignored) as u8
}
