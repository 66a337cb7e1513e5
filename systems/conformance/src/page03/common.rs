//! What the checks of every kind of invocation share.

use crate::prelude::*;

/// The last label of the profile (section 2).
const LAST_LABEL: u64 = arch_label::IRQ_CONTROL_GET_MSI;

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
