//! 07, section 10: words.

use conformance_kit::arch::order::{RDI, RSI};

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("07/10/words-are-little-endian", little_endian),
    check("07/10/times-are-one-word-of-microseconds", times),
];

fn little_endian(f: &mut Fixture) -> TestResult {
    const FIRST_IN_BUFFER: usize = 4;
    const LENGTH: usize = 6;
    let (endpoint, reply, buffer) = (f.endpoint()?, f.reply()?, f.buffer()?);
    let message = MessageInfo::new(1, 0, 0, LENGTH).raw();
    let registers = entry(
        Syscall::Send,
        &[(RDI, endpoint.cptr().raw()), (RSI, message)],
    );
    let thread = f.caller(&registers)?;
    thread.use_buffer(buffer)?;
    // Byte by byte, the least significant first.
    for index in FIRST_IN_BUFFER..LENGTH {
        let word = (buffer.address as usize + 8 * (1 + index)) as *mut u8;
        for byte in 0..8 {
            // SAFETY: the buffer is mapped, and nothing else uses it.
            unsafe { word.add(byte).write_volatile((0x10 * index + byte) as u8) };
        }
    }
    thread.start_and_settle(f)?;
    let received = endpoint.recv(reply).message;
    let mut words = [0; LENGTH];
    received.copy_words(&mut words);
    ensure_eq!(
        words[FIRST_IN_BUFFER..],
        [0x4746_4544_4342_4140, 0x5756_5554_5352_5150]
    );
    Ok(())
}

fn times(f: &mut Fixture) -> TestResult {
    // Budgets and periods of more than 32 bits are not cut: too large, or larger than the other.
    const MAX_US: u64 = u32::MAX as u64;
    let context = f.unconfigured_context(8)?;
    let configure = Invocation::new(
        f.control,
        label::SCHED_CONTROL_CONFIGURE_FLAGS,
        &[1_000, 1_000, 0, 0, 0],
        &[context.cptr()],
    );
    configure.expect_ok(&[])?;
    for word in [0, 1] {
        let answer = configure.with_word(word, 1 << 63 | 1_000).call();
        ensure_eq!(answer.label, RangeError as u64);
        ensure!(answer.words[1] > MAX_US, "{answer}");
    }
    // One word, whatever its value.
    let consumed = Invocation::new(context, label::SCHED_CONTEXT_CONSUMED, &[], &[]);
    consumed.expect_ok(&[0])
}
