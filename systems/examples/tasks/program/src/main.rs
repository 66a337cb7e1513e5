//! A task of each kind: what the component is, its name says. The judge measures them between two
//! releases of the time-triggered task, half a second apart.

#![no_std]
#![no_main]

use core::convert::Infallible;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::Notification;
use sandglass::{println, time, Environment};
use sandglass_tasks::releases::Missed;
use sandglass_tasks::{poll, run, sporadic, TimeTriggered};
use sandglass_timers::Refusal;

sandglass::entry!(main, stack = 0x4000, heap = 0x1000);

/// What is counted, by its place on the board.
#[derive(Clone, Copy)]
enum Count {
    /// Looks for events, and those that found one.
    Polls,
    Found,
    /// Events that were worked on.
    Events,
    /// Releases, and the longest time from one to its job, in ticks.
    Releases,
    Latest,
}

fn main(env: &'static Environment) -> u8 {
    match env.name() {
        "polling" => poll(env.capability("polled"), |flags| {
            count(env, Count::Polls).fetch_add(1, Relaxed);
            count(env, Count::Found).fetch_add(u64::from(flags != 0), Relaxed);
        }),
        "sporadic" => sporadic(env.capability("event"), |_| {
            time::work(env.parameter("job"));
            count(env, Count::Events).fetch_add(1, Relaxed);
        }),
        "time-triggered" => match time_triggered(env) {
            Ok(never) => match never {},
            Err(error) => panic!("{error}"),
        },
        "judge" => judge(env),
        // The best-effort ones, and the rate-limited one.
        _ => run(time::pass),
    }
}

/// A word of the board.
fn count(env: &Environment, count: Count) -> &'static AtomicU64 {
    let board = env.memory("board");
    // SAFETY: inside of the board's page, which stays mapped; all who see it use atomics.
    unsafe { AtomicU64::from_ptr(board.as_mut_ptr().add(count as usize * 8).cast()) }
}

fn time_triggered(env: &'static Environment) -> Result<Infallible, Refusal> {
    let (polled, event): (Notification, Notification) =
        (env.capability("polled"), env.capability("event"));
    let window: Notification = env.capability("window");
    let last = env.parameter("releases") - 1;
    let period = env.parameter("period");
    let task = TimeTriggered::described(env, "tick", period, Missed::Skip)?;
    task.run(|release| {
        let latency = time::ticks() - release.at;
        count(env, Count::Latest).fetch_max(latency, Relaxed);
        count(env, Count::Releases).fetch_add(1, Relaxed);
        polled.signal();
        event.signal();
        if [0, last].contains(&release.number) {
            window.signal();
        }
    })
}

/// What the judge reads at both ends of the window.
struct Counts {
    at: u64,
    counts: [u64; 5],
}

impl Counts {
    fn read(env: &Environment) -> Self {
        use Count::{Events, Found, Latest, Polls, Releases};
        Self {
            at: time::ticks(),
            counts: [Polls, Found, Events, Releases, Latest]
                .map(|what| count(env, what).load(Relaxed)),
        }
    }
}

fn judge(env: &'static Environment) -> u8 {
    const WATCHED: [&str; 6] = [
        "best-effort-a",
        "best-effort-b",
        "rate-limited",
        "polling",
        "sporadic",
        "time-triggered",
    ];
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let window: Notification = env.capability("window");
    let consumed = || WATCHED.map(|name| env.context_of(name).consumed_us().unwrap_or(0));

    window.wait();
    let begin = Counts::read(env);
    // What was consumed before; from now on it counts anew.
    let _ = consumed();
    window.wait();
    let end = Counts::read(env);
    let used = consumed();

    let length = tsc.ticks_to_us(end.at - begin.at);
    println!("{length} us");
    for (name, used) in WATCHED.iter().zip(used) {
        println!("{name}: {used} us");
    }
    let difference = |what: Count| end.counts[what as usize] - begin.counts[what as usize];
    let (polls, found) = (difference(Count::Polls), difference(Count::Found));
    let (events, releases) = (difference(Count::Events), difference(Count::Releases));
    let latest = end.counts[Count::Latest as usize];
    println!("{polls} polls, {found} found; {events} events; {releases} releases, latest {latest}");

    let [a, b, limited, _, sporadic, _] = used;
    let claims = [
        // Ends of the window cut a slice of the round robin, or a budget.
        ("best effort takes turns", a.abs_diff(b) <= 2_000),
        ("and gets what is left", a + b > length * 7 / 10),
        ("a rate is limited", limited.abs_diff(length / 10) <= 1_000),
        ("polling is periodic", polls.abs_diff(length / 20_000) <= 1),
        ("and finds what was signalled", found == polls),
        (
            "sporadic jobs keep to their rate",
            sporadic.abs_diff(length / 15) <= 1_000,
        ),
        (
            "and are one for several events",
            events > 0 && events < releases,
        ),
        (
            "releases do not drift",
            releases == 100 && length.abs_diff(500_000) <= 100,
        ),
        ("nor come late", latest <= tsc.us_to_ticks(100)),
    ];
    for (claim, _) in claims.iter().filter(|(_, holds)| !holds) {
        println!("not so: {claim}");
    }
    u8::from(claims.iter().any(|(_, holds)| !holds))
}
