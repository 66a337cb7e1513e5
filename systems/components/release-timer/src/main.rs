//! Releases periodic tasks with the HPET, without drift, and reports what became of their jobs.
//!
//! Task number `i` has the capability `release-i` here, and the parameter `period-i` (µs), a
//! multiple of the parameter `tick`. After `ticks` ticks the system ends, with a line for each
//! task: how many deadlines there were, how many jobs were completed, how many deadlines were
//! missed (jobs that ended late, or not at all), and the longest and the mean response in µs.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::format;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use releases::{Board, Start, TASKS};
use sandglass::cap::Notification;
use sandglass::hpet::{HpetError, Timer};
use sandglass::{println, time, Environment};

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

struct Task {
    release: Notification,
    /// Ticks of this timer.
    period: u64,
}

fn main(env: &'static Environment) -> Result<u8, HpetError> {
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
    let mut schedule = Timer::described(env, "hpet", "timer", "pit")?.every_us(tick_us);
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
