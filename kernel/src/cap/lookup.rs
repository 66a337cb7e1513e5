//! Lookup of capabilities in a capability space (02, section 4).

use super::{CNodeCap, Capability, Slot};
use crate::mem::Ref;
use crate::Kernel;

/// Why a lookup failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookupFailure {
    InvalidRoot,
    MissingCapability {
        bits_left: u8,
    },
    DepthMismatch {
        bits_left: u8,
        bits_found: u8,
    },
    GuardMismatch {
        bits_left: u8,
        guard: u64,
        bits_found: u8,
    },
}

/// The slot where a walk ended, and how many bits of the address it left over.
#[derive(Clone, Copy)]
pub struct Found {
    pub slot: Ref<Slot>,
    pub bits_left: u32,
}

/// Bits of a capability pointer.
const WORD_BITS: u32 = 64;

/// Walks from `root` along the low `depth` (1 to 64) bits of `cptr` until they are used up or a
/// slot without a CNode is reached. Each step uses a bit at least, as a CNode has two slots at
/// least, so there are at most 64.
#[inline(always)]
pub fn resolve(
    k: &Kernel,
    root: Capability,
    cptr: u64,
    depth: u32,
) -> Result<Found, LookupFailure> {
    let mut node = root.cnode().ok_or(LookupFailure::InvalidRoot)?;
    let mut bits_left = depth;
    // The bits that are left, at the top of a word. There is one at least, and guards are shorter
    // than a word: no shift is by a whole word.
    let mut rest = cptr.wrapping_shl(WORD_BITS.wrapping_sub(depth));
    loop {
        let used = node.guard_size() + node.radix();
        if used > bits_left || !node.admits(rest) {
            return Err(mismatch(node, rest, bits_left));
        }
        bits_left -= used;
        rest = rest.wrapping_shl(node.guard_size());
        let slot = node.slot_named_by(rest);
        if bits_left == 0 {
            return Ok(Found { slot, bits_left });
        }
        match slot.at(k).cap().cnode() {
            Some(next) => {
                rest = rest.wrapping_shl(node.radix());
                node = next;
            }
            None => return Ok(Found { slot, bits_left }),
        }
    }
}

/// Why `node` does not translate the `left` bits at the top of `rest`: the guard is looked at
/// first.
#[cold]
#[inline(never)]
fn mismatch(node: CNodeCap, rest: u64, left: u32) -> LookupFailure {
    let size = node.guard_size();
    if size > left || !node.admits(rest) {
        return LookupFailure::GuardMismatch {
            bits_left: left as u8,
            guard: node.guard(),
            bits_found: size as u8,
        };
    }
    LookupFailure::DepthMismatch {
        bits_left: left as u8,
        bits_found: (size + node.radix()) as u8,
    }
}

/// The slot that a system call names by `cptr` in the capability space `root`: 64 bits, of which
/// some may be left over. `None` if there is none; [`failure`] tells why.
#[inline(never)]
pub fn slot(k: &Kernel, root: Capability, cptr: u64) -> Option<Ref<Slot>> {
    resolve(k, root, cptr, WORD_BITS)
        .ok()
        .map(|found| found.slot)
}

/// Why [`slot`] finds nothing.
#[cold]
pub fn failure(k: &Kernel, root: Capability, cptr: u64) -> LookupFailure {
    match resolve(k, root, cptr, WORD_BITS) {
        Err(failure) => failure,
        Ok(_) => LookupFailure::MissingCapability { bits_left: 0 },
    }
}

/// Why the lookup of a slot by index and depth failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotError {
    /// The depth is not between 1 and 64.
    Depth,
    Failed(LookupFailure),
}

/// The slot that a CNode operation names by `index` and `depth` below `root`: exactly.
#[inline(never)]
pub fn exact_slot(
    k: &Kernel,
    root: Capability,
    index: u64,
    depth: u64,
) -> Result<Ref<Slot>, SlotError> {
    if root.cnode().is_none() {
        return Err(SlotError::Failed(LookupFailure::InvalidRoot));
    }
    if depth < 1 || depth > u64::from(WORD_BITS) {
        return Err(SlotError::Depth);
    }
    let found = resolve(k, root, index, depth as u32).map_err(SlotError::Failed)?;
    if found.bits_left != 0 {
        return Err(SlotError::Failed(LookupFailure::DepthMismatch {
            bits_left: found.bits_left as u8,
            bits_found: 0,
        }));
    }
    Ok(found.slot)
}
