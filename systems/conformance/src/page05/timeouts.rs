//! 05, sections 2.4 and 4: timeout faults.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use conformance_kit::arch::order::{R10, RDI, RIP, RSI};

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("05/2.4/badge-and-consumed-time", badge_and_consumed),
    check("05/2.4/the-consumed-time-is-reset", consumed_is_reset),
    check("05/2.4/without-a-context-only-the-badge", only_badge),
    check(
        "05/4/a-thread-waits-for-the-reply-beyond-its-replenishment",
        waits_for_reply,
    ),
    check(
        "05/4/a-reply-of-label-0-resumes-at-the-replenishment",
        reply_resumes,
    ),
    check("05/4/a-reply-of-another-label-does-not-resume", reply_stops),
    check("05/4/a-reconfigured-context-runs-on-at-once", reconfigured),
    check("05/4/a-passive-handler-gets-no-context", no_donation),
    check("05/4/round-robin-contexts-do-not-time-out", round_robin),
    check("05/4/without-a-handler-the-thread-is-postponed", postponed),
    check(
        "05/4/a-server-times-out-with-its-own-handler-and-the-clients-badge",
        server_times_out,
    ),
    check(
        "05/4/a-reply-to-a-thread-without-budget-is-a-timeout",
        timeout_by_reply,
    ),
    check(
        "05/4/a-system-call-at-the-end-of-a-budget-is-made-once",
        calls_made_once,
    ),
    check(
        "05/4/a-queued-timeout-fault-is-received-in-its-turn",
        queued_timeout,
    ),
];

const BUDGET_US: u64 = 200;
const PERIOD_US: u64 = 10_000;
const BADGE: u64 = 0x0123_4567_89ab_cdef;
const PARAMS: SchedParams = SchedParams::new(BUDGET_US, PERIOD_US).badge(BADGE);
/// What the end of a budget may be off: the minimum budget and the timer's precision, µs.
const SLACK_US: u64 = 30;

/// A thread that counts for good, with a timeout handler.
struct Spinner {
    tcb: Tcb,
    context: SchedContext,
    endpoint: Endpoint,
    reply: Reply,
    count: &'static AtomicU64,
}

/// Starts a spinner of priority 100.
fn spinner(f: &mut Fixture, params: SchedParams) -> Result<Spinner, Failure> {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let count: &'static AtomicU64 = shared();
    let thread = ThreadParams {
        timeout_handler: Some(endpoint),
        ..f.active_on(100, params)?
    };
    let tcb = f.spawn(thread, move || loop {
        count.fetch_add(1, Relaxed);
    })?;
    Ok(Spinner {
        tcb,
        context: thread.sched_context.expect("an active thread has one"),
        endpoint,
        reply,
        count,
    })
}

impl Spinner {
    /// Waits for its timeout fault: the words of the message.
    fn timeout(&self) -> Result<Vec<u64>, Failure> {
        let message = self.endpoint.recv(self.reply).message;
        ensure_eq!(message.label(), fault::TIMEOUT);
        let mut words = vec![0; message.len()];
        message.copy_words(&mut words);
        Ok(words)
    }

    /// Whether it runs while others sleep for `us` µs.
    fn runs_within(&self, f: &mut Fixture, us: u64) -> Result<bool, Failure> {
        let before = self.count.load(Relaxed);
        f.sleep(us)?;
        Ok(self.count.load(Relaxed) != before)
    }
}

fn badge_and_consumed(f: &mut Fixture) -> TestResult {
    let spinner = spinner(f, PARAMS)?;
    for _ in 0..3 {
        let words = spinner.timeout()?;
        ensure_eq!(words.len(), 2);
        ensure_eq!(words[0], BADGE);
        ensure!(
            words[1].abs_diff(BUDGET_US) <= SLACK_US,
            "{} µs consumed of {BUDGET_US}",
            words[1]
        );
        spinner.reply.send(Message::EMPTY);
    }
    Ok(())
}

fn consumed_is_reset(f: &mut Fixture) -> TestResult {
    let spinner = spinner(f, PARAMS)?;
    ensure!(spinner.timeout()?[1] > 0);
    ensure_eq!(spinner.context.consumed_us()?, 0);
    Ok(())
}

fn only_badge(f: &mut Fixture) -> TestResult {
    let spinner = spinner(f, PARAMS)?;
    f.sleep(2 * BUDGET_US)?;
    spinner.context.unbind_tcb(spinner.tcb)?;
    ensure_eq!(spinner.timeout()?, [BADGE]);
    Ok(())
}

fn waits_for_reply(f: &mut Fixture) -> TestResult {
    // While it is queued at its handler, and while the handler has the fault.
    let spinner = spinner(f, PARAMS)?;
    f.sleep(2 * BUDGET_US)?;
    ensure!(!spinner.runs_within(f, 2 * PERIOD_US)?);
    spinner.timeout()?;
    ensure!(!spinner.runs_within(f, 2 * PERIOD_US)?);
    Ok(())
}

fn reply_resumes(f: &mut Fixture) -> TestResult {
    let spinner = spinner(f, PARAMS)?;
    spinner.timeout()?;
    spinner.reply.send(Message::EMPTY);
    // Its next budget comes a period after the first.
    ensure!(!spinner.runs_within(f, PERIOD_US / 2)?);
    ensure!(spinner.runs_within(f, PERIOD_US / 2 + BUDGET_US)?);
    Ok(())
}

fn reply_stops(f: &mut Fixture) -> TestResult {
    let spinner = spinner(f, PARAMS)?;
    spinner.timeout()?;
    spinner.reply.send(Message::new(1, []));
    ensure!(!spinner.runs_within(f, 2 * PERIOD_US)?);
    spinner.tcb.resume()?;
    ensure!(spinner.runs_within(f, BUDGET_US)?);
    Ok(())
}

fn reconfigured(f: &mut Fixture) -> TestResult {
    let spinner = spinner(f, PARAMS)?;
    spinner.timeout()?;
    f.control.configure(spinner.context, PARAMS)?;
    spinner.reply.send(Message::EMPTY);
    ensure!(spinner.runs_within(f, PERIOD_US / 2)?);
    Ok(())
}

fn no_donation(f: &mut Fixture) -> TestResult {
    let (endpoint, reply, trace) = (f.endpoint()?, f.reply()?, Trace::leak());
    let handler = f.active(200)?;
    let own = handler.sched_context.expect("an active thread has one");
    f.spawn(handler, move || {
        trace.note(endpoint.recv(reply).message.label());
    })?;
    f.settle()?;
    own.unbind()?;
    let params = ThreadParams {
        timeout_handler: Some(endpoint),
        ..f.active_on(100, PARAMS)?
    };
    let tcb = f.spawn(params, || spin())?;
    f.sleep(2 * BUDGET_US)?;
    ensure!(trace.is_empty(), "the handler ran on the faulter's context");
    let context = params.sched_context.expect("an active thread has one");
    // The context is still its own.
    ensure_eq!(
        Invocation::new(context, label::SCHED_CONTEXT_BIND, &[], &[tcb.cptr()])
            .call()
            .label,
        IllegalOperation as u64
    );
    Ok(())
}

fn round_robin(f: &mut Fixture) -> TestResult {
    let spinner = spinner(f, SchedParams::new(BUDGET_US, BUDGET_US).badge(BADGE))?;
    f.sleep(10 * BUDGET_US)?;
    ensure_eq!(spinner.endpoint.nb_recv(spinner.reply).message.len(), 0);
    ensure!(spinner.runs_within(f, 2 * BUDGET_US)?);
    Ok(())
}

fn postponed(f: &mut Fixture) -> TestResult {
    let spinner = spinner(f, PARAMS)?;
    spinner.tcb.set_timeout_endpoint(None)?;
    f.sleep(2 * BUDGET_US)?;
    ensure_eq!(spinner.endpoint.nb_recv(spinner.reply).message.len(), 0);
    ensure!(!spinner.runs_within(f, PERIOD_US / 2)?);
    ensure!(spinner.runs_within(f, PERIOD_US / 2 + BUDGET_US)?);
    Ok(())
}

/// A passive server of priority 200 that runs for good once called, with this timeout handler.
fn spinning_server(
    f: &mut Fixture,
    timeout_handler: Option<Endpoint>,
) -> Result<(Endpoint, Reply), Failure> {
    let (service, reply) = (f.endpoint()?, f.reply()?);
    let params = ThreadParams {
        timeout_handler,
        ..f.active(200)?
    };
    f.spawn(params, move || {
        service.recv(reply);
        spin();
    })?;
    f.settle()?;
    let own = params.sched_context.expect("an active thread has one");
    own.unbind()?;
    Ok((service, reply))
}

fn server_times_out(f: &mut Fixture) -> TestResult {
    let (of_server, of_client, reply) = (f.endpoint()?, f.endpoint()?, f.reply()?);
    let (service, _) = spinning_server(f, Some(of_server))?;
    let client = ThreadParams {
        timeout_handler: Some(of_client),
        ..f.active_on(100, PARAMS)?
    };
    f.spawn(client, move || {
        service.call(Message::EMPTY);
    })?;
    let message = of_server.recv(reply).message;
    ensure_eq!((message.label(), message.len()), (fault::TIMEOUT, 2));
    ensure_eq!(message.word(0), BADGE);
    ensure!(message.word(1).abs_diff(BUDGET_US) <= SLACK_US);
    let spare = f.reply()?;
    ensure_eq!(of_client.nb_recv(spare).message.len(), 0);
    Ok(())
}

fn timeout_by_reply(f: &mut Fixture) -> TestResult {
    let (of_client, reply) = (f.endpoint()?, f.reply()?);
    let (service, held) = spinning_server(f, None)?;
    let params = ThreadParams {
        timeout_handler: Some(of_client),
        ..f.active_on(100, PARAMS)?
    };
    let before = entry(Syscall::Call, &[(RDI, service.address()), (RSI, 0)]);
    let client = f.raw_with(params, &conformance_kit::arch::SYSCALL_THEN_STOP, &before)?;
    client.start()?;
    // The server uses up what the client lends; then someone else answers.
    f.sleep(2 * BUDGET_US)?;
    ensure_eq!(of_client.nb_recv(reply).message.len(), 0);
    held.send(Message::new(9, [0x99]));
    let message = of_client.nb_recv(reply).message;
    ensure_eq!((message.label(), message.len()), (fault::TIMEOUT, 2));
    ensure_eq!(message.word(0), BADGE);
    // The client has the answer, and stands at its call until the fault is replied to.
    let info = MessageInfo::new(9, 0, 0, 1).raw();
    let named = [(RDI, 0), (RSI, info), (R10, 0x99), (RIP, client.code)];
    ensure_eq!(client.registers()?, changed(&before, &named));
    f.sleep(2 * PERIOD_US)?;
    ensure_eq!(client.endpoint.nb_recv(client.reply).badge, 0);
    // A reply to a timeout fault restarts there (05, section 6): with the registers of the answer,
    // which name the null capability.
    reply.send(Message::EMPTY);
    let stopped = client.stopped(f)?;
    ensure_eq!(
        stopped.registers.get(RSI),
        MessageInfo::new(InvalidCapability as u64, 0, 0, 1).raw()
    );
    Ok(())
}

fn calls_made_once(f: &mut Fixture) -> TestResult {
    // Budgets end before, in and after system calls; each is made exactly once all the same.
    const CALLS: u64 = 400;
    let (endpoint, timeouts, reply) = (f.endpoint()?, f.endpoint()?, f.reply()?);
    let (received, wrong): (&'static AtomicU64, &'static AtomicU64) = (shared(), shared());
    f.helper(90, move || loop {
        let word = endpoint.wait().message.word(0);
        if received.fetch_add(1, Relaxed) != word {
            wrong.fetch_add(1, Relaxed);
        }
    })?;
    let handled: &'static AtomicU64 = shared();
    f.helper(150, move || {
        timeouts.recv(reply);
        loop {
            handled.fetch_add(1, Relaxed);
            reply.reply_recv(timeouts, Message::EMPTY);
        }
    })?;
    let params = ThreadParams {
        timeout_handler: Some(timeouts),
        ..f.active_on(100, SchedParams::new(25, 150))?
    };
    let done = f.done;
    f.spawn(params, move || {
        for word in 0..CALLS {
            endpoint.send(Message::new(0, [word]));
        }
        done.signal();
    })?;
    done.wait();
    f.settle()?;
    ensure!(handled.load(Relaxed) > 5, "no budget ended");
    ensure_eq!((received.load(Relaxed), wrong.load(Relaxed)), (CALLS, 0));
    Ok(())
}

fn queued_timeout(f: &mut Fixture) -> TestResult {
    // Behind a sender of higher priority, before one of lower priority.
    let spinner = spinner(f, PARAMS)?;
    f.sleep(2 * BUDGET_US)?;
    let endpoint = spinner.endpoint;
    for (priority, label) in [(50, 50), (150, 51)] {
        f.helper(priority, move || endpoint.send(Message::new(label, [])))?;
    }
    f.settle()?;
    let reply = spinner.reply;
    let labels: Vec<u64> = (0..3)
        .map(|_| endpoint.nb_recv(reply).message.label())
        .collect();
    ensure_eq!(labels, [51, fault::TIMEOUT, 50]);
    Ok(())
}
