//! A timeout handler is told when a budget has run out, and decides how it goes on
//! (ABI 05, sections 4 and 6).

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::abi::context::x86_64::{COUNT, RIP, TIMEOUT_REPLY_ORDER};
use sandglass::cap::{Endpoint, Reply, Rights, SchedContext, SchedParams, Tcb};
use sandglass::fault::Fault;
use sandglass::server::{make_passive, Service};
use sandglass::testing::{shared, spin, Failure, Suite, TestResult};
use sandglass::thread::ThreadParams;
use sandglass::{ensure, ensure_eq, time, Message, Received};

use crate::fixture::{runs_on, Fixture, FULL, KERNEL_PATH_US};

const BUDGET_US: u64 = 400;
const PERIOD_US: u64 = 2_000;
const PRIORITY: u8 = 100;
const CONTEXT_BADGE: u64 = 0x77;
const HANDLER_BADGE: u64 = 5;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "timeouts",
        &[
            ("are_told_to_the_handler_with_badge_and_time", told),
            ("end_with_the_next_refill", next_refill),
            ("end_at_once_with_a_new_budget", new_budget),
            ("can_restart_the_thread_elsewhere", restart),
            ("can_stop_the_thread", stop),
            (
                "inside_a_passive_server_name_the_clients_context",
                in_server,
            ),
            ("of_round_robin_threads_do_not_exist", round_robin),
            ("without_a_handler_only_delay", no_handler),
        ],
    );
}

/// A thread with a timeout handler, which the test is.
struct Patient {
    tcb: Tcb,
    context: SchedContext,
    handler: Endpoint,
    reply: Reply,
}

impl Patient {
    fn new(
        fixture: &mut Fixture,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<Self, sandglass::SetupError> {
        let handler = fixture.process.resources.endpoint()?;
        let badged = fixture
            .process
            .resources
            .mint(handler, Rights::ALL, HANDLER_BADGE)?;
        let params = SchedParams::new(BUDGET_US, PERIOD_US).badge(CONTEXT_BADGE);
        let context = fixture.context(params)?;
        let params = ThreadParams {
            timeout_handler: Some(badged),
            ..ThreadParams::new(PRIORITY, context)
        };
        Ok(Self {
            tcb: fixture.spawn(params, body)?,
            context,
            handler,
            reply: fixture.process.resources.reply()?,
        })
    }

    fn next(&self) -> TestResult {
        check(self.handler.recv(self.reply))
    }

    fn answer_and_next(&self) -> TestResult {
        check(self.reply.reply_recv(self.handler, Message::EMPTY))
    }
}

/// Whether this is the timeout of a thread that used its whole budget.
fn check(received: Received) -> TestResult {
    ensure_eq!(received.badge, HANDLER_BADGE);
    let fault = Fault::decode(&received.message).ok_or("no fault")?;
    let Fault::Timeout { badge, consumed_us } = fault else {
        return Err(Failure::from(alloc::format!("{fault:?} is no timeout")));
    };
    ensure_eq!(badge, CONTEXT_BADGE);
    // Less than the least budget cannot be used; the kernel's end of the last path is charged
    // later.
    let least = BUDGET_US - sandglass::abi::sched::MIN_BUDGET_US;
    ensure!(
        (least..=BUDGET_US + KERNEL_PATH_US).contains(&consumed_us),
        "{consumed_us} µs consumed of {BUDGET_US}"
    );
    Ok(())
}

fn told(fixture: &mut Fixture) -> TestResult {
    let start = time::ticks();
    let patient = Patient::new(fixture, || spin())?;
    patient.next()?;
    let passed = time::ticks() - start;
    ensure!(
        passed <= fixture.ticks(BUDGET_US) + fixture.ticks(1_000),
        "the fault came after {passed} ticks"
    );
    // Its context stays with it.
    ensure!(patient.context.bind(patient.tcb).is_err());
    Ok(())
}

/// An empty answer: the thread goes on when its budget comes back, so every period has one
/// fault.
fn next_refill(fixture: &mut Fixture) -> TestResult {
    let patient = Patient::new(fixture, || spin())?;
    patient.next()?;
    let mut last = time::ticks();
    for _ in 0..4 {
        patient.answer_and_next()?;
        let now = time::ticks();
        let (passed, period) = (now - last, fixture.ticks(PERIOD_US));
        let slack = fixture.ticks(KERNEL_PATH_US);
        ensure!(
            passed.abs_diff(period) <= slack,
            "{passed} ticks between two faults, not {period}"
        );
        last = now;
    }
    Ok(())
}

/// A context that is configured anew before the answer has its whole budget at once.
fn new_budget(fixture: &mut Fixture) -> TestResult {
    let patient = Patient::new(fixture, || spin())?;
    patient.next()?;
    for _ in 0..4 {
        let params = SchedParams::new(BUDGET_US, PERIOD_US).badge(CONTEXT_BADGE);
        fixture.control.configure(patient.context, params)?;
        let start = time::ticks();
        patient.answer_and_next()?;
        let passed = time::ticks() - start;
        let limit = fixture.ticks(BUDGET_US + KERNEL_PATH_US);
        ensure!(passed <= limit, "the next fault came after {passed} ticks");
    }
    Ok(())
}

static ELSEWHERE: AtomicU64 = AtomicU64::new(0);

extern "C" fn elsewhere() -> ! {
    loop {
        ELSEWHERE.fetch_add(1, Relaxed);
    }
}

/// An answer with registers: the thread continues with these.
fn restart(fixture: &mut Fixture) -> TestResult {
    let patient = Patient::new(fixture, || spin())?;
    patient.next()?;
    ELSEWHERE.store(0, Relaxed);
    let context = patient.tcb.read_registers(false)?;
    let mut words = [0; TIMEOUT_REPLY_ORDER.len()];
    for (word, index) in words.iter_mut().zip(TIMEOUT_REPLY_ORDER) {
        *word = if index == RIP {
            elsewhere as *const () as u64
        } else {
            context.get(index)
        };
    }
    const { assert!(TIMEOUT_REPLY_ORDER.len() < COUNT) };
    check(
        patient
            .reply
            .reply_recv(patient.handler, Message::long(0, &words)),
    )?;
    ensure!(ELSEWHERE.load(Relaxed) > 0);
    Ok(())
}

/// An answer with a label other than 0: the thread is stopped until it is resumed.
fn stop(fixture: &mut Fixture) -> TestResult {
    let count: &AtomicU64 = shared();
    let patient = Patient::new(fixture, move || loop {
        count.fetch_add(1, Relaxed);
    })?;
    patient.next()?;
    patient.reply.send(Message::new(1, []));
    let before = count.load(Relaxed);
    let (done, end) = (fixture.done, time::ticks() + fixture.ticks(3 * PERIOD_US));
    fixture.spawn_full(PRIORITY - 1, move || {
        while time::ticks() < end {}
        done.signal();
    })?;
    done.wait();
    ensure_eq!(count.load(Relaxed), before);
    patient.tcb.resume()?;
    patient.next()?;
    ensure!(count.load(Relaxed) > before);
    Ok(())
}

/// The server runs on its client's context: the server's handler learns whose time is over, and
/// answers the client in the server's place, which gets its context back.
fn in_server(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let service = Service {
        ready: resources.notification()?,
        endpoint: resources.endpoint()?,
        reply: resources.reply()?,
    };
    let handler = resources.endpoint()?;
    let reply = resources.reply()?;
    let badged = resources.mint(handler, Rights::ALL, HANDLER_BADGE)?;
    let initial = fixture.context(FULL)?;
    let params = ThreadParams {
        timeout_handler: Some(badged),
        ..ThreadParams::new(PRIORITY, initial)
    };
    let server = fixture.spawn(params, move || service.serve(|_| spin()))?;
    make_passive(service.ready, server, initial)?;
    let params = SchedParams::new(BUDGET_US, PERIOD_US).badge(CONTEXT_BADGE);
    let context = fixture.context(params)?;
    let (answer, done): (&AtomicU64, _) = (shared(), fixture.done);
    let client = fixture.spawn(ThreadParams::new(PRIORITY, context), move || {
        answer.store(service.endpoint.call(Message::EMPTY).label(), Relaxed);
        done.signal();
    })?;
    check(handler.recv(reply))?;
    service.reply.send(Message::new(0x600d, []));
    done.wait();
    ensure_eq!(answer.load(Relaxed), 0x600d);
    fixture.control.configure(context, params)?;
    ensure!(
        runs_on(client, PRIORITY, context),
        "the client did not get its context back"
    );
    Ok(())
}

fn round_robin(fixture: &mut Fixture) -> TestResult {
    let handler = fixture.process.resources.endpoint()?;
    let reply = fixture.process.resources.reply()?;
    let context = fixture.context(SchedParams::new(BUDGET_US, BUDGET_US))?;
    let params = ThreadParams {
        timeout_handler: Some(handler),
        ..ThreadParams::new(PRIORITY, context)
    };
    let (done, end) = (fixture.done, time::ticks() + fixture.ticks(10 * BUDGET_US));
    fixture.spawn(params, move || {
        while time::ticks() < end {}
        done.signal();
    })?;
    done.wait();
    ensure_eq!(handler.nb_recv(reply).message, Message::EMPTY);
    Ok(())
}

fn no_handler(fixture: &mut Fixture) -> TestResult {
    let context = fixture.context(SchedParams::new(BUDGET_US, PERIOD_US))?;
    let start = time::ticks();
    let (done, work) = (fixture.done, fixture.ticks(3 * PERIOD_US));
    fixture.spawn(ThreadParams::new(PRIORITY, context), move || {
        while time::ticks() < start + work {}
        done.signal();
    })?;
    done.wait();
    ensure!(time::ticks() - start >= work);
    Ok(())
}
