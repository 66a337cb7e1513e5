//! Section 4: TCB.

use crate::prelude::*;

pub const CHECKS: &[Check] = &[check(
    "03/4.5/priority-above-the-authority's-mcp",
    priority_above_mcp,
)];

fn priority_above_mcp(f: &mut Fixture) -> TestResult {
    let (target, authority) = (f.tcb()?, f.tcb()?);
    authority.set_mc_priority(boot::TCB, 7)?;
    for label in [label::TCB_SET_PRIORITY, label::TCB_SET_MC_PRIORITY] {
        let set = Invocation::new(target, label, &[7], &[authority.cptr()]);
        set.expect_ok(&[])?;
        for above in [8, 256, u64::MAX] {
            set.with_word(0, above).expect_error(RangeError, &[0, 7])?;
        }
    }
    Ok(())
}
