//! Releases periodic tasks without drift, and reports what became of their jobs. It has a `[[timer]]` called `tick`, or the
//! HPET for itself, as `hpet`, `timer` and `pit`.
//!
//! Task number `i` has the capability `release-i` here, and the parameter `period-i` (µs), a
//! multiple of the parameter `tick`. After `ticks` ticks the system ends, with a line for each
//! task: how many deadlines there were, how many jobs were completed, how many deadlines were
//! missed (jobs that ended late, or not at all), and the longest and the mean response in µs.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::error::Error;
use core::sync::atomic::Ordering::Relaxed;

use releases::{Board, Start, TASKS};
use sandglass::cap::Notification;
use sandglass::timer::{Periodic, Timer};
use sandglass::{println, time, Environment};
use sandglass_tasks::releases::Missed;
use sandglass_tasks::TimeTriggered;

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

struct Task {
    release: Notification,
    /// Ticks of this timer.
    period: u64,
}

/// What the ticks come from.
enum Ticks {
    Own(Periodic),
    Served(TimeTriggered),
}

impl Ticks {
    fn every_us(env: &'static Environment, period_us: u64) -> Result<Self, Box<dyn Error>> {
        if Timer::is_described(env, "hpet", "timer") {
            let timer = Timer::device(env)?;
            return Ok(Self::Own(timer.every_us(period_us)));
        }
        let ticks = TimeTriggered::described(env, "tick", period_us, Missed::CatchUp)?;
        Ok(Self::Served(ticks))
    }

    fn wait(&mut self) -> Result<(), Box<dyn Error>> {
        match self {
            Self::Own(ticks) => _ = ticks.wait()?,
            Self::Served(ticks) => _ = ticks.wait(),
        }
        Ok(())
    }
}

fn main(env: &'static Environment) -> Result<u8, Box<dyn Error>> {
    let tick_us = env.parameter("tick");
    let tasks: Vec<Task> = (0..TASKS)
        .map_while(|number| {
            let release = env.find_capability(&format!("release-{number}"))?;
            let period = env.parameter(&format!("period-{number}")) / tick_us;
            Some(Task { release, period })
        })
        .collect();
    let (board, start) = (Board::of(env), Start::of(env));
    let ticks = env.parameter("ticks");
    let mut schedule = Ticks::every_us(env, tick_us)?;
    for number in 0..=ticks {
        schedule.wait()?;
        if number == 0 {
            start.set(time::ticks());
        }
        for task in &tasks {
            if number < ticks && number % task.period == 0 {
                task.release.signal();
            }
        }
    }
    report(env, board, &tasks, ticks);
    Ok(0)
}

fn report(env: &Environment, board: &Board, tasks: &[Task], ticks: u64) {
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    for (number, (task, jobs)) in tasks.iter().zip(&board.tasks).enumerate() {
        let deadlines = ticks / task.period;
        let completed = jobs.completed.load(Relaxed).min(deadlines);
        let late = jobs.late.load(Relaxed);
        let missed = late.saturating_add(deadlines - completed);
        let mean = jobs.total.load(Relaxed) / jobs.completed.load(Relaxed).max(1);
        println!(
            "task {number}: {deadlines} deadlines, {completed} completed, {missed} missed, {} us at \
             most, {} us on average",
            tsc.ticks_to_us(jobs.longest.load(Relaxed)),
            tsc.ticks_to_us(mean)
        );
    }
}
