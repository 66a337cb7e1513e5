//! Many cores at once: messages, signals, time and long operations across them.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

use super::kit::{passive_server, prepared, prepared_with, runner, Cores, Runner};
use crate::fixture::{here, linger};
use crate::prelude::*;
use conformance_kit::arch::Alarm;

pub const CHECKS: &[Check] = &[
    check("04/15/one-server-for-clients-on-all-cores", one_server),
    check(
        "04/15/a-server-on-one-core-for-clients-on-all",
        active_server,
    ),
    check("04/15/messages-between-cores-are-whole", messages),
    check("04/15/signals-between-cores-are-not-lost", signals),
    check("04/15/senders-on-all-cores-wait-by-priority", by_priority),
    check("04/15/cancelling-sends-of-threads-elsewhere", cancel),
    check("04/15/all-cores-enter-the-kernel-at-once", at_once),
    check("04/15/long-operations-beside-other-cores", long_operations),
    check(
        "04/15/yielding-to-a-thread-elsewhere-returns-at-once",
        yield_to,
    ),
    check("04/15/a-budget-ends-on-its-core", budget_ends),
    check("04/15/a-budget-comes-back-on-its-core", budget_returns),
    check(
        "04/15/a-refill-that-is-due-there-sets-that-core's-timer",
        timer_set,
    ),
    check("04/15/a-timeout-fault-arrives-from-another-core", timeout),
    check("04/15/an-interrupt-wakes-a-thread-elsewhere", interrupt),
];

/// A thread on each other core that counts `rounds` of `body`, which says whether a round was
/// good. Fails unless all rounds end, and are.
fn on_all(
    f: &mut Fixture,
    cores: &Cores,
    rounds: u64,
    body: impl Fn(u64) -> bool + Copy + Send + 'static,
    meanwhile: impl FnOnce(&mut Fixture) -> TestResult,
) -> TestResult {
    let mut counts = Vec::new();
    let mut threads = Vec::new();
    for core in cores.others() {
        let count: &'static [AtomicU64; 2] = shared();
        let thread = prepared(f, core, 100, move || {
            for _ in 0..rounds {
                let good = body(core);
                count[0].fetch_add(u64::from(good), SeqCst);
                count[1].fetch_add(1, SeqCst);
            }
        })?;
        counts.push(count);
        threads.push(thread);
    }
    for thread in &threads {
        thread.tcb.resume()?;
    }
    meanwhile(f)?;
    for count in counts {
        // As long as it goes on, it may take its time.
        let mut last = 0;
        while last < rounds {
            f.eventually("there is progress", || count[1].load(SeqCst) > last)?;
            last = count[1].load(SeqCst);
        }
        ensure_eq!(count[0].load(SeqCst), rounds);
    }
    Ok(())
}

/// It runs on the core of each, and keeps their requests apart.
fn one_server(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let endpoint = f.endpoint()?;
    passive_server(f, endpoint)?;
    let mut badged = [endpoint; 64];
    for core in cores.others() {
        badged[core as usize] = f.badged(endpoint, core)?;
    }
    let call = move |core: u64| {
        let answer = badged[core as usize].call(Message::EMPTY);
        answer.registers()[..2] == [here(), core]
    };
    on_all(f, &cores, 100, call, |_| Ok(()))
}

fn active_server(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let server = prepared(f, 1, 200, move || {
        let mut received = endpoint.recv(reply);
        loop {
            let [a, b, ..] = received.message.registers();
            let answer = Message::new(0, [a * b, here()]);
            received = reply.reply_recv(endpoint, answer);
        }
    })?;
    server.tcb.resume()?;
    let place = cores.place(1);
    let call = move |core: u64| {
        let answer = endpoint.call(Message::new(0, [core + 7, core + 11]));
        answer.registers()[..2] == [(core + 7) * (core + 11), place]
    };
    on_all(f, &cores, 100, call, |_| Ok(()))
}

/// Long messages to and fro between each core and the first, and the next.
fn messages(f: &mut Fixture) -> TestResult {
    const WORDS: usize = 100;
    let cores = Cores::new(f, 3)?;
    for core in cores.others() {
        let (endpoint, reply, done) = (f.endpoint()?, f.reply()?, shared::<AtomicU64>());
        let echo = prepared(f, cores.after(core), 100, move || {
            let mut received = endpoint.recv(reply);
            loop {
                let mut words = [0; WORDS];
                received.message.copy_words(&mut words);
                words.iter_mut().for_each(|word| *word = !*word);
                received = reply.reply_recv(endpoint, Message::long(1, &words));
            }
        })?;
        echo.tcb.resume()?;
        let client = prepared(f, core, 100, move || {
            for round in 0..50u64 {
                let words: [u64; WORDS] = core::array::from_fn(|i| round << 32 | i as u64);
                let answer = endpoint.call(Message::long(0, &words));
                let mut seen = [0; WORDS];
                answer.copy_words(&mut seen);
                let good = answer.len() == WORDS && (0..WORDS).all(|i| seen[i] == !words[i]);
                done.fetch_add(if good { 1 } else { 1 << 32 }, SeqCst);
            }
        })?;
        client.tcb.resume()?;
        let all = || done.load(SeqCst) & 0xffff_ffff == 50 || done.load(SeqCst) >> 32 != 0;
        f.eventually("all messages are answered", all)?;
        ensure_eq!(done.load(SeqCst), 50);
        client.tcb.suspend()?;
        echo.tcb.suspend()?;
    }
    Ok(())
}

/// A thread on each core signals the next one and waits for the one before.
fn signals(f: &mut Fixture) -> TestResult {
    const ROUNDS: u64 = 200;
    let cores = Cores::new(f, 3)?;
    let mut ring = Vec::new();
    for _ in cores.others() {
        ring.push(f.notification()?);
    }
    let ends: &'static AtomicU64 = shared();
    for core in cores.others() {
        let (own, next) = (
            ring[core as usize - 1],
            ring[cores.after(core) as usize - 1],
        );
        let thread = prepared(f, core, 100, move || {
            for _ in 0..ROUNDS {
                own.wait();
                next.signal();
            }
            ends.fetch_add(1, SeqCst);
        })?;
        thread.tcb.resume()?;
    }
    ring[0].signal();
    let all = cores.count() - 1;
    f.eventually("the signal goes round", || ends.load(SeqCst) == all)
}

fn by_priority(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let mut expected = Vec::new();
    for turn in 0..2u64 {
        for core in cores.others() {
            let priority = 40 + (core * 7 + turn * 3) as u8;
            let badged = f.badged(endpoint, u64::from(priority))?;
            let sender = prepared(f, core, priority, move || badged.send(Message::EMPTY))?;
            sender.tcb.resume()?;
            cores.settle(f, core)?;
            expected.push(u64::from(priority));
        }
    }
    expected.sort_unstable();
    while let Some(priority) = expected.pop() {
        ensure_eq!(endpoint.recv(reply).badge, priority);
        // Who has sent stays in its core's way.
        linger();
    }
    Ok(())
}

/// Those with the badge send again, but by then it is to nothing; the others wait on.
fn cancel(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let (badged, other) = (f.badged(endpoint, 5)?, f.badged(endpoint, 6)?);
    let (mut senders, mut staying) = (Vec::new(), Vec::new());
    for core in cores.others() {
        let own = f.copy(badged)?;
        let sender = prepared(f, core, 100, move || own.send(Message::EMPTY))?;
        let stays = prepared(f, core, 101, move || other.send(Message::EMPTY))?;
        sender.tcb.resume()?;
        stays.tcb.resume()?;
        cores.settle(f, core)?;
        f.slot_of(own).delete()?;
        senders.push(sender);
        staying.push(stays);
    }
    f.slot_of(badged).cancel_badged_sends()?;
    for (sender, core) in senders.iter().zip(cores.others()) {
        sender.ensure_runs_at(f, cores.place(core))?;
    }
    for _ in &staying {
        ensure_eq!(endpoint.recv(reply).badge, 6);
    }
    for (stays, core) in staying.iter().zip(cores.others()) {
        stays.ensure_runs_at(f, cores.place(core))?;
    }
    ensure_eq!(endpoint.nb_recv(reply).badge, 0);
    Ok(())
}

/// None waits for ever for its turn.
fn at_once(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let signal = f.notification()?;
    let enter = move |_| {
        signal.poll();
        true
    };
    on_all(f, &cores, 500, enter, |f| {
        let own = f.notification()?;
        (0..500).for_each(|_| own.signal());
        Ok(())
    })
}

/// The check makes and revokes many objects while the others make system calls.
fn long_operations(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let (endpoint, memory) = (f.endpoint()?, f.untyped(16)?);
    passive_server(f, endpoint)?;
    let slots = f.empty_slots(64)?;
    let call = move |_| endpoint.call(Message::EMPTY).registers()[0] == here();
    on_all(f, &cores, 300, call, |f| {
        for _ in 0..6 {
            memory.retype(ObjectType::Endpoint, slots, 64)?;
            f.slot_of(memory).revoke()?;
        }
        Ok(())
    })
}

/// It goes before its equals, there.
fn yield_to(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    for core in cores.others() {
        let busy = runner(f, core, 150)?;
        busy.ensure_runs(f)?;
        let equals = [runner(f, core, 100)?, runner(f, core, 100)?];
        for first in [0, 1, 1, 0] {
            // Also to one that runs, and to one of higher priority than the caller's.
            busy.context.yield_to()?;
            busy.tcb.set_priority(f.me, 255)?;
            busy.context.yield_to()?;
            busy.ensure_runs(f)?;
            equals[first].context.yield_to()?;
            busy.ensure_runs(f)?;
            equals[first].ensure_rests()?;
            busy.tcb.suspend()?;
            equals[first].ensure_runs_at(f, cores.place(core))?;
            equals[1 - first].ensure_rests()?;
            busy.tcb.set_priority(f.me, 150)?;
            busy.tcb.resume()?;
            busy.ensure_runs(f)?;
        }
        for runner in [busy, equals[0], equals[1]] {
            runner.tcb.suspend()?;
        }
    }
    Ok(())
}

/// A runner on core `core` with a budget.
fn budgeted(f: &mut Fixture, core: u64, params: SchedParams) -> Result<Runner, Failure> {
    let params = f.active_at(core, 100, params)?;
    let runner = prepared_with(f, params, || ())?;
    runner.tcb.resume()?;
    runner.ensure_runs(f)?;
    Ok(runner)
}

/// Without a word from another core.
fn budget_ends(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    for core in cores.others() {
        let lower = runner(f, core, 50)?;
        let ends = budgeted(f, core, SchedParams::new(400, 10_000_000))?;
        lower.ensure_runs(f)?;
        ends.ensure_rests()?;
        let consumed = ends.context.consumed_us()?;
        ensure!(consumed >= 390, "it consumed {consumed} µs only");
        lower.tcb.suspend()?;
    }
    Ok(())
}

/// Threads on all other cores wait for their budgets while nobody runs.
fn budget_returns(f: &mut Fixture) -> TestResult {
    const PERIOD_US: u64 = 4_000;
    let cores = Cores::new(f, 2)?;
    let mut runners = Vec::new();
    let start = time::ticks();
    for core in cores.others() {
        runners.push(budgeted(f, core, SchedParams::new(400, PERIOD_US))?);
    }
    f.sleep(10 * PERIOD_US)?;
    for runner in &runners {
        let consumed = runner.context.consumed_us()?;
        let passed = f.tsc.ticks_to_us(time::ticks() - start);
        let periods = passed / PERIOD_US + 1;
        // Most of what was due, and never more, but for how an entry overruns a budget.
        ensure!(
            (5 * 400..=periods * 450).contains(&consumed),
            "{consumed} µs in {passed}"
        );
        runner.ensure_runs(f)?;
    }
    Ok(())
}

/// An exhausted thread that blocked is resumed by another core. Its core sets its timer at once, or
/// when it enters the kernel next (README, "Where Sandglass differs", 7).
fn timer_set(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let mut all_at_once = true;
    for core in cores.some_others() {
        for busy in [false, true] {
            // The rest of the budget comes back 20 ms after its beginning.
            let params = SchedParams::new(300, 20_000);
            let waits = budgeted(f, core, params)?;
            cores.settle(f, core)?;
            waits.tcb.suspend()?;
            let lower = runner(f, core, 50)?;
            lower.ensure_runs(f)?;
            if !busy {
                lower.tcb.suspend()?;
            }
            waits.tcb.resume()?;
            waits.ensure_rests()?;
            let before = waits.beats.count();
            f.sleep(30_000)?;
            let at_once = waits.beats.count() > before;
            all_at_once &= at_once;
            if !at_once {
                // An entry of that core: its release is due by then.
                let entering = runner(f, core, 60)?;
                f.eventually("its time comes", || waits.beats.count() > before)?;
                entering.tcb.suspend()?;
            }
            waits.tcb.suspend()?;
            lower.tcb.suspend()?;
        }
    }
    f.choice = Some(Choice::of(
        all_at_once,
        "another core's timer is set at once",
        "another core's timer is set when it enters the kernel",
    ));
    Ok(())
}

fn timeout(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let (timeouts, reply) = (f.endpoint()?, f.reply()?);
    for core in cores.others() {
        let params = SchedParams::new(300, 2_000).badge(core);
        let params = ThreadParams {
            timeout_handler: Some(timeouts),
            ..f.active_at(core, 100, params)?
        };
        let late = prepared_with(f, params, || ())?;
        late.tcb.resume()?;
        for _ in 0..3 {
            let fault = timeouts.recv(reply).message;
            ensure_eq!(fault.label(), fault::TIMEOUT);
            ensure_eq!(fault.registers()[0], core);
            late.ensure_rests()?;
            // It goes on when its next refill is there, at the latest when its core enters the kernel
            // (README, "Where Sandglass differs", 7).
            reply.send(Message::EMPTY);
            f.sleep(2_000)?;
            let entering = runner(f, core, 60)?;
            entering.ensure_runs(f)?;
            entering.tcb.suspend()?;
        }
        late.tcb.suspend()?;
        while timeouts.nb_recv(reply).message.label() == fault::TIMEOUT {}
    }
    Ok(())
}

/// A timer's, for threads on one core after the other.
fn interrupt(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let (signal, trace) = (f.notification()?, Trace::leak());
    let alarm = Alarm::new(f)?;
    alarm.handler.set_notification(signal)?;
    let mut expected = Vec::new();
    for core in cores.others() {
        let waiting = prepared(f, core, 100, move || {
            signal.wait();
            trace.note(here());
        })?;
        signal.poll();
        waiting.tcb.resume()?;
        cores.settle(f, core)?;
        alarm.handler.ack()?;
        signal.poll();
        alarm.set(100)?;
        expected.push(cores.place(core));
        f.eventually("it is woken", || trace.len() == expected.len())?;
        alarm.end();
        waiting.tcb.suspend()?;
    }
    ensure_eq!(trace.events(), expected);
    Ok(())
}
