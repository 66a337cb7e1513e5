//! Periodic tasks, each scheduled by the deadlines of an `[[edf]]` or time-triggered by a timer `tick`, that say on a board
//! when their jobs were released and began; and the judge, which lets them run for the parameter `seconds`, by a timer of
//! its own, and ends the system with status 0 if none of them has drifted.

#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::Endpoint;
use sandglass::trace::{self, Mark};
use sandglass::{println, time, Environment};
use sandglass_edf::Task;
use sandglass_tasks::releases::Missed;
use sandglass_tasks::TimeTriggered;
use sandglass_timers::{Refusal, Timer};

sandglass::entry!(main, stack = 0x4000, heap = 0x1000);

const SECOND_US: u64 = 1_000_000;
/// Every so many jobs of a task with a parameter `more` there is more to do.
const RARELY: u64 = 8;
const TASKS: usize = 6;

/// What is known of a task; times in ticks.
#[repr(C)]
#[derive(Default)]
struct Row {
    period: AtomicU64,
    jobs: AtomicU64,
    /// Releases: the first, and the last with its number.
    first: AtomicU64,
    last: AtomicU64,
    number: AtomicU64,
    /// Releases that were not where they belong.
    astray: AtomicU64,
    /// The longest time from a release to the beginning of its job.
    latest: AtomicU64,
    /// Jobs that ended after the next release.
    late: AtomicU64,
}

fn main(env: &'static Environment) -> Result<u8, Refusal> {
    if env.find_parameter("row").is_none() {
        return judge(env);
    }
    let row = &board(env)[env.parameter("row") as usize % TASKS];
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let period_us = env.parameter("period");
    let period = tsc.us_to_ticks(period_us);
    row.period.store(period, Relaxed);
    let work = env.parameter("work");
    let more = env.find_parameter("more").unwrap_or(work);
    let job = move |number: u64, release: u64| {
        note_begin(row, number, release);
        let is_rare = number % RARELY == RARELY - 1;
        compute(if is_rare { more } else { work });
        let late = time::ticks() > release + period;
        row.late.fetch_add(late.into(), Relaxed);
    };
    if env.find_capability::<Endpoint>("edf").is_some() {
        Task::described(env).run(|own| job(own.number, own.release));
    }
    TimeTriggered::described(env, "tick", period_us, Missed::CatchUp)?.run(|release| {
        let (number, at) = (release.number, release.at);
        trace::mark(Mark::Release { job: number, at });
        job(number, at);
        trace::mark(Mark::End { job: number });
    })
}

fn note_begin(row: &Row, number: u64, release: u64) {
    let latest = time::ticks().saturating_sub(release);
    row.latest.fetch_max(latest, Relaxed);
    if row.jobs.fetch_add(1, Relaxed) == 0 {
        row.first.store(release, Relaxed);
    }
    let expected = row.first.load(Relaxed) + number * row.period.load(Relaxed);
    row.astray
        .fetch_add(u64::from(release != expected), Relaxed);
    row.last.store(release, Relaxed);
    row.number.store(number, Relaxed);
}

fn compute(steps: u64) {
    time::work(steps);
}

fn board(env: &Environment) -> &'static [Row; TASKS] {
    let memory = env.memory("board");
    assert!(
        memory.len as usize >= size_of::<[Row; TASKS]>(),
        "a page suffices"
    );
    // SAFETY: the system maps it for good, page-aligned; it consists of atomics, for which every content is valid.
    unsafe { &*memory.as_mut_ptr().cast() }
}

fn judge(env: &'static Environment) -> Result<u8, Refusal> {
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let seconds = env.parameter("seconds");
    let end = time::ticks() + tsc.us_to_ticks(seconds * SECOND_US);
    Timer::described(env, "end").wait_until(end)?;
    let now = time::ticks();
    println!("woken {} us after {seconds} s", tsc.ticks_to_us(now - end));
    let mut wrong = 0;
    for (number, row) in board(env).iter().enumerate() {
        let [jobs, first, period] = [&row.jobs, &row.first, &row.period].map(|it| it.load(Relaxed));
        let [astray, late, latest] =
            [&row.astray, &row.late, &row.latest].map(|it| it.load(Relaxed));
        // The last one may have been released just now.
        let due = now.saturating_sub(first) / period.max(1) + 1;
        let missing = due.saturating_sub(jobs);
        println!(
            "task {number}: {jobs} jobs, {missing} missing, {astray} astray, {late} late, begun within {} ms of their \
             release",
            tsc.ticks_to_us(latest).div_ceil(1000)
        );
        wrong += astray + late + u64::from(missing > 1 || jobs == 0);
    }
    Ok(u8::from(wrong > 0))
}
