//! The control task of high criticality: the timer releases it every few milliseconds, it computes
//! a step of a control law and must be done by its deadline. It also says when the clients' periods
//! begin (every so many of its releases, the parameter `clients-release`), and when the measured
//! window begins and ends.

#![no_std]
#![no_main]

extern crate alloc;

mod plant;

use core::convert::Infallible;
use core::sync::atomic::Ordering::Relaxed;

use demo_protocol::board::{Board, ControlBoard, MAX_RELEASES};
use demo_protocol::trace::{Interval, Tracer};
use sandglass::cap::Notification;
use sandglass::timer::{Clock, Timer, TimerError};
use sandglass::{time, Environment};

use crate::plant::ControlLoop;

sandglass::entry!(main, stack = 0x4000, heap = 0x1000);

fn main(env: &'static Environment) -> Result<Infallible, TimerError> {
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let board = env.memory("control.board");
    // SAFETY: the system maps it writable for this component alone.
    let board = unsafe { ControlBoard::in_memory(board.as_mut_ptr(), board.len) };
    let timer = Timer::device(env)?;
    let deadline_ns = env.parameter("deadline") * 1000;
    let warm_up = env.parameter("warm-up") as usize;
    let releases = env.parameter("releases") as usize;
    assert!(
        releases <= MAX_RELEASES,
        "at most {MAX_RELEASES} releases fit"
    );
    let clients_release = env.parameter("clients-release") as usize;
    let clients: [Option<Notification>; 2] =
        ["a.release", "b.release"].map(|name| env.find_capability(name));
    let (begin, end): (Notification, Notification) =
        (env.capability("begin"), env.capability("end"));

    let mut tracer = Tracer::new(&board.trace, tsc.khz());
    let mut control = ControlLoop::new();
    let clock = TimerClock::new(timer.clock());
    let mut schedule = timer.every_us(env.parameter("period"));
    for number in 0..releases {
        let release = schedule.wait()?;
        let start = time::ticks();
        tracer.begin(start, Interval::OWN);
        let output = control.step(|| tracer.touch(time::ticks(), Interval::OWN));
        board.output.store(output as u64, Relaxed);
        let end = time::ticks();
        let response_ns = clock.ns(timer.clock().now() - release);

        board.responses[number].store(response_ns, Relaxed);
        board
            .misses
            .fetch_add(u64::from(response_ns > deadline_ns), Relaxed);
        board.busy.fetch_add(end - start, Relaxed);
        board.releases.fetch_add(1, Relaxed);
        if number % clients_release == 0 {
            for client in clients.into_iter().flatten() {
                client.signal();
            }
        }
        if number + 1 == warm_up {
            begin.signal();
        }
    }
    end.signal();
    // The end of this component would be the system's, and the recorder is still to come.
    loop {
        timer.notification().wait();
    }
}

/// Converts times of the timer exactly enough for responses: the runtime's conversions are in µs.
struct TimerClock {
    ticks_per_second: u64,
}

impl TimerClock {
    fn new(clock: Clock) -> Self {
        Self {
            ticks_per_second: clock.us_to_ticks(1_000_000),
        }
    }

    /// Rounds down.
    fn ns(&self, ticks: u64) -> u64 {
        (u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks_per_second)) as u64
    }
}
