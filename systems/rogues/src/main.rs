//! A component that nobody trusts, `rogue`, beside honest ones. Its parameter `attack` says what it does. The
//! component `judge` ends the system when the honest ones have said that they are done, and with a status that
//! says so when its time is over before that: `tools/tests/rogues.rs`.

#![no_std]
#![no_main]

use core::convert::Infallible;

use releases::Start;
use rogue_storm::{Storm, BUG};
use sandglass::cap::{Endpoint, Notification, SchedContext, Tcb};
use sandglass::sys::yield_now;
use sandglass::{exit, println, time, Environment, Message, Received};
use sandglass_allocations::Kind;
use sandglass_edf::Task;
use sandglass_mc_ipc::component;
use sandglass_mc_ipc::driver::{Job, WORDS};
use sandglass_partitions::Member;
use sandglass_sharing::blocking::{Device, Outcome, Ticket};
use sandglass_sharing::spawning::Meter;
use sandglass_sharing::{blocking, proxy::label, serve, spawning, workers};
use sandglass_tasks::releases::Missed;
use sandglass_tasks::TimeTriggered;
use sandglass_time_manager::{Reservation, TimeManager};
use sandglass_timeouts::{Answers, Handler, TIMED_OUT};
use sandglass_timers::Timer;

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

/// What the rogue does.
pub mod attack {
    /// As it should.
    pub const NONE: u64 = 0;
    /// Sends what should be called, over and over.
    pub const SEND: u64 = 1;
    /// Panics in its third job.
    pub const PANIC: u64 = 2;
    /// Waits in its third job for something that never comes.
    pub const BLOCK: u64 = 3;
    /// Never calls its scheduler, and runs as long as it may.
    pub const NEVER: u64 = 4;
    /// Its third job never ends.
    pub const SPIN: u64 = 5;
    /// Its second thread asks for a resource while the first is with another server, to which it has taken their
    /// time.
    pub const ELSEWHERE: u64 = 6;
    /// Sends nonsense to the launcher, over and over.
    pub const FLOOD: u64 = 7;
    /// Threads ask for something that takes for ever; one is made to ask anew, over and over.
    pub const ANEW: u64 = 8;
    /// Its second thread asks a server for something that takes for ever; the first ends meanwhile.
    pub const LEAVE: u64 = 10;
    /// Asks the server for what it dies of.
    pub const KILL: u64 = 11;
    /// Is stopped by a fault.
    pub const FAULT: u64 = 12;
    /// Asks for what is served at once, over and over.
    pub const ASK: u64 = 13;
    /// A thread asks for something that takes long; another asks meanwhile, and is refused, over and over.
    pub const REFUSED: u64 = 14;
    /// Finds the bug of a server.
    pub const BUG: u64 = 15;
    /// Arms and cancels a timer, over and over: most of its time is with the timer service.
    pub const TEASE: u64 = 16;
    /// Whatever comes to its mind, by the parameter `seed`.
    pub const STORM: u64 = 9;
}

/// The job from which on a task attacks.
const THIRD: u64 = 2;
/// Steps that no budget here is enough for.
const FOR_EVER: u64 = 1 << 40;
/// Steps of the longest request of a server that has no timeout policy.
const MOST: u64 = 10_000;
/// What making threads costs.
static METER: Meter = Meter::new();
/// Steps for which a budget here is needed several times.
const LONG: u64 = 15_000;
/// Steps that a storm works for at a time, at most: longer than its budgets.
const LONGEST_WORK: u64 = 150_000;
/// What the judge says when the honest were not done in time.
const STALLED: u8 = 3;

fn main(env: &'static Environment) -> u8 {
    match env.name() {
        "judge" => judge(env),
        "server" => serve(env, "server", |request| Message::new(0, [request.badge])),
        // Has a bug.
        "fragile" => serve(env, "server", |request| {
            assert!(request.message.word(0) != 0, "no step is too few");
            work(&request)
        }),
        "worker" => serve(env, "server", |request| work(&request)),
        "other" => serve(env, "other", |request| work(&request)),
        "device" => device(env),
        "gate" => gate(env),
        name if env.find_capability::<Endpoint>(Task::SCHEDULER).is_some() => {
            task(env, name == "rogue")
        }
        "turning" => turning(env, take_turns(env)),
        "rogue" if env.find_capability::<Endpoint>("time.turn").is_some() => {
            let time = take_turns(env);
            while time.next().is_some() && env.parameter("attack") == attack::NONE {}
            rogue(env)
        }
        "rogue" if env.find_capability::<Endpoint>("partition").is_some() => {
            // Windows begin when all threads are ready.
            Member::described(env).next();
            rogue(env)
        }
        "member" | "listener" => member(env),
        "limited" => limited(env),
        "pool" => workers::serve(env, "server", &["second"], |request| short(&request)),
        "spawner" => spawning::serve(env, "server", &METER, |request| short(&request)),
        "released" => released(env),
        "sporadic" => {
            sandglass_tasks::sporadic(env.capability("event"), |_| steps(env.parameter("work")))
        }
        name if name.starts_with("rogue") => rogue(env),
        "steady" => steady(env),
        "ticker" => ticker(env),
        _ => client(env),
    }
}

/// Works for so many steps.
fn steps(count: u64) {
    time::work(count);
}

/// Takes as many steps as it is asked to.
fn work(request: &Received) -> Message {
    steps(request.message.word(0));
    Message::EMPTY
}

/// A server behind a gate: takes as many steps as it is asked to, but not too many.
fn gate(env: &'static Environment) -> ! {
    let operation = |job: &Job, _: &mut [u64; WORDS]| {
        steps(job.words[0].min(MOST));
        0
    };
    let Err(error) = component::serve(env, operation);
    panic!("cannot have a gate: {error}");
}

/// Takes as many steps as it is asked to, but not too many: nothing else ends a request.
fn short(request: &Received) -> Message {
    steps(request.message.word(0).min(MOST));
    Message::EMPTY
}

/// A server with timeout policies: takes as many steps as it is asked to, and is stopped if that takes too long. It has a
/// bug.
fn limited(env: &'static Environment) -> ! {
    let handler = Handler::new(env, "limited");
    let ready = env.capability("handler.ready");
    env.thread("handler")
        .prepare(move || handler.serve(ready, TellThem, |_, _| {}));
    env.service("server").serve(|request| {
        if request.message.label() == BUG {
            // A fault, after which the handler puts this thread elsewhere.
            sandglass::arch::invalid_instruction()
        }
        work(&request)
    })
}

/// Nothing is left of a request that ended early.
struct TellThem;

impl Answers for TellThem {
    fn rolled_back(&mut self, _caller: Option<u64>) -> Message {
        Message::new(TIMED_OUT, [])
    }
}

/// A task of `release-timer`: each of its jobs is to end before the next release.
fn released(env: &'static Environment) -> ! {
    let start = Start::of(env);
    let (work, jobs) = (env.parameter("work"), env.parameter("jobs"));
    let period = ticks(env, env.parameter("period"));
    releases::run(env, |job| {
        steps(work);
        let start = start.get().expect("a job is released after the start");
        assert!(
            time::ticks() <= start + (job + 1) * period,
            "job {job} is late"
        );
        if job + 1 == jobs {
            env.capability::<Notification>("done").signal();
        }
    })
}

/// A thread of a partition, which has a job in every period and is to miss none.
fn member(env: &'static Environment) -> ! {
    let (work, jobs) = (env.parameter("work"), env.parameter("jobs"));
    let period = ticks(env, env.parameter("period"));
    let server: Option<Endpoint> = env.find_capability("server");
    let (mut job, mut first) = (0, 0);
    Member::described(env).run(|| {
        if job == 0 {
            first = time::ticks();
        }
        steps(work);
        if let Some(server) = server {
            let answer = server.call(Message::new(0, [1]));
            assert_eq!(answer.label(), 0, "the answer to an honest request");
        }
        job += 1;
        let taken = time::ticks() - first;
        // Jobs are anywhere in their periods.
        assert!(
            taken < job * period,
            "job {job} is late: a release was missed"
        );
        if job == jobs {
            env.capability::<Notification>("done").signal();
        }
    })
}

/// Waits until everybody honest is done, or the time is over.
fn judge(env: &'static Environment) -> u8 {
    let (done, all) = (env.capability::<Notification>("done"), env.parameter("all"));
    let mut seen = 0;
    let start = time::ticks();
    for _ in 0..env.parameter("periods") {
        seen |= done.poll();
        if seen == all {
            tell_weight(env, start);
            println!("judge: all honest components are done");
            return 0;
        }
        yield_now();
    }
    tell_weight(env, start);
    println!("judge: of {all:#x} only {seen:#x} are done");
    STALLED
}

/// Time that a proxy and the client that asks it have consumed since this was last asked for, µs, if the judge can tell.
fn weigh(env: &Environment) -> Option<[u64; 2]> {
    let consumed = |names: [&str; 3]| {
        let context: SchedContext = names.iter().find_map(|name| env.find_capability(name))?;
        context.consumed_us().ok()
    };
    let proxy = consumed([
        "sharing-inheritance.context",
        "sharing-original-ceiling.context",
        "sharing-bandwidth-inheritance.context",
    ]);
    let client = consumed(["rogue/third.context", "rogue.context", ""]);
    Some([proxy?, client?])
}

/// Says that, if the judge can tell, and how long it has been since `start`.
fn tell_weight(env: &Environment, start: u64) {
    if let Some([proxy, client]) = weigh(env) {
        let tsc = env.tsc().expect("the kernel reports the clock's frequency");
        let us = tsc.ticks_to_us(time::ticks() - start);
        println!("judge: in {us} us the proxy took {proxy} us, its client {client} us");
    }
}

/// Calls the server, once in each of its periods: so many times, or until it is answered with the label `until`. Each
/// answer is to take at most `within` µs, if that is said.
fn client(env: &'static Environment) -> ! {
    let server: Endpoint = env.capability("server");
    let done: Notification = env.capability("done");
    let steps = env.find_parameter("work").unwrap_or(1);
    let until = env.find_parameter("until");
    let within = env.find_parameter("within").map(|us| ticks(env, us));
    for _ in 0..env.parameter("calls") {
        let start = time::ticks();
        let answer = server.call(Message::new(0, [steps]));
        let taken = time::ticks() - start;
        assert!(
            within.is_none_or(|within| taken <= within),
            "an answer took {taken} ticks of {within:?}"
        );
        if until == Some(answer.label()) {
            break;
        }
        assert_eq!(answer.label(), 0, "the answer to an honest request");
        yield_now();
    }
    done.signal();
    loop {
        yield_now();
    }
}

/// Works in each of its periods. Every fourth job takes `more`, for which it has not the budget at first. Each is to take
/// at most `within` µs.
fn steady(env: &'static Environment) -> ! {
    let (work, more) = (env.parameter("work"), env.parameter("more"));
    let within = ticks(env, env.parameter("within"));
    for job in 0..env.parameter("jobs") {
        let start = time::ticks();
        steps(if job % 4 == 3 { more } else { work });
        let taken = time::ticks() - start;
        assert!(taken <= within, "job {job} took {taken} of {within} ticks");
        yield_now();
    }
    env.capability::<Notification>("done").signal();
    loop {
        yield_now();
    }
}

/// A time-triggered task: each of its jobs begins at most `within` µs after its release.
fn ticker(env: &'static Environment) -> ! {
    let within = ticks(env, env.parameter("within"));
    let (period, jobs) = (env.parameter("period"), env.parameter("jobs"));
    let task = TimeTriggered::described(env, "tick", period, Missed::CatchUp);
    task.expect("the period is described").run(|release| {
        let taken = time::ticks() - release.at;
        assert!(
            taken <= within,
            "job {} began {taken} ticks late, of {within}",
            release.number
        );
        steps(env.parameter("work"));
        if release.number + 1 == jobs {
            env.capability::<Notification>("done").signal();
        }
    })
}

/// µs in ticks of the clock.
fn ticks(env: &Environment, us: u64) -> u64 {
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    tsc.us_to_ticks(us)
}

fn rogue(env: &'static Environment) -> ! {
    match env.parameter("attack") {
        attack::SEND => {
            let server: Endpoint = env.capability("server");
            println!("rogue: sends");
            for _ in 0..20 {
                server.nb_send(Message::new(0, [1]));
            }
            // Whoever sends waits for nothing: one that calls as well would be harmless.
            loop {
                server.nb_send(Message::new(0, [1]));
                yield_now();
            }
        }
        attack::ELSEWHERE => elsewhere(env),
        attack::LEAVE => leave(env),
        attack::ASK => loop {
            env.capability::<Endpoint>("server").call(Message::EMPTY);
        },
        attack::BUG => loop {
            let answer = env
                .capability::<Endpoint>("server")
                .call(Message::new(BUG, []));
            assert_eq!(answer.label(), TIMED_OUT, "the answer to what failed");
            println!("rogue: is answered");
            yield_now();
        },
        attack::REFUSED => refused(env),
        attack::TEASE => tease(env),
        attack::SPIN => loop {
            time::pass();
        },
        attack::PANIC => panic!("as it should"),
        attack::FAULT => sandglass::arch::invalid_instruction(),
        attack::KILL => loop {
            let server: Endpoint = env.capability("server");
            server.call(Message::new(0, [0]));
            yield_now();
        },
        attack::ANEW => anew(env),
        attack::STORM => {
            let further = [(1, "second", "second.stack"), (2, "third", "third.stack")];
            for (number, name, stack) in further {
                if env.find_memory(stack).is_some() {
                    env.thread(name).prepare(move || storm(env, number));
                }
            }
            if let Some(ready) = env.find_capability::<Notification>("ready") {
                ready.signal();
            }
            storm(env, 0)
        }
        attack::FLOOD => {
            let launcher: Endpoint = env.capability("launcher");
            println!("rogue: floods");
            // The label of a timeout.
            let forged = || Message::new(5, [0; 4]);
            for _ in 0..10_000 {
                launcher.nb_send(forged());
            }
            launcher.call(forged());
            unreachable!("the launcher answers nobody");
        }
        _ => loop {
            env.capability::<Endpoint>("server").call(Message::EMPTY);
            yield_now();
        },
    }
}

/// Thread number `thread` of the rogue does whatever comes to its mind.
fn storm(env: &'static Environment, thread: u64) -> ! {
    Storm::new(
        env,
        thread,
        [
            "server",
            "far",
            "time",
            "time.turn",
            "partition",
            "listener.arrivals",
            Task::SCHEDULER,
        ],
        LONGEST_WORK,
    )
    .rage()
}

/// The first thread is with a server for a long time; the second asks for the resource meanwhile.
fn elsewhere(env: &'static Environment) -> ! {
    let (server, far): (Endpoint, Endpoint) = (env.capability("server"), env.capability("far"));
    let asks = move || loop {
        let answer = server.call(Message::new(0, [1]));
        println!("rogue: is answered {:#x}", answer.label());
        assert!(matches!(answer.label(), 0 | label::NO_TIME | label::BUSY));
        yield_now();
    };
    env.thread("second").prepare(asks);
    env.ready().signal();
    loop {
        far.call(Message::new(0, [FOR_EVER]));
    }
}

/// Ends while its second thread is with a server, which would have that one's time from then on.
fn leave(env: &'static Environment) -> ! {
    let server: Endpoint = env.capability("server");
    env.thread("second").prepare(move || {
        server.call(Message::new(0, [LONG]));
    });
    env.ready().signal();
    // The second thread is above this one, and out of time when this one runs.
    exit::exit(0)
}

/// Has the timer service work for it as long as its time lasts, which therefore ends there.
fn tease(env: &'static Environment) -> ! {
    let timer = Timer::with_parts(env.capability("timers"), env.capability("event"));
    let ahead = ticks(env, 50);
    loop {
        let armed = timer.at(time::ticks() + ahead);
        assert!(armed.is_ok() && timer.cancel().is_ok(), "it has a timer 0");
    }
}

/// The time of the main thread is with the server; that of the third goes into refused calls.
fn refused(env: &'static Environment) -> ! {
    let server: Endpoint = env.capability("server");
    env.thread("second").prepare(move || {
        server.call(Message::new(0, [FOR_EVER]));
    });
    env.thread("third").prepare(move || {
        // After the other has asked.
        yield_now();
        loop {
            let answer = server.call(Message::EMPTY);
            assert_eq!(answer.label(), label::BUSY, "its component is served");
        }
    });
    env.ready().signal();
    loop {
        yield_now();
    }
}

/// Two threads ask for something that takes for ever: the server has one's time then, which never comes back, and takes
/// none of the other. Who is stopped while it waits, and goes on, makes its request once more; the server does not
/// hear that it left the first.
fn anew(env: &'static Environment) -> ! {
    let server: Endpoint = env.capability("server");
    let asks = move || loop {
        let answer = server.call(Message::new(0, [0]));
        println!("rogue: is answered {:#x}", answer.label());
        yield_now();
    };
    for name in ["second", "third"] {
        env.thread(name).prepare(asks);
    }
    // Nobody has that of one's own threads, unless it is described.
    let threads: [Tcb; 2] =
        ["rogue/second.tcb", "rogue/third.tcb"].map(|name| env.capability(name));
    env.ready().signal();
    loop {
        yield_now();
        for thread in threads {
            let anew = thread.suspend().and_then(|()| thread.resume());
            assert!(anew.is_ok(), "a thread of its own");
        }
    }
}

/// A device that never answers but for those whose request says so.
struct Slow;

impl Device for Slow {
    fn request(&mut self, request: Received, _ticket: Ticket) -> Outcome {
        match request.message.word(0) {
            0 => Outcome::Later,
            _ => Outcome::Answer(Message::new(0, [request.badge])),
        }
    }

    fn interrupt(&mut self, _complete: &mut dyn FnMut(Ticket, Message)) {}
}

fn device(env: &'static Environment) -> ! {
    let served: Result<Infallible, _> =
        blocking::serve(env, "server", env.capability("interrupt.signal"), &mut Slow);
    match served {
        Ok(never) => match never {},
        Err(error) => panic!("the description grants what a blocking server needs: {error}"),
    }
}

/// A task of the deadline scheduler. An honest one is done when it has done its jobs, none of them late.
/// Attaches itself to a reservation of the time manager, as the parameters say.
fn take_turns(env: &'static Environment) -> TimeManager {
    let time = TimeManager::described(env, "time");
    let wanted = Reservation {
        budget_us: env.parameter("budget"),
        period_us: env.parameter("period"),
        deadline_us: env.parameter("deadline"),
        kind: Kind::Hard,
    };
    let attach = || {
        let capability = time.capability()?;
        let allocation = time.allocation(capability, 0)?;
        let reservation = time.reserve(capability, allocation, wanted)?;
        time.attach(capability, reservation)
    };
    attach().expect("the time is given by the description");
    time
}

/// A client of the time manager, whose turns must end in time.
fn turning(env: &'static Environment, time: TimeManager) -> ! {
    let (work, jobs) = (env.parameter("work"), env.parameter("jobs"));
    loop {
        let turn = time.next().expect("nobody takes it back");
        steps(work);
        assert!(
            time::ticks() <= turn.deadline,
            "turn {} is late",
            turn.number
        );
        if turn.number + 1 == jobs {
            env.capability::<Notification>("done").signal();
        }
    }
}

fn task(env: &'static Environment, is_rogue: bool) -> ! {
    let scheduler: Endpoint = env.capability(Task::SCHEDULER);
    let attack = match is_rogue {
        true => env.parameter("attack"),
        false => attack::NONE,
    };
    if attack == attack::NEVER {
        loop {
            time::pass();
        }
    }
    let (work, jobs) = (env.parameter("work"), env.parameter("jobs"));
    let shared: Option<Endpoint> = env.find_capability("server");
    let mut done = 0;
    Task::described(env).run(|job| {
        steps(work);
        if let Some(server) = shared {
            server.call(Message::new(0, [1]));
        }
        if attack == attack::NONE {
            assert!(time::ticks() <= job.deadline, "job {} is late", job.number);
            done += 1;
            if done == jobs && !is_rogue {
                env.capability::<Notification>("done").signal();
            }
        }
        if job.number < THIRD && attack != attack::STORM {
            return;
        }
        match attack {
            attack::SEND => loop {
                scheduler.nb_send(Message::EMPTY);
            },
            attack::PANIC => panic!("as it should"),
            attack::BLOCK => {
                env.capability::<Notification>("never").wait();
            }
            attack::STORM => storm(env, 0),
            attack::SPIN => loop {
                time::pass();
            },
            _ => {}
        }
    })
}
