//! 03, section 9.5: no capability makes calls of secure firmware.

use crate::prelude::*;

pub const CHECKS: &[Check] = &[check("03/9.5/no-capability-knows-its-label", no_smc)];

/// No boot capability but reply objects, notifications and endpoints, which know no labels; and none of any type of object.
fn no_smc(f: &mut Fixture) -> TestResult {
    let words = [1; 8];
    for slot in (1..=15).chain([f.boot.raw().sched_control.start]) {
        let cap = CPtr::new(slot);
        let answer = Invocation::new(cap, arch_label::SMC_CALL, &words, &[]).call();
        let refused = [IllegalOperation as u64, InvalidCapability as u64];
        ensure!(
            refused.contains(&answer.label),
            "slot {slot} answers {answer}"
        );
    }
    for kind in [ObjectType::Pml4, ObjectType::PageTable, ObjectType::Page] {
        let cap: CPtr = f.make(kind)?;
        let call = Invocation::new(cap, arch_label::SMC_CALL, &words, &[]);
        call.expect_error(IllegalOperation, &[])?;
    }
    Ok(())
}
