//! 06, section 9: the console.

use sandglass::serial::{COM1_FIRST, PORTS};

use crate::prelude::*;

pub const CHECKS: &[Check] = &[check(
    "06/9/the-serial-port-is-not-withheld",
    serial_port_is_ours,
)];

/// The harness prints through the ports of the kernel's own console, which it was given: nobody
/// else can have them now. That this check's line appears is the other half of it.
fn serial_port_is_ours(f: &mut Fixture) -> TestResult {
    let slot = f.empty_slot()?;
    let (first, last) = (u64::from(COM1_FIRST), u64::from(COM1_FIRST + PORTS - 1));
    let issue = Invocation::new(
        boot::IO_PORT_CONTROL,
        arch_label::IO_PORT_CONTROL_ISSUE,
        &[first, last, slot.index(), 64],
        &[boot::CNODE.cptr()],
    );
    issue.expect_error(RevokeFirst, &[])?;
    // The port behind them is free.
    issue
        .with_word(0, last + 1)
        .with_word(1, last + 1)
        .expect_ok(&[])
}
