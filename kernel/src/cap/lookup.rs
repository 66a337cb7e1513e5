//! Lookup of capabilities in a capability space (02, section 4).

use super::{CNodeCap, Capability};
use crate::arch::bounds::{Together, Turns, DEEPER, LEVELS};
use crate::arch::opaque_word;
use crate::mem::objects::tcb_slot;
use crate::mem::{Kind, Ref, Slot};
use crate::object::{LookupFailure, Tcb, TcbSlot};
use crate::View;

/// The root of the capability space of `thread`.
pub fn cspace(k: &View, thread: Ref<Tcb>) -> Capability {
    tcb_slot(thread, TcbSlot::CSpace).at(k).cap()
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
/// slot without a CNode is reached. `None` if there is no such slot; [`explain`] tells why.
#[inline(always)]
fn walk(k: &View, root: Capability, cptr: u64, depth: u32) -> Option<Found> {
    let (slot, rest, bits_left) = step(root.cnode()?, top(cptr, depth), depth as i32)?;
    // Most spaces have one level.
    if bits_left > 0 && slot.at(k).cap().is(Kind::CNode) {
        descend(k, slot, rest, bits_left)
    } else {
        ended(slot, bits_left)
    }
}

/// Walks on from `slot` along the first bits of `rest`, of which there is one at least. Each step uses a bit at least, as a
/// CNode has two slots at least, and two if the CNode has more or its capability a guard: so there are fewer than 64, and
/// of the dear ones half as many.
#[inline(never)]
fn descend(k: &View, mut slot: Ref<Slot>, mut rest: u64, mut bits_left: i32) -> Option<Found> {
    let mut levels = Together::<DEEPER>::new(true);
    let mut bits = Together::<{ WORD_BITS as u64 }>::new(true);
    let pairs = Capability::beginning_of_pairs();
    while bits_left > 0 {
        // What the deepest spaces are made of.
        while let Some(pair) = slot.at(k).cap().plain_pair(pairs) {
            levels.turn();
            bits.turn();
            (slot, rest) = pair.slot_named_by(rest);
            bits_left -= 1;
            if bits_left == 0 {
                return ended(slot, bits_left);
            }
        }
        let Some(node) = slot.at(k).cap().cnode() else {
            break;
        };
        let address = node.behind_guard(rest);
        levels.turn();
        bits.turns::<2>();
        (slot, rest, bits_left) = step_of_many(node, address, bits_left)?;
    }
    ended(slot, bits_left)
}

/// Where `node` leads with the first bits of `rest`; the bits behind those, and behind these what was used; and how many
/// are left of `bits_left`: less than none, if there were too few.
#[inline(always)]
fn step(node: CNodeCap, rest: u64, bits_left: i32) -> Option<(Ref<Slot>, u64, i32)> {
    let slot = node.slot(rest)?;
    let unused = node.unused_bits();
    let less = unused as i32 - WORD_BITS as i32;
    Some((slot, rest.rotate_right(unused), bits_left + less))
}

/// As [`step`], where another follows mostly, with the bits of an `address` [behind the guard](CNodeCap::behind_guard).
#[inline(always)]
fn step_of_many(node: CNodeCap, address: u64, bits_left: i32) -> Option<(Ref<Slot>, u64, i32)> {
    // Less than none by what it uses: as a count of a shift, what it leaves.
    let less = opaque_word(u64::from(node.unused_bits()).wrapping_sub(WORD_BITS.into()));
    let bits_left = opaque_word((bits_left as u32).wrapping_add(less as u32).into());
    // Before it is known whether the guard was there: what shifts by the same count comes together so.
    let index = opaque_word(address.wrapping_shr(less as u32));
    let rest = opaque_word(address.rotate_right(less as u32));
    Some((node.slot_at(index)?, rest, bits_left as i32))
}

/// A walk has ended at `slot`; there were too few bits for that if less than none are left.
fn ended(slot: Ref<Slot>, bits_left: i32) -> Option<Found> {
    let bits_left = u32::try_from(bits_left).ok()?;
    Some(Found { slot, bits_left })
}

/// The low `depth` (1 to 64) bits of `cptr`, at the top of a word. As there is one at least, and
/// guards are shorter than a word, no shift of it is by a whole word.
fn top(cptr: u64, depth: u32) -> u64 {
    cptr.wrapping_shl(WORD_BITS.wrapping_sub(depth))
}

/// Why a walk from `root` along the low `depth` (1 to 64) bits of `cptr` finds nothing, or leaves bits over.
#[cold]
#[inline(never)]
fn explain(k: &View, root: Capability, cptr: u64, depth: u32) -> LookupFailure {
    let (mut cap, mut rest, mut bits_left) = (root, top(cptr, depth), depth);
    let mut turns = Turns::<LEVELS>::new();
    while let Some(node) = cap.cnode() {
        turns.turn();
        match step(node, rest, bits_left as i32) {
            Some((slot, behind, left @ 0..)) => {
                cap = slot.at(k).cap();
                (rest, bits_left) = (behind, left as u32);
            }
            _ => return mismatch(node, rest, bits_left),
        }
    }
    if root.cnode().is_none() {
        return LookupFailure::InvalidRoot;
    }
    LookupFailure::DepthMismatch {
        bits_left: bits_left as u8,
        bits_found: 0,
    }
}

/// Why `node` does not translate the `left` bits at the top of `rest`: the guard is looked at
/// first.
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
pub fn slot(k: &View, root: Capability, cptr: u64) -> Option<Ref<Slot>> {
    invoked_slot(k, root, cptr)
}

/// As [`slot`], inlined: what limits of paths name is a call out of whoever invokes.
#[inline(always)]
pub fn invoked_slot(k: &View, root: Capability, cptr: u64) -> Option<Ref<Slot>> {
    walk(k, root, cptr, WORD_BITS).map(|found| found.slot)
}

/// The capability that a system call of `thread` names by `cptr`, where one step leads to it: a CNode is none yet, if bits
/// are left over. `None` also where only more steps or [`failure`] tell.
#[inline(always)]
pub fn direct(k: &View, thread: Ref<Tcb>, cptr: u64) -> Option<Capability> {
    let node = cspace(k, thread).cnode()?;
    Some(node.slot(cptr)?.at(k).cap())
}

/// Why [`slot`] finds nothing.
#[cold]
pub fn failure(k: &View, root: Capability, cptr: u64) -> LookupFailure {
    explain(k, root, cptr, WORD_BITS)
}

/// The slot that a CNode operation names by `index` and `depth` below `root`: exactly. `None` if there is none;
/// [`exact_failure`] tells why.
#[inline(never)]
pub fn exact_slot(k: &View, root: Capability, index: u64, depth: u64) -> Option<Ref<Slot>> {
    if depth < 1 || depth > u64::from(WORD_BITS) {
        return None;
    }
    let found = walk(k, root, index, depth as u32)?;
    (found.bits_left == 0).then_some(found.slot)
}

/// Why [`exact_slot`] finds nothing: `None` if `depth` is not between 1 and 64.
#[cold]
pub fn exact_failure(k: &View, root: Capability, index: u64, depth: u64) -> Option<LookupFailure> {
    if root.cnode().is_none() {
        return Some(LookupFailure::InvalidRoot);
    }
    let is_depth = depth >= 1 && depth <= u64::from(WORD_BITS);
    is_depth.then(|| explain(k, root, index, depth as u32))
}
