//! Invocations of address spaces: what they do to caches is no part of the state (03, section 9.1).

use super::{entry_bits, walk};
use crate::error::Error;
use crate::invoke::{Call, Outcome};
use crate::state::{Entry, FrameRights, LookupFailure, State, TableId};
use crate::vspace;
use sandglass_abi::invocation::aarch64 as invocation;
use sandglass_abi::vspace::aarch64::USER_TOP;

/// # Errors
/// In the order of 03, section 9.1.
pub fn invoke(
    s: &mut State,
    call: &Call,
    object: TableId,
    asid: Option<u16>,
) -> Result<Outcome, Error> {
    const LABELS: [u64; 4] = [
        invocation::VSPACE_CLEAN_DATA,
        invocation::VSPACE_INVALIDATE_DATA,
        invocation::VSPACE_CLEAN_INVALIDATE_DATA,
        invocation::VSPACE_UNIFY_INSTRUCTION,
    ];
    if !LABELS.contains(&call.label) {
        return Err(Error::IllegalOperation);
    }
    call.require(2, 0)?;
    let (start, end) = (call.words[0], call.words[1]);
    if end <= start {
        return Err(Error::InvalidArgument(1));
    }
    if end > USER_TOP {
        return Err(Error::IllegalOperation);
    }
    let asid = asid.ok_or(Error::InvalidCapability(0))?;
    match vspace::root_of(s, asid) {
        None => {
            return Err(Error::FailedLookup {
                is_source: false,
                failure: LookupFailure::InvalidRoot,
            })
        }
        Some(root) if root != object => return Err(Error::InvalidCapability(0)),
        Some(_) => (),
    }
    let (table, level) = walk(s, object, start);
    let Some(Entry::Page { rights, .. }) = vspace::entry(s, table, level, start) else {
        return Ok(Outcome::Done);
    };
    let page = 1 << entry_bits(level);
    let last = start / page * page + (page - 1);
    if end - 1 > last {
        return Err(Error::Range {
            min: start,
            max: last,
        });
    }
    if call.label == invocation::VSPACE_INVALIDATE_DATA && rights != FrameRights::ReadWrite {
        return Err(Error::IllegalOperation);
    }
    Ok(Outcome::Done)
}
