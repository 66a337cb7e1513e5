//! Section 6: CNode operations.

use crate::prelude::*;

pub const CHECKS: &[Check] = &[check(
    "02/6/copy-to-an-occupied-slot",
    copy_to_an_occupied_slot,
)];

fn copy_to_an_occupied_slot(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let (source, free) = (f.slot_of(endpoint), f.empty_slot()?);
    let copy = Invocation::new(
        boot::CNODE,
        label::CNODE_COPY,
        &[free.index(), 64, source.index(), 64, Rights::ALL.raw()],
        &[boot::CNODE.cptr()],
    );
    copy.expect_ok(&[])?;
    copy.expect_error(DeleteFirst, &[])?;
    // The destination is looked at before the source (check A).
    let missing = f.empty_slot()?;
    copy.with_word(2, missing.index())
        .expect_error(DeleteFirst, &[])
}
