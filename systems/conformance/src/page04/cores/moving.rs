//! Threads that move to another core with their contexts: what they take with them, and that
//! moving gives them no time that they do not have, unless it starts their budgets anew (README,
//! "Where Sandglass differs", 1).

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

use conformance_kit::arch::order::{
    R10, R12, R15, R8, R9, RAX, RDI, RDX, RFLAGS, RIP, RSI, SYSCALL_INSTRUCTION_BYTES,
};
use conformance_kit::arch::{COUNT_LOOPS, SECOND_LOOP};
use sandglass::abi::invocation::tcb_flags::FPU_DISABLED;

use super::kit::{prepared_with, runner, Beats, Cores, Runner, ENDLESS};
use crate::arch::page07::fpu::{restore, save, server, Image, AGAIN, LAST, SERVER, STATE};
use crate::fixture::{linger, SYSCALL_THEN_STOP};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("04/15/registers-move-with-a-thread", registers_move),
    check("04/15/the-fpu's-state-moves-with-a-thread", fpu_moves),
    check("04/15/the-fpu's-state-moves-with-a-server", fpu_of_server),
    check(
        "04/15/an-interrupted-system-call-moves-with-a-thread",
        call_moves,
    ),
    check("04/15/moving-an-exhausted-thread-lets-it-wait", exhausted),
    check("04/15/moving-does-not-bring-a-refill-forward", refill_time),
    check("04/15/moving-a-running-thread-grants-no-budget", running),
    check("04/15/moving-a-blocked-thread-starts-anew", blocked),
    check(
        "04/15/moving-a-thread-that-waits-on-its-timeout-handler",
        timed_out,
    ),
];

/// A period that outlasts every check, µs.
const NEVER_US: u64 = 10_000_000;

/// Moves the runner's context.
fn move_to(f: &Fixture, core: u64, context: SchedContext, params: SchedParams) -> TestResult {
    Ok(f.control_of(core)?.configure(context, params)?)
}

/// Way of `count` moves over the other cores, beginning at the second.
fn way(cores: &Cores, count: usize) -> Vec<u64> {
    let mut core = 1;
    let next = |_| {
        core = cores.after(core);
        core
    };
    (0..count).map(next).collect()
}

fn registers_move(f: &mut Fixture) -> TestResult {
    let count = &COUNT_LOOPS[..SECOND_LOOP as usize];
    let cores = Cores::new(f, 3)?;
    let params = f.active_at(1, 100, ENDLESS)?;
    let context = params.sched_context.unwrap_or(f.my_context);
    let thread = f.raw_with(params, count, &registers(&[(RAX, 0)]))?;
    let before = thread.registers()?;
    thread.start()?;
    let mut last = 0;
    for core in way(&cores, 30) {
        f.eventually("the thread counts", || {
            let seen = thread.registers().map_or(0, |seen| seen.get(RAX));
            linger();
            seen > last
        })?;
        move_to(f, core, context, ENDLESS)?;
        let seen = thread.registers()?;
        ensure!(seen.get(RAX) > last);
        last = seen.get(RAX);
        let moving = [(RIP, 0), (RAX, 0), (RFLAGS, 0)];
        ensure_eq!(changed(&seen, &moving), changed(&before, &moving));
    }
    Ok(())
}

/// A thread that loads a state that this seed gives, and saves what there is again and again.
fn fpu_user(
    f: &mut Fixture,
    core: u64,
    priority: u8,
    seed: u64,
) -> Result<(Image, SchedContext), Failure> {
    let image = Image::new(f, seed)?;
    let params = f.active_at(core, priority, ENDLESS)?;
    let code = [&restore()[..], &save(), &AGAIN].concat();
    let thread = f.raw_with(params, &code, &image.registers())?;
    thread.start()?;
    ensure_saves(f, &image)?;
    Ok((image, params.sched_context.unwrap_or(f.my_context)))
}

/// Fails unless a state is saved from now on, and is the one that was loaded.
fn ensure_saves(f: &Fixture, image: &Image) -> TestResult {
    for word in 0..=LAST {
        image.saved.write(word, 0);
    }
    f.eventually("the state is saved", || image.saved.read(LAST) != 0)?;
    // Again, since it may have been in the middle of it.
    image.saved.write(LAST, 0);
    f.eventually("the state is saved", || image.saved.read(LAST) != 0)?;
    image.expect_saved()
}

/// Another one on each core uses the FPU whenever it can.
fn fpu_moves(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 3)?;
    let mut residents = Vec::new();
    for core in cores.others() {
        residents.push(fpu_user(f, core, 90, 0x100 + core)?.0);
    }
    let (image, context) = fpu_user(f, 1, 100, 7)?;
    let mut left = 1;
    for core in way(&cores, 20) {
        move_to(f, core, context, ENDLESS)?;
        ensure_saves(f, &image)?;
        ensure_saves(f, &residents[left as usize - 1])?;
        left = core;
    }
    Ok(())
}

/// A passive server saves its state for each caller, and then loads another. The callers have no FPU, and
/// nobody else runs, so that its state stays in the FPU of the core that it leaves.
fn fpu_of_server(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let (endpoint, reply, image) = (f.endpoint()?, f.reply()?, Image::new(f, 9)?);
    let params = f.active(200)?;
    let before = entry(
        Syscall::ReplyRecv,
        &[
            (SERVER[0], image.loaded.address),
            (SERVER[1], image.saved.address),
            (SERVER[2], endpoint.address()),
            (R12, reply.address()),
        ],
    );
    let server = f.raw_with(params, &server(), &before)?;
    server.start_and_settle(f)?;
    let context = params.sched_context.unwrap_or(f.my_context);
    context.unbind_tcb(server.tcb)?;
    for (core, turn) in way(&cores, 12).into_iter().zip(1..) {
        let before: Vec<u64> = STATE.map(|word| image.loaded.read(word)).collect();
        for word in STATE {
            image.loaded.write(word, turn << 48 | word as u64);
        }
        let call = entry(Syscall::Call, &[(RDI, endpoint.address()), (RSI, 0)]);
        let params = f.active_at(core, 100, ENDLESS)?;
        let client = f.raw_with(params, &SYSCALL_THEN_STOP, &call)?;
        client.tcb.set_flags(0, FPU_DISABLED)?;
        let stopped = client.run(f)?;
        ensure_eq!(stopped.label, fault::USER_EXCEPTION);
        ensure_eq!(
            stopped.registers.get(RIP),
            client.code + SYSCALL_INSTRUCTION_BYTES
        );
        let after: Vec<u64> = STATE.map(|word| image.saved.read(word)).collect();
        ensure_eq!(after, before);
    }
    Ok(())
}

/// A thread waits in its Recv, moves, and has the registers of the call when it has its message.
fn call_moves(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 3)?;
    for core in cores.others() {
        let endpoint = f.endpoint()?;
        let before = entry(Syscall::Wait, &[(RDI, endpoint.address())]);
        let params = f.active_at(core, 100, ENDLESS)?;
        let thread = f.raw_with(params, &SYSCALL_THEN_STOP, &before)?;
        thread.start()?;
        cores.settle(f, core)?;
        let context = params.sched_context.unwrap_or(f.my_context);
        move_to(f, cores.after(core), context, ENDLESS)?;
        let message = Message::new(5, [1, 2, 3, 4]);
        endpoint.send(message);
        let stopped = thread.stopped(f)?;
        let named = [
            (RDI, 0),
            (RSI, message.info().raw()),
            (R10, 1),
            (R8, 2),
            (R9, 3),
            (R15, 4),
        ];
        ensure_eq!(stopped.registers.get(RDX), Syscall::Wait.raw());
        thread.expect_return(&stopped, &before, &named)?;
    }
    Ok(())
}

/// A runner on core 1 with this budget that has used it up.
fn used_up(f: &mut Fixture, cores: &Cores, params: SchedParams) -> Result<Runner, Failure> {
    let thread = f.active_at(1, 100, params)?;
    let used_up = prepared_with(f, thread, || ())?;
    used_up.tcb.resume()?;
    used_up.ensure_runs(f)?;
    cores.settle(f, 1)?;
    used_up.ensure_rests()?;
    Ok(used_up)
}

/// The choice of a kernel that grants a context a new budget when it moves, or does not (README,
/// "Where Sandglass differs", 1).
const fn granting(grants: bool) -> Option<Choice> {
    Some(Choice::of(
        !grants,
        "moving to another core grants no budget",
        "moving to another core grants a new budget",
    ))
}

/// A thread of lower priority runs on the core that it moves to, at once; or, if moving grants a
/// budget, when that is used up.
fn exhausted(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 3)?;
    let params = SchedParams::new(500, NEVER_US);
    let moved = used_up(f, &cores, params)?;
    for core in way(&cores, 6) {
        let before = moved.beats.count();
        move_to(f, core, moved.context, params)?;
        let lower = runner(f, core, 90)?;
        lower.ensure_runs(f)?;
        moved.ensure_rests()?;
        lower.tcb.suspend()?;
        let grants = moved.beats.count() > before;
        f.choice = granting(grants);
        if grants {
            return Ok(());
        }
    }
    // Less does not bring it back either, more only a period later.
    move_to(f, 1, moved.context, SchedParams::new(100, NEVER_US))?;
    move_to(f, 2, moved.context, SchedParams::new(5_000, NEVER_US))?;
    moved.ensure_rests()
}

/// What it had when it began comes a period later, wherever it is then.
fn refill_time(f: &mut Fixture) -> TestResult {
    const PERIOD_US: u64 = 20_000;
    /// Deadlines may be early by 1 µs (ABI 04, section 1).
    const EARLY_US: u64 = 1;
    let cores = Cores::new(f, 3)?;
    let params = SchedParams::new(500, PERIOD_US);
    for core in [1, 2, 1] {
        let (start, again): (&'static AtomicU64, &'static AtomicU64) = (shared(), shared());
        let thread = f.active_at(1, 100, params)?;
        let moved = prepared_with(f, thread, move || {
            let mut last = time::ticks();
            start.store(last, SeqCst);
            // A gap that only the end of its budget makes.
            loop {
                let now = time::ticks();
                if now - last > 5_000_000 {
                    again.store(now, SeqCst);
                    return;
                }
                last = now;
                sandglass::time::pause();
            }
        })?;
        moved.tcb.resume()?;
        f.eventually("it begins", || start.load(SeqCst) != 0)?;
        cores.settle(f, 1)?;
        move_to(f, core, moved.context, params)?;
        move_to(f, cores.after(core), moved.context, params)?;
        f.sleep(2 * PERIOD_US)?;
        moved.ensure_runs_at(f, cores.place(cores.after(core)))?;
        let passed = again.load(SeqCst) - start.load(SeqCst);
        let passed_us = f.tsc.ticks_to_us(passed);
        ensure!(
            passed_us + EARLY_US >= PERIOD_US,
            "its budget came back after {passed_us} µs"
        );
        moved.tcb.suspend()?;
    }
    Ok(())
}

/// Moved again and again while it runs, a thread gets its budget once; or, if moving grants a
/// budget, each time.
fn running(f: &mut Fixture) -> TestResult {
    const BUDGET_US: u64 = 2_000;
    /// What the kernel's entries and the emulator's turns cost, in all moves.
    const TOLERANCE_US: u64 = 400;
    let cores = Cores::new(f, 3)?;
    let params = SchedParams::new(BUDGET_US, NEVER_US);
    let thread = f.active_at(1, 100, params)?;
    let moved = prepared_with(f, thread, || ())?;
    moved.tcb.resume()?;
    moved.ensure_runs(f)?;
    let (mut consumed, mut last) = (0, 1);
    for core in way(&cores, 24) {
        last = core;
        let until = time::ticks() + f.ticks(150);
        f.eventually("time passes", || time::ticks() >= until)?;
        move_to(f, core, moved.context, params)?;
        consumed += moved.context.consumed_us()?;
    }
    let before = moved.beats.count();
    linger();
    let grants = moved.beats.count() > before;
    f.choice = granting(grants);
    if grants {
        // The last one ends, too.
        let lower = runner(f, last, 90)?;
        lower.ensure_runs(f)?;
        return moved.ensure_rests();
    }
    consumed += moved.context.consumed_us()?;
    ensure!(
        consumed <= BUDGET_US + TOLERANCE_US,
        "it consumed {consumed} µs of {BUDGET_US}"
    );
    // And it got it: what is less than the least budget was never usable.
    ensure!(
        consumed + 100 >= BUDGET_US,
        "it consumed {consumed} µs only"
    );
    Ok(())
}

/// It has used most of its budget when it blocks.
fn blocked(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 3)?;
    let params = SchedParams::new(1_000, NEVER_US);
    let (signal, beats): (_, &'static Beats) = (f.notification()?, shared());
    let (end, thread) = (f.ticks(800), f.active_at(1, 100, params)?);
    let tcb = f.prepare(thread, move || {
        let end = time::ticks() + end;
        while time::ticks() < end {
            sandglass::time::pause();
        }
        signal.wait();
        beats.run()
    })?;
    let context = thread.sched_context.unwrap_or(f.my_context);
    let moved = Runner {
        tcb,
        context,
        beats,
    };
    tcb.resume()?;
    cores.settle(f, 1)?;
    context.consumed_us()?;
    move_to(f, 2, context, params)?;
    signal.signal();
    moved.ensure_runs_at(f, cores.place(2))?;
    cores.settle(f, 2)?;
    let consumed = context.consumed_us()?;
    ensure!(consumed >= 900, "it consumed {consumed} µs only");
    Ok(())
}

/// The handler gives it a new budget, on another core, before it answers.
fn timed_out(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 3)?;
    let params = SchedParams::new(500, NEVER_US).badge(0x71);
    let (timeouts, reply) = (f.endpoint()?, f.reply()?);
    let thread = ThreadParams {
        timeout_handler: Some(timeouts),
        ..f.active_at(1, 100, params)?
    };
    let moved = prepared_with(f, thread, || ())?;
    moved.tcb.resume()?;
    for core in way(&cores, 4) {
        let fault = timeouts.recv(reply).message;
        ensure_eq!(fault.label(), fault::TIMEOUT);
        ensure_eq!(fault.registers()[0], 0x71);
        moved.ensure_rests()?;
        move_to(f, core, moved.context, params)?;
        let before = moved.beats.count();
        reply.send(Message::EMPTY);
        f.eventually("it goes on", || moved.beats.count() > before + 1)?;
    }
    Ok(())
}
