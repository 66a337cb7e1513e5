//! 01, section 6: an access to a port that nothing is told about.

use crate::prelude::*;

pub const CHECKS: &[Check] = &[check(
    "01/6/without-call-a-port-is-accessed",
    accessed_without_call,
)];

/// By each system call that tells no result. A latched count of the timer chip is read in two bytes, of which each access
/// takes one.
fn accessed_without_call(f: &mut Fixture) -> TestResult {
    let ports = f.process.resources.io_ports(0x42, 0x43)?;
    let input = Invocation::new(ports, arch_label::IO_PORT_IN8, &[0x42], &[]);
    for call in SENDING.into_iter().chain(FIRST_PHASE) {
        // Channel 2, both bytes of the count; it is latched before its high byte changes.
        for (port, byte) in [(0x43, 0xb0), (0x42, 0xf0), (0x42, 0xab), (0x43, 0x80)] {
            ports.out8(port, byte)?;
        }
        match FIRST_PHASE.contains(&call) {
            true => input.send_first(f, call)?,
            false => input.send(call)?,
        }
        input.expect_ok(&[0xab])?;
    }
    Ok(())
}
