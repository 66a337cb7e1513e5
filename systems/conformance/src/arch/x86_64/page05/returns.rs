//! 05, section 6: what of an answer the return by SYSRET takes.

use conformance_kit::arch::order::{RBX, RDX, RFLAGS};
use conformance_kit::arch::STOP as UD2;

use crate::prelude::*;

pub const CHECKS: &[Check] = &[check(
    "05/6/after-a-system-call-the-return-stays-a-sysret",
    sysret_stays,
)];

fn sysret_stays(f: &mut Fixture) -> TestResult {
    let before = registers(&[(RDX, 77)]);
    let thread = f.caller(&before)?;
    let stopped = thread.run(f)?;
    let mut words = stopped.words;
    words.truncate(18);
    for (word, value) in [
        (
            fault::unknown_syscall::FAULT_IP,
            thread.code + UD2.len() as u64,
        ),
        (fault::unknown_syscall::RCX, 0xc0c0),
        (fault::unknown_syscall::R11, 0x1010),
        (fault::unknown_syscall::RBX, 0xb0b0),
        (fault::unknown_syscall::FLAGS, 0xc5),
    ] {
        words[word] = value;
    }
    thread.reply.send(Message::long(0, &words));
    // RCX and R11 are those of a SYSRET, RBX and the flags those of the reply.
    let expected = changed(&before, &[(RFLAGS, sanitised(RFLAGS, 0xc5))]);
    thread.expect_return(&thread.stopped(f)?, &expected, &[(RBX, 0xb0b0)])
}
