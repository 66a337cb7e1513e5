//! What a hostile thread does, by its number. All but the faults go on for good.

use rogue_storm::Storm;
use sandglass::cap::Endpoint;
use sandglass::sys::yield_now;
use sandglass::{arch, time, Environment, Message};
use sandglass_partitions::{Arrivals, Member};
use sandglass_timers::Timer;

use crate::compute;

/// A request of so many steps takes longer than any window.
const FOR_EVER: u64 = 1 << 40;
/// Who did not run for so long has lost the processor, µs.
const GAP_US: u64 = 15;
/// Threads of a partition at most.
const NEIGHBOURS: u64 = 4;

/// Does what `attack` says: one of the numbers that the experiment chooses from.
pub fn attack(env: &'static Environment, attack: u64) -> ! {
    let member = Member::described(env);
    // Windows begin when all are ready.
    member.next();
    match attack {
        0 => loop {
            core::hint::spin_loop();
        },
        1 => ask(env),
        2 => ask_at_the_end(env),
        3 => send(env),
        4 => loop {
            yield_now();
        },
        5 => fault(),
        6 => arrive(env),
        7 => loop {
            member.next();
        },
        8 => tease(env),
        9 => storm(env),
        // SAFETY: nobody has memory there: a fault.
        10 => unsafe {
            core::ptr::null::<u8>().read_volatile();
            fault()
        },
        _ => mix(env, member),
    }
}

/// Where arrivals for a thread of the own partition are reported.
pub fn arrivals(env: &Environment) -> Option<Arrivals> {
    let partition = env.parameter("partition");
    let of = |thread| {
        let name = name_of(partition, thread);
        let name = core::str::from_utf8(&name).ok()?;
        env.find_capability(name).map(Arrivals::of)
    };
    (0..NEIGHBOURS).find_map(of)
}

/// `p0t1.arrivals`, of partition 0 and thread 1: both have one digit.
fn name_of(partition: u64, thread: u64) -> [u8; 13] {
    let mut name = *b"p0t0.arrivals";
    name[1] += partition as u8;
    name[3] += thread as u8;
    name
}

fn server(env: &Environment) -> Endpoint {
    env.capability("server")
}

/// Requests that never end, or take so many `steps`.
fn ask(env: &Environment) -> ! {
    let server = server(env);
    let steps = env.find_parameter("steps").unwrap_or(FOR_EVER);
    loop {
        server.call(Message::new(0, [steps, 0]));
    }
}

/// A request that begins `lead` µs before the window is over, as far as the clock tells.
fn ask_at_the_end(env: &Environment) -> ! {
    let server = server(env);
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let [window, lead] = ["window", "lead"].map(|name| tsc.us_to_ticks(env.parameter(name)));
    let gap = tsc.us_to_ticks(GAP_US);
    let mut last = time::ticks();
    let mut begun = last;
    loop {
        let now = time::ticks();
        if now - last > gap {
            begun = now;
        }
        last = now;
        if now - begun + lead >= window {
            server.call(Message::new(0, [FOR_EVER, 0]));
        }
    }
}

/// Sends to the scheduler and to the server what should be called.
fn send(env: &Environment) -> ! {
    let scheduler: Endpoint = env.capability("partition");
    let server = server(env);
    loop {
        scheduler.nb_send(Message::EMPTY);
        server.nb_send(Message::EMPTY);
    }
}

fn arrive(env: &Environment) -> ! {
    match arrivals(env) {
        Some(arrivals) => loop {
            arrivals.report();
        },
        None => send(env),
    }
}

/// Has its timers ring as often as it may.
fn tease(env: &Environment) -> ! {
    match env.find_capability::<Endpoint>("timers") {
        Some(timers) => {
            let timer = Timer::with_parts(timers, env.capability("event"));
            loop {
                let _ = timer.at(time::ticks());
            }
        }
        None => send(env),
    }
}

fn fault() -> ! {
    arch::invalid_instruction()
}

fn storm(env: &'static Environment) -> ! {
    Storm::new(env, 0, ["server", "partition"], 20_000).rage()
}

/// A little of everything that one comes back from.
fn mix(env: &Environment, member: Member) -> ! {
    let scheduler: Endpoint = env.capability("partition");
    let arrivals = arrivals(env);
    let server = server(env);
    let mut state = env.parameter("seed");
    loop {
        state = compute(state, 1);
        let times = (state >> 40) % 64;
        match (state >> 32) % 7 {
            0 => drop(server.call(Message::new(0, [FOR_EVER, 0]))),
            1 => drop(server.call(Message::new(0, [times * 200, 0]))),
            2 => (0..times).for_each(|_| scheduler.nb_send(Message::EMPTY)),
            3 => (0..times).for_each(|_| yield_now()),
            4 => (0..times).for_each(|_| arrivals.iter().for_each(|of| of.report())),
            5 => drop(compute(0, times * 500)),
            _ => (0..times % 4).for_each(|_| member.next()),
        }
    }
}
