//! 04, section 9.2: what YieldTo leaves in the registers of its caller, by which system call, and when.

use conformance_kit::arch::order::{R10, R15, R8, R9, RDI, RIP, RSI, SYSCALL_INSTRUCTION_BYTES};
use sandglass::cap::CopyRegisters;

use super::kit::{active, ensure_near, Clock};
use crate::fixture::SYSCALL_THEN_STOP;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("04/9.2/a-suspended-caller-gets-no-result", suspended),
    check("04/9.2/a-resumed-caller-gets-its-result", resumed),
    check("04/9.2/a-deferred-result-is-written", |f| {
        deferred(f, Syscall::Call)
    }),
    check("04/9.2/by-send-a-deferred-result-is-written", |f| {
        SENDING.into_iter().try_for_each(|call| deferred(f, call))
    }),
    check("04/9.2/by-send-no-immediate-result-is-written", immediate),
];

/// The words that are sent: YieldTo takes none.
const WORDS: [(usize, u64); 4] = [(R10, 1), (R8, 2), (R9, 3), (R15, 4)];

/// A thread of priority 50 that yields to a spinning one by `call`, and then stops.
struct Yielding {
    clock: Clock,
    target: Tcb,
    context: SchedContext,
    thread: RawThread,
    /// Its registers when it makes the call.
    before: UserContext,
    call: Syscall,
}

impl Yielding {
    /// As it is 400 µs after the call, while the other one runs.
    fn new(f: &mut Fixture, call: Syscall) -> Result<Self, Failure> {
        let clock = Clock::new(f)?;
        let (target, context) = active(f, 50, || spin())?;
        let info = MessageInfo::new(label::SCHED_CONTEXT_YIELD_TO, 0, 0, 4).raw();
        let named = [(RDI, context.address()), (RSI, info)];
        let before = changed(&entry(call, &named), &WORDS);
        let params = ThreadParams {
            mcp: u8::MAX,
            ..f.active(50)?
        };
        let thread = f.raw_with(params, &SYSCALL_THEN_STOP, &before)?;
        // Before the other one, which has not run yet.
        thread.start()?;
        clock.start();
        clock.sleep_until(400)?;
        let yielding = Self {
            clock,
            target,
            context,
            thread,
            before,
            call,
        };
        Ok(yielding)
    }

    /// What the invocation itself has written: the empty success reply of a Call.
    fn answered(&self) -> &'static [(usize, u64)] {
        match self.call {
            Syscall::Call => &[(RDI, 0), (RSI, 0)],
            _ => &[],
        }
    }

    /// Fails unless these are the registers behind the invocation, at `rip`.
    fn expect_registers(&self, seen: &UserContext, rip: u64) -> TestResult {
        let unsaved = conformance_kit::arch::UNSAVED.map(|register| (register, seen.get(register)));
        let expected = changed(&changed(&self.before, self.answered()), &unsaved);
        ensure_eq!(*seen, changed(&expected, &[(RIP, rip)]));
        Ok(())
    }
}

/// By each of the invocations that suspend. The caller was running: it goes on behind its call,
/// which has succeeded.
fn suspended(f: &mut Fixture) -> TestResult {
    for call in [Syscall::Call, Syscall::Send, Syscall::NBSend] {
        for by in 0..3 {
            let yielding = Yielding::new(f, call)?;
            let thread = yielding.thread;
            yielding.expect_registers(&thread.registers()?, thread.code)?;
            match by {
                0 => thread.tcb.suspend()?,
                1 => drop(thread.tcb.read_registers(true)?),
                _ => {
                    let suspend = CopyRegisters {
                        suspend_source: true,
                        ..CopyRegisters::default()
                    };
                    f.tcb()?.copy_registers(thread.tcb, suspend)?;
                }
            }
            let behind = thread.code + SYSCALL_INSTRUCTION_BYTES;
            yielding.expect_registers(&thread.registers()?, behind)?;
            // Who is told nothing takes nothing from the counter.
            ensure_near("consumed", yielding.context.consumed_us()?, 400)?;
            yielding.target.suspend()?;
            yielding.clock.sleep_until(800)?;
            yielding.expect_registers(&thread.registers()?, behind)?;
            let stopped = thread.run(f)?;
            ensure_eq!(stopped.words[0], behind);
            thread.expect_return(&stopped, &yielding.before, yielding.answered())?;
        }
    }
    Ok(())
}

/// Resume is nothing to a thread that runs, and so does not cancel what it is still told.
fn resumed(f: &mut Fixture) -> TestResult {
    let yielding = Yielding::new(f, Syscall::Call)?;
    yielding.thread.tcb.resume()?;
    yielding.target.suspend()?;
    let stopped = yielding.thread.stopped(f)?;
    ensure_near("consumed", stopped.registers.get(R10), 400)
}

/// The result is written over the empty one, whatever the call was, and starts the counter anew.
fn deferred(f: &mut Fixture, call: Syscall) -> TestResult {
    let yielding = Yielding::new(f, call)?;
    let thread = yielding.thread;
    yielding.expect_registers(&thread.registers()?, thread.code)?;
    yielding.target.suspend()?;
    let stopped = thread.stopped(f)?;
    let consumed = stopped.registers.get(R10);
    ensure_near("consumed", consumed, 400)?;
    let info = MessageInfo::new(0, 0, 0, 1).raw();
    let answer = [(RDI, 0), (RSI, info), (R10, consumed)];
    thread.expect_return(&stopped, &yielding.before, &answer)?;
    ensure_eq!(yielding.context.consumed_us()?, 0);
    Ok(())
}

/// Nothing is written, and yet the counter starts anew.
fn immediate(f: &mut Fixture) -> TestResult {
    let (clock, gate) = (Clock::new(f)?, f.notification()?);
    let (_, context) = active(f, 100, move || loop {
        gate.wait();
        clock.burn(300);
    })?;
    let yield_to = Invocation::new(context, label::SCHED_CONTEXT_YIELD_TO, &[1, 2, 3, 4], &[]);
    for call in SENDING {
        gate.signal();
        f.settle()?;
        yield_to.send(call)?;
        ensure_eq!(context.consumed_us()?, 0);
    }
    // It was something to begin with.
    gate.signal();
    f.settle()?;
    ensure_near("consumed", yield_to.ok()?[0], 300)
}
