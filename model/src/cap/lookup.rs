//! Capability addresses (02, section 4).

use crate::cap::derivation;
use crate::error::Error;
use crate::state::{Cap, LookupFailure, SlotId, State, ThreadId, ThreadSlot};
use sandglass_abi::cnode::LOOKUP_DEPTH;

/// The slot that `cptr` names in the space of `thread`: a system-call lookup, which ends at the
/// first capability that is no CNode, and at slots that are empty.
///
/// # Errors
/// The walk fails (02, section 4).
pub fn of_syscall(s: &State, thread: ThreadId, cptr: u64) -> Result<SlotId, LookupFailure> {
    let root = derivation::get(s, SlotId::Thread(thread, ThreadSlot::CSpace));
    walk(s, root, cptr, LOOKUP_DEPTH.into()).map(|end| end.slot)
}

/// The slot that `index` and `depth` name below `root`: a lookup of a CNode operation, which
/// resolves all bits. `None` is a null root.
///
/// # Errors
/// FailedLookup of a source or of a target; RangeError for the depth (02, section 4).
pub fn of_operation(
    s: &State,
    root: Option<Cap>,
    index: u64,
    depth: u64,
    is_source: bool,
) -> Result<SlotId, Error> {
    let failed = |failure| Error::FailedLookup { is_source, failure };
    if !matches!(root, Some(Cap::CNode { .. })) {
        return Err(failed(LookupFailure::InvalidRoot));
    }
    let max = LOOKUP_DEPTH.into();
    if depth < 1 || depth > max {
        return Err(Error::Range { min: 1, max });
    }
    let end = walk(s, root, index, depth).map_err(failed)?;
    if end.bits_left != 0 {
        let bits_left = end.bits_left;
        return Err(failed(LookupFailure::DepthMismatch {
            bits_left,
            bits_found: 0,
        }));
    }
    Ok(end.slot)
}

/// Where a walk ended.
struct End {
    slot: SlotId,
    /// Bits of the address that were not resolved.
    bits_left: u64,
}

/// Resolves the low `bits` bits of `cptr`, CNode by CNode, starting at `root`.
fn walk(s: &State, root: Option<Cap>, cptr: u64, bits: u64) -> Result<End, LookupFailure> {
    let mut next = root;
    let mut reached = Err(LookupFailure::InvalidRoot);
    let mut bits_left = bits;
    while let Some(Cap::CNode {
        object,
        radix,
        guard,
        guard_size,
    }) = next
    {
        let (radix, guard_size) = (u64::from(radix), u64::from(guard_size));
        if guard_size > bits_left || field(cptr, bits_left, guard_size) != guard {
            return Err(LookupFailure::GuardMismatch {
                bits_left,
                guard_found: guard,
                bits_found: guard_size,
            });
        }
        let bits_found = guard_size + radix;
        if bits_found > bits_left {
            return Err(LookupFailure::DepthMismatch {
                bits_left,
                bits_found,
            });
        }
        let slot = SlotId::CNode(object, field(cptr, bits_left - guard_size, radix));
        bits_left -= bits_found;
        reached = Ok(End { slot, bits_left });
        if bits_left == 0 {
            break;
        }
        next = derivation::get(s, slot);
    }
    reached
}

/// The `width` bits of `word` below bit `end`: bits `end - 1` down to `end - width`.
fn field(word: u64, end: u64, width: u64) -> u64 {
    let below_end = u128::from(word) & ((1 << end) - 1);
    (below_end >> (end - width)) as u64
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn a_field_is_cut_at_both_ends() {
        assert_eq!(field(0xfedc_ba98_7654_3210, 64, 64), 0xfedc_ba98_7654_3210);
        assert_eq!(field(0xfedc_ba98_7654_3210, 64, 0), 0);
        assert_eq!(field(0xfedc_ba98_7654_3210, 12, 8), 0x21);
        assert_eq!(field(u64::MAX, 0, 0), 0);
    }
}
