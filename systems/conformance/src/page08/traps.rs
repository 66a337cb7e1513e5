//! Section 5: traps that are easy to get wrong.

use crate::prelude::*;

pub const CHECKS: &[Check] = &[check(
    "08/5/mint-of-a-badged-capability-fails",
    mint_of_badged,
)];

fn mint_of_badged(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let badged = f.badged(endpoint, 5)?;
    let (source, free) = (f.slot_of(badged), f.empty_slot()?);
    let mint = Invocation::new(
        boot::CNODE,
        label::CNODE_MINT,
        &[free.index(), 64, source.index(), 64, Rights::ALL.raw(), 0],
        &[boot::CNODE.cptr()],
    );
    for badge in [0, 5, 6] {
        mint.with_word(5, badge)
            .expect_error(IllegalOperation, &[])?;
    }
    ensure!(f.is_empty(free)?, "a refused Mint filled its slot");
    Ok(())
}
