//! Which core a thread runs on: that of its scheduling context.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

use conformance_kit::arch::behind_breakpoint;

use super::kit::{affinity, passive_server, prepared, runner, Cores, Runner, ENDLESS};
use crate::fixture::here;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("04/15/there-is-an-authority-for-each-core", authorities),
    check("04/15/each-authority-is-of-another-core", own_cores),
    check("04/15/the-cores-run-at-the-same-time", together),
    check("04/15/binding-a-context-moves-the-thread", bound),
    check("04/15/set-sched-params-moves-the-thread", sched_params),
    check("04/15/configuring-moves-a-blocked-thread", |f| {
        configured(f, State::Blocked)
    }),
    check("04/15/configuring-moves-a-running-thread", |f| {
        configured(f, State::Running)
    }),
    check("04/15/configuring-moves-a-ready-thread", |f| {
        configured(f, State::Ready)
    }),
    check("04/15/configuring-moves-an-inactive-thread", |f| {
        configured(f, State::Inactive)
    }),
    check("04/15/a-thread-can-move-itself", itself),
    check("04/15/a-passive-server-runs-on-its-caller's-core", served),
    check("04/15/a-chain-of-servers-runs-on-its-caller's-core", chain),
    check(
        "04/15/a-passive-handler-runs-on-the-faulting-thread's-core",
        fault_handler,
    ),
    check(
        "04/15/a-notification's-context-brings-its-core",
        notification_context,
    ),
    check("04/15/a-new-thread-is-of-core-0", new_thread),
    check("04/15/a-new-context-is-of-core-0", new_context),
    check("04/15/a-passive-thread-keeps-its-last-core", keeps_core),
];

fn authorities(f: &mut Fixture) -> TestResult {
    let cores = f.needs_cores(2)?;
    ensure!(cores <= f.boot.raw().sched_control.len());
    let context = f.unconfigured_context(7)?;
    for core in 0..f.boot.raw().sched_control.len() {
        f.control_of(core)?.configure(context, ENDLESS)?;
    }
    Ok(())
}

fn own_cores(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    for core in cores.others() {
        for other in 0..core {
            ensure!(
                cores.place(core) != cores.place(other),
                "what is configured for core {core} runs on core {other}"
            );
        }
        runner(f, core, 7)?.ensure_runs_at(f, cores.place(core))?;
    }
    Ok(())
}

/// Also below the priority of the check, which does not wait.
fn together(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let mut runners = Vec::new();
    for core in cores.others() {
        runners.push(runner(f, core, 1)?);
    }
    for _ in 0..10 {
        for runner in &runners {
            runner.ensure_runs(f)?;
        }
    }
    Ok(())
}

/// A thread of core `core` that waits for a signal.
fn waiting(f: &mut Fixture, cores: &Cores, core: u64) -> Result<(Runner, Notification), Failure> {
    let signal = f.notification()?;
    let waiting = prepared(f, core, 100, move || {
        signal.wait();
    })?;
    waiting.tcb.resume()?;
    cores.settle(f, core)?;
    Ok((waiting, signal))
}

fn bound(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 3)?;
    for core in cores.others() {
        let (waiting, signal) = waiting(f, &cores, core)?;
        let next = cores.after(core);
        let context = f.context_on(next, ENDLESS)?;
        waiting.context.unbind_tcb(waiting.tcb)?;
        context.bind(waiting.tcb)?;
        signal.signal();
        waiting.ensure_runs_at(f, cores.place(next))?;
        // And while it is ready for nothing but a context.
        context.unbind_tcb(waiting.tcb)?;
        waiting.ensure_rests()?;
        waiting.context.bind(waiting.tcb)?;
        waiting.ensure_runs_at(f, cores.place(core))?;
        // It would not let its equals run.
        waiting.tcb.suspend()?;
    }
    Ok(())
}

fn sched_params(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 3)?;
    for core in cores.others() {
        let next = cores.after(core);
        let moved = runner(f, core, 100)?;
        moved.ensure_runs_at(f, cores.place(core))?;
        moved.context.unbind_tcb(moved.tcb)?;
        let arguments = sandglass::cap::SchedArguments {
            mcp: 0,
            priority: 100,
            sched_context: Some(f.context_on(next, ENDLESS)?),
            fault_handler: Some(f.unexpected_faults),
        };
        moved.tcb.set_sched_params(f.me, arguments)?;
        moved.ensure_runs_at(f, cores.place(next))?;
        moved.tcb.suspend()?;
    }
    Ok(())
}

/// What the thread does when its context is configured.
#[derive(Clone, Copy)]
enum State {
    Blocked,
    Running,
    /// Behind another.
    Ready,
    Inactive,
}

fn configured(f: &mut Fixture, state: State) -> TestResult {
    let cores = Cores::new(f, 3)?;
    for core in cores.others() {
        let next = cores.after(core);
        let (moved, signal) = waiting(f, &cores, core)?;
        let busy = runner(f, core, 101)?;
        match state {
            State::Blocked => busy.ensure_runs(f)?,
            State::Running => {
                busy.tcb.suspend()?;
                signal.signal();
                moved.ensure_runs_at(f, cores.place(core))?;
            }
            State::Ready => {
                busy.ensure_runs(f)?;
                signal.signal();
                moved.ensure_rests()?;
            }
            State::Inactive => moved.tcb.suspend()?,
        }
        f.control_of(next)?.configure(moved.context, ENDLESS)?;
        match state {
            State::Blocked => signal.signal(),
            State::Inactive => {
                moved.ensure_rests()?;
                signal.signal();
                moved.tcb.resume()?;
            }
            State::Running | State::Ready => {}
        }
        moved.ensure_runs_at(f, cores.place(next))?;
        moved.tcb.suspend()?;
        busy.tcb.suspend()?;
    }
    Ok(())
}

/// A thread goes round all cores by configuring its own context.
fn itself(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let trace = Trace::leak();
    let mut controls = Vec::new();
    for core in 0..cores.count() {
        controls.push((f.control_of(core)?, cores.place(core)));
    }
    let params = f.active(100)?;
    let context = params.sched_context.unwrap_or(f.my_context);
    let done: &'static AtomicU64 = shared();
    f.spawn(params, move || {
        for &(control, _) in controls.iter().chain(controls.iter().rev()) {
            let moved = control.configure(context, ENDLESS);
            trace.note(if moved.is_ok() { here() } else { u64::MAX });
        }
        done.store(1, SeqCst);
    })?;
    // It begins and ends on the check's core.
    while done.load(SeqCst) == 0 {
        f.settle()?;
        crate::fixture::linger();
    }
    let way = (0..cores.count()).chain((0..cores.count()).rev());
    let expected: Vec<u64> = way.map(|core| cores.place(core)).collect();
    ensure_eq!(trace.events(), expected);
    Ok(())
}

/// A thread of each core calls the server, and notes where it and the server ran.
fn served_by(f: &mut Fixture, cores: &Cores, endpoint: Endpoint) -> TestResult {
    for round in 0..3 {
        for core in cores.others() {
            let (place, done): (&AtomicU64, &AtomicU64) = (shared(), shared());
            let client = prepared(f, core, 100, move || {
                let answer = endpoint.call(Message::EMPTY);
                place.store(answer.registers()[0], SeqCst);
                done.store(1 + here(), SeqCst);
            })?;
            client.tcb.resume()?;
            f.eventually("the client has its answer", || done.load(SeqCst) != 0)?;
            ensure_eq!(place.load(SeqCst), cores.place(core));
            ensure_eq!(done.load(SeqCst), 1 + cores.place(core));
            client.ensure_runs_at(f, cores.place(core))?;
            client.tcb.suspend()?;
        }
        let own = endpoint.call(Message::EMPTY).registers()[0];
        ensure!(own == here(), "round {round}: for core 0, it ran on {own}");
    }
    Ok(())
}

fn served(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let endpoint = f.endpoint()?;
    passive_server(f, endpoint)?;
    served_by(f, &cores, endpoint)
}

/// Three servers, of which each calls the next.
fn chain(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let mut next = f.endpoint()?;
    passive_server(f, next)?;
    for _ in 0..2 {
        let (endpoint, reply, inner) = (f.endpoint()?, f.reply()?, next);
        super::super::kit::passive(f, 200, move || {
            endpoint.recv(reply);
            loop {
                let before = here();
                let answer = inner.call(Message::EMPTY).registers()[0];
                let same = before == answer && answer == here();
                let words = [if same { answer } else { u64::MAX }];
                reply.reply_recv(endpoint, Message::new(0, words));
            }
        })?;
        next = endpoint;
    }
    served_by(f, &cores, next)
}

fn fault_handler(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let place: &'static AtomicU64 = shared();
    super::super::kit::passive(f, 200, move || {
        let mut fault = endpoint.recv(reply).message;
        loop {
            place.store(here(), SeqCst);
            let behind = behind_breakpoint(fault.word(0));
            fault = reply
                .reply_recv(endpoint, Message::new(0, [behind]))
                .message;
        }
    })?;
    for core in cores.others() {
        let params = ThreadParams {
            fault_handler: Some(endpoint),
            ..f.active_at(core, 100, ENDLESS)?
        };
        // The handler lets it go on behind the instruction.
        let faulting = super::kit::prepared_with(f, params, || {
            conformance_kit::arch::breakpoint();
        })?;
        faulting.tcb.resume()?;
        faulting.ensure_runs_at(f, cores.place(core))?;
        ensure_eq!(place.load(SeqCst), cores.place(core));
        faulting.tcb.suspend()?;
    }
    Ok(())
}

/// A passive thread waits; the notification has contexts of one core after the other.
fn notification_context(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let (signal, trace) = (f.notification()?, Trace::leak());
    super::super::kit::passive(f, 200, move || loop {
        signal.wait();
        trace.note(here());
    })?;
    let mut expected = Vec::new();
    for core in cores.others() {
        let context = f.context_on(core, ENDLESS)?;
        context.bind_notification(signal)?;
        for _ in 0..2 {
            signal.signal();
            expected.push(cores.place(core));
            f.eventually("it is woken", || trace.len() == expected.len())?;
            cores.settle(f, core)?;
        }
        context.unbind_notification(signal)?;
    }
    ensure_eq!(trace.events(), expected);
    Ok(())
}

fn new_thread(f: &mut Fixture) -> TestResult {
    f.needs_cores(2)?;
    let tcb = f.tcb()?;
    ensure_eq!(affinity(f, tcb)?, 0);
    Ok(())
}

/// A thread of another core gets a context that was never configured.
fn new_context(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let other = runner(f, 1, 100)?;
    ensure_eq!(affinity(f, other.tcb)?, 1);
    other.context.unbind_tcb(other.tcb)?;
    let fresh = f.unconfigured_context(7)?;
    fresh.bind(other.tcb)?;
    ensure_eq!(affinity(f, other.tcb)?, 0);
    f.control_of(1)?.configure(fresh, ENDLESS)?;
    other.ensure_runs_at(f, cores.place(1))
}

fn keeps_core(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let endpoint = f.endpoint()?;
    let server = passive_server(f, endpoint)?;
    for core in cores.others() {
        let client = prepared(f, core, 100, move || {
            endpoint.call(Message::EMPTY);
        })?;
        client.tcb.resume()?;
        client.ensure_runs(f)?;
        client.tcb.suspend()?;
        ensure_eq!(affinity(f, server)?, core);
        // It keeps the core of a context that is gone, too.
        let (alone, _) = waiting(f, &cores, core)?;
        alone.context.unbind_tcb(alone.tcb)?;
        f.slot_of(alone.context).delete()?;
        ensure_eq!(affinity(f, alone.tcb)?, core);
    }
    endpoint.call(Message::EMPTY);
    ensure_eq!(affinity(f, server)?, 0);
    Ok(())
}
