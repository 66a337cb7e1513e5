//! Operations on a thread, or on the context of a thread, that runs on another core. When the
//! invocation returns, its effect is there: the thread executes nothing more as it was before.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

use conformance_kit::arch::order::{FS_BASE, RAX, RBX, RCX, RDI, RIP};
use conformance_kit::arch::{behind_breakpoint, class_of, FPU_LOOP, FPU_UNAVAILABLE, TLS_LOOP};
use sandglass::abi::fault::{user_exception, vm_fault};
use sandglass::abi::invocation::tcb_flags::FPU_DISABLED;

use super::kit::{prepared_with, runner, Cores, Runner, ENDLESS};
use crate::fixture::linger;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("04/15/suspending-a-thread-that-runs-elsewhere", suspend),
    check(
        "04/15/reading-registers-of-a-thread-elsewhere",
        read_registers,
    ),
    check(
        "04/15/writing-registers-of-a-thread-elsewhere",
        write_registers,
    ),
    check(
        "04/15/copying-registers-to-a-thread-elsewhere",
        copy_registers,
    ),
    check("04/15/lowering-a-thread-that-runs-elsewhere", lower),
    check("04/15/other-operations-on-a-thread-elsewhere", harmless),
    check(
        "04/15/another-address-space-for-a-thread-elsewhere",
        set_space,
    ),
    check(
        "04/15/another-tls-base-for-a-thread-elsewhere",
        set_tls_base,
    ),
    check("04/15/disabling-the-fpu-of-a-thread-elsewhere", disable_fpu),
    check("04/15/another-handler-for-a-thread-elsewhere", set_handler),
    check("04/15/unbinding-a-thread-that-runs-elsewhere", unbind),
    check(
        "04/15/unbinding-all-of-a-context-that-runs-elsewhere",
        unbind_all,
    ),
    check(
        "04/15/configuring-the-context-of-a-thread-elsewhere",
        configure,
    ),
    check("04/15/consumed-time-of-a-thread-elsewhere", consumed),
];

/// For each other core: a thread that runs there.
pub fn each(
    f: &mut Fixture,
    mut operate: impl FnMut(&mut Fixture, &Cores, Runner, u64) -> TestResult,
) -> TestResult {
    let cores = Cores::new(f, 2)?;
    for core in cores.others() {
        let runner = runner(f, core, 100)?;
        runner.ensure_runs_at(f, cores.place(core))?;
        operate(f, &cores, runner, core)?;
        // It may be gone. Whatever was done to it, the core is as good as before.
        let _ = runner.tcb.suspend();
        let next = self::runner(f, core, 99)?;
        next.ensure_runs_at(f, cores.place(core))?;
        next.tcb.suspend()?;
    }
    Ok(())
}

fn suspend(f: &mut Fixture) -> TestResult {
    each(f, |f, _, runner, _| {
        for _ in 0..20 {
            runner.tcb.suspend()?;
            runner.ensure_rests()?;
            runner.tcb.resume()?;
            runner.ensure_runs(f)?;
        }
        Ok(())
    })
}

use conformance_kit::arch::{COUNT_LOOPS as COUNT, SECOND_LOOP as SECOND};

/// A thread on core `core` that counts in a register, started, and its registers.
fn counter(f: &mut Fixture, core: u64) -> Result<(RawThread, UserContext), Failure> {
    let params = f.active_at(core, 100, ENDLESS)?;
    let before = registers(&[(RAX, 0), (RBX, 0)]);
    let thread = f.raw_with(params, &COUNT, &before)?;
    thread.start()?;
    Ok((thread, changed(&before, &[(RIP, thread.code)])))
}

/// Fails unless the thread's registers are these but for what the loop at `start` changes, and
/// `counting` grows beyond `least`; returns it.
fn ensure_counts(
    f: &mut Fixture,
    thread: &RawThread,
    expected: &UserContext,
    counting: usize,
    (start, least): (u64, u64),
) -> Result<u64, Failure> {
    let mut seen = UserContext::default();
    let mut failed = Ok(());
    f.eventually("the thread counts", || match thread.registers() {
        Ok(registers) => {
            seen = registers;
            linger();
            seen.get(counting) > least
        }
        Err(failure) => {
            failed = Err(failure);
            true
        }
    })?;
    failed?;
    ensure!(
        (start..start + SECOND).contains(&seen.get(RIP)),
        "{seen:x?}"
    );
    let moving = [
        (RIP, expected.get(RIP)),
        (counting, expected.get(counting)),
        (conformance_kit::arch::order::RFLAGS, 0),
    ];
    ensure_eq!(changed(&seen, &moving), changed(expected, &moving));
    Ok(seen.get(counting))
}

fn read_registers(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    for core in cores.others() {
        let (thread, before) = counter(f, core)?;
        let mut last = 0;
        for _ in 0..20 {
            last = ensure_counts(f, &thread, &before, RAX, (thread.code, last))?;
        }
        // And suspended by that.
        let stopped = thread.tcb.read_registers(true)?;
        linger();
        ensure_eq!(thread.registers()?, stopped);
    }
    Ok(())
}

fn write_registers(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    for core in cores.others() {
        let (thread, before) = counter(f, core)?;
        for resume in [false, true] {
            ensure_counts(f, &thread, &before, RAX, (thread.code, 10))?;
            let other = changed(&before, &[(RIP, thread.code + SECOND), (RCX, 0x1234)]);
            thread.tcb.write_registers(&other, resume)?;
            ensure_counts(f, &thread, &other, RBX, (thread.code + SECOND, 10))?;
            thread.tcb.write_registers(&before, resume)?;
        }
        thread.tcb.suspend()?;
    }
    Ok(())
}

fn copy_registers(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    for core in cores.others() {
        let (thread, before) = counter(f, core)?;
        ensure_counts(f, &thread, &before, RAX, (thread.code, 10))?;
        let source = f.tcb()?;
        let other = changed(&before, &[(RIP, thread.code + SECOND), (RCX, 0x77)]);
        source.write_registers(&other, false)?;
        let label = label::TCB_COPY_REGISTERS;
        // Frame and integer registers.
        Invocation::new(thread.tcb, label, &[0b1100], &[source.cptr()]).expect_ok(&[])?;
        ensure_counts(f, &thread, &other, RBX, (thread.code + SECOND, 10))?;
        thread.tcb.suspend()?;
    }
    Ok(())
}

fn lower(f: &mut Fixture) -> TestResult {
    each(f, |f, _, high, core| {
        let low = runner(f, core, 50)?;
        low.ensure_rests()?;
        for _ in 0..5 {
            high.tcb.set_priority(f.me, 49)?;
            high.ensure_rests()?;
            low.ensure_runs(f)?;
            high.tcb.set_priority(f.me, 51)?;
            high.ensure_runs(f)?;
            low.ensure_rests()?;
        }
        Ok(low.tcb.suspend()?)
    })
}

/// What changes nothing of how the thread runs.
fn harmless(f: &mut Fixture) -> TestResult {
    each(f, |f, _, runner, _| {
        let (signal, wrong) = (f.notification()?, f.endpoint()?);
        let (tcb, me) = (runner.tcb, f.me);
        let handler = Some(f.unexpected_faults);
        let fails = Invocation::new(tcb, u64::MAX >> 52, &[], &[]);
        for _ in 0..5 {
            tcb.set_mc_priority(me, 3)?;
            runner.ensure_runs(f)?;
            tcb.set_priority(me, 100)?;
            runner.ensure_runs(f)?;
            tcb.bind_notification(signal)?;
            runner.ensure_runs(f)?;
            tcb.unbind_notification()?;
            runner.ensure_runs(f)?;
            tcb.set_timeout_endpoint(handler)?;
            runner.ensure_runs(f)?;
            tcb.set_flags(0, 0)?;
            runner.ensure_runs(f)?;
            tcb.resume()?;
            runner.ensure_runs(f)?;
            boot::DOMAIN.set(tcb, 0)?;
            runner.ensure_runs(f)?;
            ensure!(runner.context.bind(tcb).is_err());
            runner.ensure_runs(f)?;
            fails.expect_error(IllegalOperation, &[])?;
            fails
                .on(runner.context)
                .expect_error(IllegalOperation, &[])?;
            runner.ensure_runs(f)?;
            ensure!(runner.context.unbind_notification(signal).is_err());
            let bind = label::TCB_BIND_NOTIFICATION;
            let bind = Invocation::new(tcb, bind, &[], &[wrong.cptr()]);
            bind.expect_error(IllegalOperation, &[])?;
            runner.ensure_runs(f)?;
        }
        Ok(())
    })
}

/// In an empty address space, there is no next instruction.
fn set_space(f: &mut Fixture) -> TestResult {
    each(f, |f, _, runner, _| {
        let (endpoint, reply) = (f.endpoint()?, f.reply()?);
        let root = f.vspace()?.root();
        let handler = Some(endpoint);
        runner
            .tcb
            .set_space(handler, boot::CNODE, GuardData(0), root)?;
        runner.ensure_rests()?;
        let stopped = f.stopped(runner.tcb, endpoint, reply)?;
        ensure_eq!(stopped.label, fault::VM_FAULT);
        ensure_eq!(
            stopped.words[vm_fault::IP],
            stopped.words[vm_fault::ADDRESS]
        );
        runner
            .tcb
            .set_space(handler, boot::CNODE, GuardData(0), boot::VSPACE)?;
        reply.send(Message::EMPTY);
        runner.ensure_runs(f)
    })
}

/// The thread copies the word at its FS base to a place that the check can see.
fn set_tls_base(f: &mut Fixture) -> TestResult {
    // mov rcx, fs:[0]; mov [rdi], rcx; pause; jmp to the beginning
    let cores = Cores::new(f, 2)?;
    for core in cores.others() {
        let (one, two, shown) = (f.buffer()?, f.buffer()?, f.buffer()?);
        one.write(0, 1);
        two.write(0, 2);
        let params = f.active_at(core, 100, ENDLESS)?;
        let before = registers(&[(FS_BASE, one.address), (RDI, shown.address)]);
        let thread = f.raw_with(params, &TLS_LOOP, &before)?;
        thread.start()?;
        for (word, buffer) in [(1, one), (2, two), (1, one)] {
            thread.tcb.set_tls_base(buffer.address)?;
            f.eventually("the base is another", || shown.read(0) == word)?;
        }
        thread.tcb.suspend()?;
    }
    Ok(())
}

fn disable_fpu(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    for core in cores.others() {
        let params = f.active_at(core, 100, ENDLESS)?;
        let thread = f.raw_with(params, &FPU_LOOP, &distinct())?;
        thread.start()?;
        linger();
        for _ in 0..3 {
            thread.tcb.set_flags(0, FPU_DISABLED)?;
            let stopped = thread.stopped(f)?;
            let number = class_of(stopped.words[user_exception::NUMBER]);
            ensure_eq!(number, FPU_UNAVAILABLE);
            ensure_eq!(stopped.words[user_exception::FAULT_IP], thread.code);
            thread.tcb.set_flags(FPU_DISABLED, 0)?;
            thread.reply.send(Message::EMPTY);
            linger();
        }
        thread.tcb.suspend()?;
    }
    Ok(())
}

/// The thread faults whenever it is told to.
fn set_handler(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    for core in cores.others() {
        let (first, second, reply) = (f.endpoint()?, f.endpoint()?, f.reply()?);
        let params = ThreadParams {
            fault_handler: Some(first),
            ..f.active_at(core, 100, ENDLESS)?
        };
        let told: &'static AtomicU64 = shared();
        let faulting = prepared_with(f, params, || loop {
            if told.swap(0, SeqCst) != 0 {
                // The handlers let it go on behind the instruction.
                conformance_kit::arch::breakpoint();
            }
            sandglass::time::pause();
        })?;
        faulting.tcb.resume()?;
        linger();
        for handler in [second, first, second] {
            let (root, vspace) = (boot::CNODE, boot::VSPACE);
            faulting
                .tcb
                .set_space(Some(handler), root, GuardData(0), vspace)?;
            told.store(1, SeqCst);
            let fault = handler.recv(reply).message;
            let expected = match PROFILE.hardware_debug {
                true => fault::DEBUG_EXCEPTION,
                false => fault::USER_EXCEPTION,
            };
            ensure_eq!(fault.label(), expected);
            reply.send(Message::new(0, [behind_breakpoint(fault.word(0))]));
            linger();
        }
        faulting.tcb.suspend()?;
    }
    Ok(())
}

fn unbind(f: &mut Fixture) -> TestResult {
    each(f, |f, _, runner, _| {
        for _ in 0..10 {
            runner.context.unbind_tcb(runner.tcb)?;
            runner.ensure_rests()?;
            runner.context.bind(runner.tcb)?;
            runner.ensure_runs(f)?;
        }
        Ok(())
    })
}

fn unbind_all(f: &mut Fixture) -> TestResult {
    each(f, |f, _, runner, _| {
        runner.context.unbind()?;
        runner.ensure_rests()?;
        runner.context.bind(runner.tcb)?;
        runner.ensure_runs(f)
    })
}

/// For the core that it is of.
fn configure(f: &mut Fixture) -> TestResult {
    each(f, |f, cores, runner, core| {
        for _ in 0..10 {
            f.control_of(core)?.configure(runner.context, ENDLESS)?;
            runner.ensure_runs_at(f, cores.place(core))?;
        }
        Ok(())
    })
}

/// What a thread consumes elsewhere is counted, at the latest when it stops; or, as each invocation
/// stalls it, not at all (README, "Where Sandglass differs", 7). What is counted is counted once.
fn consumed(f: &mut Fixture) -> TestResult {
    /// What a kernel that does not count it may find in its own entries.
    const ENTRIES_US: u64 = 100;
    let mut is_counted = true;
    each(f, |f, _, runner, _| {
        let start = time::ticks();
        runner.context.consumed_us()?;
        let mut sum = 0;
        for _ in 0..10 {
            runner.ensure_runs(f)?;
            sum += runner.context.consumed_us()?;
        }
        while time::ticks() < start + f.ticks(500) {
            sandglass::time::pause();
        }
        runner.tcb.suspend()?;
        sum += runner.context.consumed_us()?;
        let passed = f.tsc.ticks_to_us(time::ticks() - start);
        ensure!(sum <= passed, "{sum} µs of {passed}");
        is_counted &= sum > ENTRIES_US;
        ensure_eq!(runner.context.consumed_us()?, 0);
        runner.tcb.resume()?;
        runner.ensure_runs(f)
    })?;
    f.choice = Some(Choice::of(
        is_counted,
        "a stalled thread pays for what it ran",
        "a stalled thread does not pay for what it ran",
    ));
    Ok(())
}
