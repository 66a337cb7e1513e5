//! The scheduler as a component of a described system: what its `[partitions]` says.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;

use sandglass::cap::{SchedContext, SchedControl, SchedParams, Tcb};
use sandglass::time::{self, Tsc};
use sandglass::timer::TimerError;
use sandglass::Environment;
use sandglass_description::policy::partitions::{
    self as described, granule, names, Form, Frame, Partitions,
};
use sandglass_description::policy::Table;
use sandglass_timers::clock::{Clock, Names};

use crate::cyclic::{Cyclic, Placed, Schedule};
use crate::decision::PartitionId;
use crate::driver::{watch, Driver, Partition, Parts, Servers, FULL_US};
use crate::hierarchy::{Hierarchy, Windows};
use crate::local::{Grid, Kind, Local, LocalQueues, Thread, READY_SLOTS};
use crate::marks::Marks;
use crate::periodic::{Order, Parameters, Periodic, Queues, Reservation};
use crate::queue::{Memory, Owned, LEAST_SLOTS};
use crate::supply;

/// How long threads may take to be ready, µs.
const READY_WITHIN_US: u64 = 1_000_000;
/// The start is so much later than all is ready, µs.
const LEAD_US: u64 = 1_000;

/// Schedules the partitions of the component's table, for good.
///
/// # Errors
/// The kernel refuses something, or there is no timer.
///
/// # Panics
/// The component has no table, or lacks what `[partitions]` gives.
pub fn run(env: &'static Environment) -> Result<Infallible, TimerError> {
    let table = table(env);
    if let Some(manager) = table.manager.clone() {
        supply::run(env, table, &manager);
    }
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let clock = Clock::described(
        env,
        Names {
            registers: names::REGISTERS,
            timer: names::TIMER,
            pit: names::PIT,
        },
    )?;
    let own: Tcb = env.capability(&format!("{}.tcb", env.name()));
    own.bind_notification(clock.notification())?;
    if table.bound_us.is_some() {
        let (wake, idle) = (env.capability(names::WAKE), env.capability(names::IDLE));
        env.thread(names::WATCHER)
            .prepare(move || watch(wake, idle));
    }
    env.ready().signal();
    let mut driver = Driver::new(parts(env, &table, clock));
    driver.await_all(tsc.us_to_ticks(READY_WITHIN_US))?;
    take_contexts(env, &table)?;
    let start = time::ticks() + tsc.us_to_ticks(LEAD_US);
    let windows = windows(&table, tsc, start);
    let locals = table
        .partitions
        .iter()
        .map(|partition| local(&table, partition, tsc, start))
        .collect::<Vec<_>>()
        .leak();
    let mut hierarchy = Hierarchy::new(windows, locals);
    let mut marks = Marks::begin(&table, contexts(env, &table), start);
    loop {
        // Nobody ends it.
        driver.run(&mut hierarchy, &mut marks)?;
    }
}

fn table(env: &Environment) -> Partitions {
    // SAFETY: the builder packs the table as a file, which nobody writes.
    let bytes = unsafe { env.memory(Partitions::NAME).as_bytes() };
    Partitions::decode(bytes).expect("the builder made the table")
}

fn parts(env: &Environment, table: &Partitions, clock: Clock) -> Parts {
    let partitions = table.partitions.iter().map(|partition| {
        let threads = partition.threads.iter();
        let tcbs = threads.map(|thread| env.capability(&format!("{}.tcb", thread.name)));
        Partition {
            context: env.context_of(&partition.threads[0].name),
            threads: tcbs.collect(),
            badge: partition.badge,
            calls_servers: partition.calls_servers,
        }
    });
    let count: usize = table.partitions.iter().map(|of| of.threads.len()).sum();
    Parts {
        endpoint: env.capability(env.name()),
        clock,
        partitions: partitions.collect(),
        replies: (0..=count)
            .map(|index| env.capability(&names::reply(index)))
            .collect(),
        servers: table.bound_us.map(|bound_us| Servers {
            control: control(env, table),
            bound_us,
            watcher: env.capability(names::WAKES),
        }),
    }
}

/// Of each partition.
fn contexts(env: &Environment, table: &Partitions) -> Vec<SchedContext> {
    let first = table.partitions.iter().map(|of| &of.threads[0].name);
    first.map(|name| env.context_of(name)).collect()
}

pub(crate) fn control(env: &Environment, table: &Partitions) -> SchedControl {
    env.capability(&format!("sched-control.{}", table.core))
}

/// Takes from all threads the time that they started on. The context of a partition's first thread becomes the partition's.
fn take_contexts(env: &Environment, table: &Partitions) -> Result<(), TimerError> {
    for partition in &table.partitions {
        for thread in &partition.threads {
            env.context_of(&thread.name).unbind()?;
        }
        let context = env.context_of(&partition.threads[0].name);
        let full = SchedParams::new(FULL_US, FULL_US).badge(partition.badge);
        control(env, table).configure(context, full)?;
    }
    Ok(())
}

/// Memory of a queue for so many granules and elements, for good.
fn queue(granules: u64, elements: usize) -> Memory<'static> {
    let slots = (granules as usize).next_power_of_two().max(LEAST_SLOTS);
    Owned::new(slots, elements).leak()
}

fn windows(table: &Partitions, tsc: Tsc, start: u64) -> Windows<'static> {
    match &table.form {
        Form::Deadlines => Windows::Periodic(periodic(table, Order::EarliestDeadline, tsc, start)),
        Form::Priorities => Windows::Periodic(periodic(table, Order::FixedPriority, tsc, start)),
        Form::Frames(frames) => Windows::Cyclic(cyclic(table, frames, tsc, start)),
    }
}

fn periodic(table: &Partitions, order: Order, tsc: Tsc, start: u64) -> Periodic<'static> {
    let times = || table.partitions.iter().flat_map(|of| of.times());
    let granule_us = granule(times());
    let longest = times().max().unwrap_or(0) / granule_us;
    let count = table.partitions.len();
    let reservations = table.partitions.iter().map(|of| {
        Reservation::new(Parameters {
            period: of.period_us / granule_us,
            deadline: of.deadline_us / granule_us,
            offset: of.offset_us / granule_us,
            budget: tsc.us_to_ticks(of.budget_us),
            priority: of.priority,
        })
    });
    let queues = Queues {
        releases: queue(longest, count),
        // Deadlines can be two periods apart, and priorities 255.
        ready: queue((2 * longest).max(256), count),
    };
    let reservations = reservations.collect::<Vec<_>>().leak();
    let ticks = tsc.us_to_ticks(granule_us);
    Periodic::new(order, ticks, start, reservations, queues).expect("the builder checked the table")
}

fn cyclic(table: &Partitions, frames: &[Frame], tsc: Tsc, start: u64) -> Cyclic<'static> {
    let schedules = frames.iter().map(|frame| {
        let windows = frame.windows.iter().map(|window| {
            let end = tsc.us_to_ticks(window.at_us + window.length_us);
            let offset = tsc.us_to_ticks(window.at_us);
            Placed {
                partition: PartitionId(window.partition as usize),
                offset,
                length: end - offset,
            }
        });
        Schedule {
            frame: tsc.us_to_ticks(frame.length_us),
            windows: &*windows.collect::<Vec<_>>().leak(),
        }
    });
    let schedules = schedules.collect::<Vec<_>>().leak();
    let debts = vec![0; table.partitions.len()].leak();
    Cyclic::new(schedules, debts, start).expect("the builder checked the table")
}

pub(crate) fn local(
    table: &Partitions,
    partition: &described::Partition,
    tsc: Tsc,
    start: u64,
) -> Local<'static> {
    let times = || {
        partition
            .threads
            .iter()
            .flat_map(|thread| thread.kind.times())
    };
    let granule_us = granule(times());
    let longest = times().max().unwrap_or(0) / granule_us;
    let count = partition.threads.len();
    let queues = LocalQueues {
        releases: queue(longest, count),
        ready: queue(READY_SLOTS as u64, count),
    };
    let threads = partition.threads.iter();
    let threads = threads.map(|thread| Thread::new(kind(thread.kind, granule_us)));
    let grid = Grid {
        granule: tsc.us_to_ticks(granule_us),
        start,
        slice: tsc.us_to_ticks(table.slice_us),
    };
    let threads: Box<[Thread]> = threads.collect();
    Local::new(grid, Box::leak(threads), queues).expect("the builder checked the table")
}

const fn kind(kind: described::Kind, granule_us: u64) -> Kind {
    match kind {
        described::Kind::Periodic {
            priority,
            period_us,
            offset_us,
        } => Kind::Periodic {
            priority,
            period: period_us / granule_us,
            offset: offset_us / granule_us,
        },
        described::Kind::Sporadic {
            priority,
            interval_us,
        } => Kind::Sporadic {
            priority,
            interval: interval_us / granule_us,
        },
        described::Kind::BestEffort => Kind::BestEffort,
    }
}
