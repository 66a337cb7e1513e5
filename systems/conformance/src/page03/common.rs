//! What the checks of every kind of invocation share.

use crate::prelude::*;

/// The last label of the profile (03, section 2).
use conformance_kit::arch::LAST_LABEL;

/// Every message that is shorter, or has fewer extra capabilities, is refused as truncated.
/// Given an invocation that the next check refuses, this is the order of the two.
pub fn truncated(whole: &Invocation) -> TestResult {
    for length in 0..whole.words.len() {
        whole
            .with_length(length)
            .expect_error(TruncatedMessage, &[])?;
    }
    for count in 0..whole.caps.len() {
        whole
            .with_cap_count(count)
            .expect_error(TruncatedMessage, &[])?;
    }
    Ok(())
}

/// Every label but `own` is an illegal operation, whatever the message: those of other kinds of
/// objects, and those that are no operation of any.
pub fn refuses_other_labels(whole: &Invocation, own: &[u64]) -> TestResult {
    let beyond = [LAST_LABEL + 1, 255, (1 << 52) - 1];
    // Labels are words: none is cut to fewer bits.
    let wide = own.iter().flat_map(|&own| [own | 1 << 8, own | 1 << 32]);
    for label in (0..=LAST_LABEL).chain(beyond).chain(wide) {
        if !own.contains(&label) {
            let other = whole.with_label(label);
            other.expect_error(IllegalOperation, &[])?;
            other
                .with_length(0)
                .with_cap_count(0)
                .expect_error(IllegalOperation, &[])?;
        }
    }
    Ok(())
}

/// Made by Send and NBSend, it has its effect, which `happened` looks for and takes back, and
/// answers nothing.
pub fn works_without_answer(
    f: &mut Fixture,
    whole: &Invocation,
    mut happened: impl FnMut(&mut Fixture) -> Result<bool, Failure>,
) -> TestResult {
    for call in SENDING {
        whole.send(call)?;
        ensure!(happened(f)?, "{call:?} of {whole:x?} did nothing");
    }
    Ok(())
}

/// Made in the first phase of a system call that then receives, it does nothing, silently.
pub fn refused_in_first_phase(
    f: &mut Fixture,
    whole: &Invocation,
    mut happened: impl FnMut(&mut Fixture) -> Result<bool, Failure>,
) -> TestResult {
    for call in FIRST_PHASE {
        whole.send_first(f, call)?;
        ensure!(!happened(f)?, "{call:?} of {whole:x?} was obeyed");
    }
    Ok(())
}

/// Made in the first phase of a system call that then receives, it has its effect, which
/// `happened` looks for and takes back.
pub fn works_in_first_phase(
    f: &mut Fixture,
    whole: &Invocation,
    mut happened: impl FnMut(&mut Fixture) -> Result<bool, Failure>,
) -> TestResult {
    for call in FIRST_PHASE {
        whole.send_first(f, call)?;
        ensure!(happened(f)?, "{call:?} of {whole:x?} did nothing");
    }
    Ok(())
}

/// Positions of the arguments that name a destination slot.
#[derive(Clone, Copy)]
pub struct Destination {
    pub index: usize,
    pub depth: usize,
    pub root: usize,
}

/// Every destination that cannot be looked up (02, section 4), or is in use, is refused.
pub fn destination_refused(f: &mut Fixture, whole: &Invocation, at: Destination) -> TestResult {
    const RADIX: u64 = 4;
    let invalid_root = LookupFailureType::InvalidRoot as u64;
    let depth_mismatch = LookupFailureType::DepthMismatch as u64;
    let guard_mismatch = LookupFailureType::GuardMismatch as u64;
    let cnode = f.cnode(RADIX as u32)?;
    let guarded = f.badged(cnode, GuardData::new(0b11, 2).raw())?;
    let whole = whole.with_word(at.index, 0);
    let by = |root: CPtr, depth| whole.with_cap(at.root, root).with_word(at.depth, depth);
    for root in [f.null()?, f.endpoint()?.cptr()] {
        for depth in [RADIX, 0, 65] {
            by(root, depth).expect_error(FailedLookup, &[0, invalid_root])?;
        }
    }
    for depth in [0, 65, 1 << 8 | RADIX, u64::MAX] {
        by(cnode.cptr(), depth).expect_error(RangeError, &[1, 64])?;
    }
    by(cnode.cptr(), 3).expect_error(FailedLookup, &[0, depth_mismatch, 3, RADIX])?;
    by(cnode.cptr(), 6).expect_error(FailedLookup, &[0, depth_mismatch, 2, 0])?;
    by(guarded.cptr(), 6).expect_error(FailedLookup, &[0, guard_mismatch, 6, 0b11, 2])?;
    let slot = cnode.slot_at(0, RADIX as u8);
    slot.copy_from(f.slot_of(cnode), Rights::ALL)?;
    by(cnode.cptr(), RADIX).expect_error(DeleteFirst, &[])
}
