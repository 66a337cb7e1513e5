//! A periodic task that filters `samples` samples in each job, and signals after `jobs` jobs. The
//! component `judge` waits for all tasks and ends the system, with status 0 if no job was late.

#![no_std]
#![no_main]

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use filter::LowPass;
use sandglass::cap::Notification;
use sandglass::{println, time, Environment};
use sandglass_edf::Task;

sandglass::entry!(main, stack = 0x4000, heap = 0x1000);

fn main(env: &'static Environment) -> u8 {
    match env.find_parameter("number") {
        Some(number) => task(env, number),
        None => judge(env),
    }
}

/// Jobs of a task that were late, on the board that all share.
fn late(env: &Environment, number: u64) -> &'static AtomicU64 {
    let board = env.memory("board");
    let word = number as usize % (board.len as usize / size_of::<AtomicU64>());
    // SAFETY: inside of the board, which stays mapped; all who see it use atomics.
    unsafe { &*board.as_mut_ptr().cast::<AtomicU64>().add(word) }
}

fn task(env: &'static Environment, number: u64) -> ! {
    let (samples, wanted) = (env.parameter("samples"), env.parameter("jobs"));
    let (late, done): (_, Notification) = (late(env, number), env.capability("done"));
    let (mut filter, mut jobs) = (LowPass::default(), 0);
    Task::described(env).run(|job| {
        for sample in 0..samples {
            black_box(filter.step(sample as i64));
        }
        late.fetch_add(u64::from(time::ticks() > job.deadline), Relaxed);
        jobs += 1;
        if jobs == wanted {
            done.signal();
        }
    })
}

fn judge(env: &'static Environment) -> u8 {
    let done: Notification = env.capability("done");
    let tasks = env.parameter("tasks");
    let (all, mut seen) = ((1 << tasks) - 1, 0);
    while seen != all {
        seen |= done.wait();
    }
    let mut total = 0;
    for number in 0..tasks {
        let late = late(env, number).load(Relaxed);
        println!("task {number}: {late} jobs late");
        total += late;
    }
    u8::from(total > 0)
}
