//! Clients of a time manager, and who judges them. A client with `row` reserves what its parameters say, attaches itself
//! to that, and counts its turns and those that ended late; one with `rounds` gives time to the client `child`, and
//! takes it back. The judge waits for those that come to an end, prints the counts and ends the system: with status 0 if
//! no turn of `control` was late, and nothing is missing.

#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::Notification;
use sandglass::{println, time, Environment};
use sandglass_allocations::{Allowance, CapabilityId, Kind, Rate, Refusal};
use sandglass_time_manager::{Denial, Reservation, TimeManager};

sandglass::entry!(main, stack = 0x8000, heap = 0x1000);

/// Rows of the board, by the names of the clients.
const ROWS: [&str; 6] = ["control", "child", "hog", "crasher", "heir", "sleeper"];
/// What all that come to an end signal together.
const ALL: u64 = 0b111;

fn main(env: &'static Environment) -> u8 {
    if let Some(rounds) = env.find_parameter("rounds") {
        giving(env, rounds)
    } else if let Some(times) = env.find_parameter("floods") {
        flooding(TimeManager::described(env, "time"), times)
    } else if env.find_parameter("row").is_some() {
        working(env)
    } else {
        judging(env)
    }
}

/// Turns of a client, and how many of them ended late.
struct Row {
    turns: &'static AtomicU64,
    late: &'static AtomicU64,
}

/// Row `row` of the board that all share.
fn row(env: &Environment, row: u64) -> Row {
    let board = env.memory("board");
    assert!(
        (row + 1) * 16 <= board.len,
        "the board has room for row {row}"
    );
    let word = |index: u64| {
        // SAFETY: inside of the board, which stays mapped; all who see it use atomics.
        unsafe { AtomicU64::from_ptr(board.as_mut_ptr().add(index as usize * 8).cast()) }
    };
    Row {
        turns: word(row * 2),
        late: word(row * 2 + 1),
    }
}

/// Gives half of what it has to `child`, waits until that has run, and takes it back.
fn giving(env: &'static Environment, rounds: u64) -> u8 {
    let (ran, granted): (Notification, Notification) =
        (env.capability("ran"), env.capability("granted"));
    let time = TimeManager::described(env, "time");
    for round in 0..rounds {
        if let Err(denial) = give(time) {
            println!("left: round {round}: {denial}");
            return 1;
        }
        granted.signal();
        ran.wait();
        if let Err(denial) = time.capability().and_then(|own| time.revoke(own)) {
            println!("left: round {round}: {denial}");
            return 1;
        }
    }
    env.capability::<Notification>("done").signal();
    0
}

fn give(time: TimeManager) -> Result<CapabilityId, Denial> {
    let own = time.capability()?;
    let third = time.allocation(own, 0)?;
    let sixth = Rate::at_most(1, 6).map(Allowance::linear);
    let part = time.allocate(own, third, &sixth.expect("a sixth is below 1"))?;
    time.derive(own, &[part], time.client("child")?)
}

/// Asks for what it has not, and for turns that it has not, so many times.
fn flooding(time: TimeManager, times: u64) -> u8 {
    for _ in 0..times {
        assert!(time.capability().is_err(), "it was given nothing");
        assert_eq!(time.next(), None, "it is attached to nothing");
    }
    0
}

/// Works in turns, for good or until it fails; whenever it is given time, if that is taken back.
fn working(env: &'static Environment) -> u8 {
    let time = TimeManager::described(env, "time");
    if env.find_parameter("inherits").is_some() {
        env.capability::<Notification>("crashed").wait();
    }
    let granted = env
        .find_parameter("granted")
        .map(|_| env.capability::<Notification>("granted"));
    loop {
        if let Some(granted) = granted {
            granted.wait();
        }
        if let Err(denial) = attach(env, time) {
            println!("{}: {denial}", env.name());
            return 1;
        }
        run(env, time);
    }
}

/// Reserves what the parameters say. What others had is available as soon as their deadlines have passed and the
/// processor was idle: whoever has time after others asks again until then.
fn attach(env: &Environment, time: TimeManager) -> Result<(), Denial> {
    let wanted = Reservation {
        budget_us: env.parameter("budget"),
        period_us: env.parameter("period"),
        deadline_us: env.parameter("deadline"),
        kind: Kind::Hard,
    };
    let capability = time.capability()?;
    let allocation = time.allocation(capability, 0)?;
    let waits = ["inherits", "granted"]
        .iter()
        .any(|name| env.find_parameter(name).is_some());
    let reservation = loop {
        match time.reserve(capability, allocation, wanted) {
            Err(Denial::Refused(Refusal::TooMuch(_))) if waits => {}
            made => break made?,
        }
    };
    time.attach(capability, reservation)
}

/// Until the reservation is taken back.
fn run(env: &Environment, time: TimeManager) {
    let Row { turns, late } = row(env, env.parameter("row"));
    let (work, wanted) = (env.parameter("work"), env.parameter("turns"));
    let mut count = 0;
    while let Some(turn) = time.next() {
        time::work(work);
        late.fetch_add(u64::from(time::ticks() > turn.deadline), Relaxed);
        turns.fetch_add(1, Relaxed);
        count += 1;
        if env.find_parameter("sleeps").is_some() {
            env.capability::<Notification>("never").wait();
        }
        assert!(
            env.find_parameter("fails").is_none(),
            "as the description says"
        );
        if count == wanted {
            for name in ["done", "ran"] {
                if let Some(signal) = env.find_capability::<Notification>(name) {
                    signal.signal();
                }
            }
        }
    }
}

fn judging(env: &'static Environment) -> u8 {
    let done: Notification = env.capability("done");
    let mut seen = 0;
    while seen != ALL {
        seen |= done.wait();
    }
    for (number, name) in (0..).zip(ROWS) {
        let Row { turns, late } = row(env, number);
        println!(
            "{name}: {} turns, {} late",
            turns.load(Relaxed),
            late.load(Relaxed)
        );
    }
    u8::from(row(env, 0).late.load(Relaxed) > 0)
}
