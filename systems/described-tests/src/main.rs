//! One program in all roles of a system that tests the launcher: each component's name says which.
//! The client runs the tests and ends the system.

#![no_std]
#![no_main]

use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};

use sandglass::arch::OutputPort;
use sandglass::cap::{nb_send_recv, Endpoint, Notification, Reply, SchedControl, SchedParams};
use sandglass::fault::Fault;
use sandglass::testing::{Suite, TestResult};
use sandglass::timer::Timer;
use sandglass::{ensure, ensure_eq, time, Environment, Message};

sandglass::entry!(main, stack = 0x8000, heap = 0x8000);

/// Labels of requests to the server.
mod request {
    /// Answer the badge, and the word plus one.
    pub const NEXT: u64 = 1;
    /// Never answer.
    pub const SPIN: u64 = 2;
}

/// Label of the timeout handler's answer; its word is the badge of the client's time.
const ROLLED_BACK: u64 = 3;
/// Where the victim faults; nothing is mapped there.
const FORBIDDEN: u64 = 0xdead_0000;
/// Badge of the watcher's signal.
const CAUGHT: u64 = 0x10;

fn main(env: &'static Environment) -> u8 {
    match env.name() {
        "client" => client(env),
        "server" => server(env),
        "victim" => victim(env),
        "watcher" => watcher(env),
        "idler" => idler(env),
        other => panic!("no role is called {other}"),
    }
}

fn server(env: &'static Environment) -> ! {
    env.thread("handler").prepare(move || handle_timeouts(env));
    env.service("work")
        .serve(|received| match received.message.label() {
            request::SPIN => loop {
                time::pass();
            },
            _ => Message::new(0, [received.badge, received.message.word(0) + 1]),
        })
}

fn handle_timeouts(env: &'static Environment) {
    let timeouts: Endpoint = env.capability("timeouts");
    let reply: Reply = env.capability("timeouts.reply");
    let ready: Notification = env.capability("handler.ready");
    let rollback = env
        .rollback("server", "work")
        .expect("the server waits for its first request");
    let mut received = nb_send_recv(ready, Message::EMPTY, timeouts, reply);
    loop {
        assert_eq!(received.badge, env.parameter("server.badge"));
        let Some(Fault::Timeout { badge, .. }) = Fault::decode(&received.message) else {
            panic!("not a timeout: {received:?}");
        };
        rollback
            .perform(reply, Message::new(ROLLED_BACK, [badge]))
            .expect("the server can be sent back");
        received = timeouts.recv(reply);
    }
}

fn victim(env: &Environment) -> u8 {
    env.capability::<Notification>("strike").wait();
    // SAFETY: nothing is mapped there: it is a fault.
    unsafe { ptr::read_volatile(FORBIDDEN as *const u8) }
}

/// Waits for the victim's fault and tells the client.
fn watcher(env: &Environment) -> ! {
    let faults: Endpoint = env.capability("faults");
    let reply: Reply = env.capability("faults.reply");
    loop {
        let received = faults.recv(reply);
        assert_eq!(received.badge, env.parameter("victim.badge"));
        match Fault::decode(&received.message) {
            Some(Fault::Memory { address, .. }) if address == FORBIDDEN => {
                env.capability::<Notification>("caught").signal();
            }
            other => panic!("not the victim's fault: {other:?}"),
        }
    }
}

/// The count in shared memory.
fn count(env: &Environment) -> &'static AtomicU64 {
    // SAFETY: the system maps it; everybody uses it through this type.
    unsafe { &*env.memory("count").as_mut_ptr().cast() }
}

fn idler(env: &Environment) -> ! {
    let count = count(env);
    loop {
        // Nobody else writes it.
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

fn client(env: &Environment) -> u8 {
    let mut suite = Suite::new();
    suite.run("a_component_finds_its_level", || {
        ensure_eq!(env.parameter("criticality"), 0);
        Ok(())
    });
    suite.run("a_passive_server_answers", || answer(env));
    suite.run("a_described_handler_rolls_the_server_back", || {
        roll_back(env)
    });
    suite.run("a_described_handler_receives_faults", || fault(env));
    let timer = Timer::device(env).expect("the timer is given");
    suite.run("an_interrupt_reaches_its_component", || sleep(env, &timer));
    suite.run("an_interrupt_has_its_badge", || signal(&timer));
    suite.run("no_deadline_is_lost_to_an_earlier_ones_interrupt", || {
        deadlines(&timer)
    });
    suite.run("controlled_time_can_be_given_anew", || {
        reconfigure(env, &timer)
    });
    suite.run("output_leaves_by_its_port", || output(env));
    suite.finish()
}

fn answer(env: &Environment) -> TestResult {
    let server: Endpoint = env.capability("server");
    let answer = server.call(Message::new(request::NEXT, [41]));
    ensure_eq!((answer.word(0), answer.word(1)), (3, 42));
    Ok(())
}

/// Again and again, so that the server is seen to have been sent back whole.
fn roll_back(env: &Environment) -> TestResult {
    let server: Endpoint = env.capability("server");
    for _ in 0..3 {
        let answer = server.call(Message::new(request::SPIN, []));
        ensure_eq!((answer.label(), answer.word(0)), (ROLLED_BACK, 7));
        self::answer(env)?;
    }
    Ok(())
}

fn fault(env: &Environment) -> TestResult {
    env.capability::<Notification>("strike").signal();
    ensure_eq!(env.capability::<Notification>("caught").wait(), CAUGHT);
    Ok(())
}

fn sleep(env: &Environment, timer: &Timer) -> TestResult {
    const SLEEP_US: u64 = 3000;
    let tsc = env.tsc().ok_or("the frequency of the clock is unknown")?;
    let start = tsc.now_us();
    timer.sleep_us(SLEEP_US)?;
    let slept = tsc.now_us() - start;
    // The clocks differ by less than a part in a hundred.
    ensure!(slept >= SLEEP_US * 99 / 100, "slept {slept} µs");
    Ok(())
}

/// So a component that waits for others too can tell who woke it.
fn signal(timer: &Timer) -> TestResult {
    const INTERRUPT: u64 = 1;
    let hpet = timer.clock();
    let deadline = hpet.now() + hpet.us_to_ticks(1000);
    ensure!(!timer.arm(deadline));
    // The input is shared: the interrupt may be another's.
    loop {
        ensure_eq!(timer.notification().wait(), INTERRUPT);
        if timer.expired(deadline)? {
            return Ok(());
        }
    }
}

/// A deadline that passes at any instant while an earlier one's interrupt is acknowledged. Edges of a masked input are lost: it
/// is reported, or it interrupts behind that.
fn deadlines(timer: &Timer) -> TestResult {
    /// Ticks: more than it takes to acknowledge.
    const MOST_AHEAD: u64 = 500;
    const SOON_US: u64 = 20;
    let clock = timer.clock();
    let soon = clock.us_to_ticks(SOON_US);
    let spin_until = |at| while clock.now() < at {};
    for ahead in 0..MOST_AHEAD {
        let earlier = clock.now() + soon;
        ensure!(!timer.arm(earlier));
        spin_until(earlier + soon);
        // It has interrupted.
        timer.notification().wait();
        let deadline = clock.now() + ahead;
        if !timer.arm(deadline) && !timer.expired(deadline)? {
            spin_until(deadline + soon);
            ensure!(
                timer.notification().poll() != 0,
                "a deadline {ahead} ticks ahead was neither reported nor did it interrupt"
            );
        }
        timer.expired(deadline)?;
        timer.notification().poll();
    }
    Ok(())
}

/// The idler, which had 100 µs in 20 ms, gets a fifth of the processor.
fn reconfigure(env: &Environment, timer: &Timer) -> TestResult {
    const WINDOW_US: u64 = 40_000;
    let control: SchedControl = env.capability("sched-control.0");
    let context = env.context_of("idler");
    // Reading resets; three periods begin in the window at most.
    context.consumed_us()?;
    timer.sleep_us(WINDOW_US)?;
    let consumed = context.consumed_us()?;
    ensure!((100..=320).contains(&consumed), "{consumed} µs");
    ensure!(count(env).load(Ordering::Relaxed) > 0);

    control.configure(context, SchedParams::new(200, 1000))?;
    // The old period still runs to its end (ABI 04, section 5).
    timer.sleep_us(20_000)?;
    context.consumed_us()?;
    timer.sleep_us(WINDOW_US)?;
    let consumed = context.consumed_us()?;
    // A period more or less at either end.
    ensure!(
        consumed.abs_diff(WINDOW_US / 5) <= 400,
        "{consumed} µs of {WINDOW_US} µs"
    );
    Ok(())
}

/// Every byte, many times over; the host compares.
fn output(env: &Environment) -> TestResult {
    let port = OutputPort::described(env, "bytes")?;
    let bytes: [u8; 256] = core::array::from_fn(|i| i as u8);
    for _ in 0..64 {
        port.write(&bytes)?;
    }
    Ok(())
}
