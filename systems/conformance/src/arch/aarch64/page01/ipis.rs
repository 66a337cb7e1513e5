//! 01, section 7: interrupts that a debug call raises, of kernels for several cores.

use conformance_kit::arch::order::{RDI, RSI};
use sandglass::cap::IrqHandler;

use crate::prelude::*;

pub const CHECKS: &[Check] = &[check("01/7/debug-send-ipi-raises-an-interrupt", raises)];

/// A software-generated one, at any core that runs.
fn raises(f: &mut Fixture) -> TestResult {
    if !f.is_for_several_cores() {
        return Err(Failure::skip("only kernels for several cores have it"));
    }
    f.needs_debug_kernel()?;
    for core in 0..f.boot.cores() {
        for number in [2, 15] {
            let (slot, signal) = (f.empty_slot()?, f.notification()?);
            let words = [number, 1, slot.index(), 64, core];
            let label = arch_label::IRQ_CONTROL_GET_TRIGGER_CORE;
            Invocation::new(boot::IRQ_CONTROL, label, &words, &[boot::CNODE.cptr()])
                .expect_ok(&[])?;
            let handler: IrqHandler = slot.capability();
            let badged = f.badged(signal, 1)?;
            handler.set_notification(badged)?;
            let before = entry(Syscall::DebugSendIPI, &[(RDI, core), (RSI, number)]);
            let thread = f.caller(&before)?;
            thread.expect_return(&thread.run(f)?, &before, &[])?;
            f.eventually("the interrupt", || signal.poll() == 1)?;
            slot.delete()?;
        }
    }
    Ok(())
}
