//! 07, section 10: answers of ports.

use crate::prelude::*;

pub const CHECKS: &[Check] = &[check(
    "07/10/small-answers-are-zero-extended",
    zero_extended,
)];

fn zero_extended(f: &mut Fixture) -> TestResult {
    // A range of ports at which there is nothing: all bits are set.
    const NOTHING: u16 = 0x6000;
    let ports = f.process.resources.io_ports(NOTHING, NOTHING + 7)?;
    for (label, bits) in [
        (arch_label::IO_PORT_IN8, 8),
        (arch_label::IO_PORT_IN16, 16),
        (arch_label::IO_PORT_IN32, 32),
    ] {
        let read = Invocation::new(ports, label, &[u64::from(NOTHING)], &[]);
        read.expect_ok(&[(1 << bits) - 1])?;
    }
    Ok(())
}
