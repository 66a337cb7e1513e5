//! A scheduler whose time a time manager gives, as a component of a described system: its main thread is the client, and
//! owns the context ([`crate::supplied`]).

use alloc::format;
use alloc::vec::Vec;
use core::convert::Infallible;

use sandglass::cap::{Endpoint, SchedControl, Tcb};
use sandglass::time;
use sandglass::timer::TimerError;
use sandglass::{Environment, Message};
use sandglass_allocations::{Kind, Refusal};
use sandglass_description::policy::partitions::{names, Form, Frame, Partitions};
use sandglass_time_manager::{Denial, Reservation, TimeManager};
use sandglass_timers::clock::Clock;
use sandglass_timers::Timer;

use crate::component::{control, local};
use crate::decision::PartitionId;
use crate::supplied::{Parts, Supplied, Window};

/// Asks `manager` for the frame's time, and hands its turns to the scheduler's own thread, for good.
///
/// # Panics
/// The manager refuses for good, the scheduler's thread fails, or the table is not as the builder makes it.
pub fn run(env: &'static Environment, table: Partitions, manager: &str) -> ! {
    let frame = frame(&table).clone();
    let fills: Endpoint = env.capability(names::FILLS);
    env.thread(names::FILLER).prepare(move || {
        fills.call(Message::EMPTY);
        loop {
            time::pass();
        }
    });
    env.thread(names::SCHEDULER).prepare(move || {
        let Err(error) = schedule(env, &table);
        panic!("{error}");
    });
    env.ready().signal();
    let time = TimeManager::described(env, manager);
    let frames: Endpoint = env.capability(names::TURNS);
    loop {
        if let Err(denial) = reserve(time, &frame) {
            panic!(
                "no time for a frame of {} µs in {} µs: {denial}",
                frame.supply_us(),
                frame.length_us
            );
        }
        while time.next().is_some() {
            frames.call(Message::EMPTY);
        }
    }
}

fn frame(table: &Partitions) -> &Frame {
    match &table.form {
        Form::Frames(frames) => frames.first(),
        Form::Deadlines | Form::Priorities => None,
    }
    .expect("the builder wants a frame where time is supplied")
}

/// Makes a reservation for the frame. If the time is somebody else's who has just lost it, it is there when its deadlines
/// have passed and the processor was idle.
fn reserve(time: TimeManager, frame: &Frame) -> Result<(), Denial> {
    let wanted = Reservation {
        budget_us: frame.supply_us(),
        period_us: frame.length_us,
        deadline_us: frame.length_us,
        kind: Kind::Hard,
    };
    let capability = time.capability()?;
    let allocation = time.allocation(capability, 0)?;
    let reservation = loop {
        match time.reserve(capability, allocation, wanted) {
            Err(Denial::Refused(Refusal::TooMuch(_))) => {}
            made => break made?,
        }
    };
    time.attach(capability, reservation)
}

/// The scheduler's own thread.
fn schedule(env: &'static Environment, table: &Partitions) -> Result<Infallible, TimerError> {
    let wakes = env.capability(&names::wakes(env.name()));
    let own: Tcb = env.capability(&format!("{}/{}.tcb", env.name(), names::SCHEDULER));
    own.bind_notification(wakes)?;
    // They are started after this component, and this thread is above them: they have not run yet.
    for thread in table.partitions.iter().flat_map(|of| &of.threads) {
        env.context_of(&thread.name).unbind()?;
    }
    let filler = format!("{}/{}", env.name(), names::FILLER);
    env.context_of(&filler).unbind()?;
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let start = time::ticks();
    let mut locals: Vec<_> = table
        .partitions
        .iter()
        .map(|partition| local(table, partition, tsc, start))
        .collect();
    let clock = Clock::Served(Timer::with_parts(env.capability(names::TIMER), wakes));
    let parts = parts(env, table, clock, control(env, table));
    Supplied::new(parts, &mut locals).run()
}

fn parts(env: &Environment, table: &Partitions, clock: Clock, control: SchedControl) -> Parts {
    let tcb = |name: &str| env.capability(&format!("{name}.tcb"));
    let frame = frame(table);
    let threads = |of: &sandglass_description::policy::partitions::Partition| {
        of.threads.iter().map(|thread| tcb(&thread.name)).collect()
    };
    let count: usize = table.partitions.iter().map(|of| of.threads.len()).sum();
    let windows = frame.windows.iter().map(|window| Window {
        partition: PartitionId(window.partition as usize),
        length_us: window.length_us,
    });
    Parts {
        endpoint: env.capability(env.name()),
        clock,
        partitions: table.partitions.iter().map(threads).collect(),
        filler: tcb(&format!("{}/{}", env.name(), names::FILLER)),
        owner: tcb(env.name()),
        context: env.context_of(env.name()),
        control,
        windows: windows.collect(),
        period_us: frame.length_us,
        replies: (0..count + 3)
            .map(|index| env.capability(&names::reply(index)))
            .collect(),
    }
}
