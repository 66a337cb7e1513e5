//! Who says which phase it is, and when clients begin that have no slots; and who sends what they recorded, in the end.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::error::Error;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use key_server_study::record::{Request, ANSWERED, ASKED, BEGIN, END, LOG_HEADER};
use key_server_study::PHASES;
use sandglass::alarm::Alarm;
use sandglass::arch::OutputPort;
use sandglass::cap::Notification;
use sandglass::time::{self, Tsc};
use sandglass::{println, Environment};

use crate::{log, CLOCK, IS_READY, PHASE};

/// So many ticks of the study the last requests may take, after the last phase.
const PATIENCE: usize = 1_000;

/// When a client begins: a signal at a tick, and then every so many; with 0, never again.
struct Start {
    signal: Notification,
    first: u64,
    every: u64,
}

impl Start {
    const fn is_at(&self, tick: u64) -> bool {
        tick == self.first
            || self.every > 0 && tick > self.first && (tick - self.first).is_multiple_of(self.every)
    }
}

/// When the ticks of the study are.
struct Ticks {
    alarm: Alarm,
    tsc: Tsc,
    /// Ticks of the clock: when the first one was.
    began: u64,
    every_us: u64,
}

impl Ticks {
    /// The first one is now.
    fn begin(env: &Environment) -> Self {
        let tsc = env.tsc().expect("the kernel reports the clock's frequency");
        let context = env.capability(&format!("{}.context", env.name()));
        let control = env.capability("sched-control.0");
        let every_us = env.parameter("tick");
        Self {
            alarm: Alarm::new(context, control, tsc, every_us / 2),
            tsc,
            began: time::ticks(),
            every_us,
        }
    }

    /// Waits for one, counted from the first.
    fn wait(&self, tick: u64) -> sandglass::error::Result<()> {
        let passed = self.tsc.us_to_ticks(tick * self.every_us);
        self.alarm.wait_until(self.began + passed)
    }
}

pub fn run(env: &'static Environment) -> Result<u8, Box<dyn Error>> {
    let clock = log::words(env, CLOCK);
    let clients = env.parameter("clients");
    let logs: Vec<_> = (0..clients)
        .map(|client| log::words(env, &format!("log.{client}")))
        .collect();
    let starts: Vec<_> = (0..clients)
        .filter_map(|client| start(env, client))
        .collect();
    let (first, last) = (env.parameter("first"), env.parameter("last"));
    let length = env.parameter("length");
    clock[IS_READY].store(1, Relaxed);
    env.capability::<Notification>("begin").wait();
    let ticks = Ticks::begin(env);
    let (begin, end) = ((first - 1) * length, last * length);
    let mut phases = Vec::new();
    for tick in begin..end {
        ticks.wait(tick - begin)?;
        if tick.is_multiple_of(length) {
            phases.push(time::ticks());
        }
        clock[PHASE].store(tick / length + 1, Relaxed);
        for start in starts.iter().filter(|start| start.is_at(tick)) {
            start.signal.signal();
        }
    }
    ticks.wait(end - begin)?;
    clock[PHASE].store(PHASES as u64 + 1, Relaxed);
    // By the next tick, those have asked that were about to.
    for tick in (end - begin + 1..).take(PATIENCE) {
        ticks.wait(tick)?;
        if logs.iter().all(|log| is_answered(log)) {
            break;
        }
    }
    let unanswered = logs.iter().filter(|log| !is_answered(log)).count();
    if unanswered > 0 {
        println!("{unanswered} clients wait for an answer, and nobody asks any more");
    }
    send(env, ticks.tsc, &phases, &logs)?;
    Ok(0)
}

/// The start of a client; `None` of one that has slots.
fn start(env: &Environment, client: u64) -> Option<Start> {
    let signal = env.find_capability(&format!("start.{client}"))?;
    let at = env.parameter(&format!("start-{client}"));
    Some(Start {
        signal,
        first: at & 0xffff_ffff,
        every: at >> 32,
    })
}

fn is_answered(log: &[AtomicU64]) -> bool {
    log[ASKED].load(Acquire) == log[ANSWERED].load(Acquire)
}

/// Sends the record.
fn send(
    env: &Environment,
    tsc: Tsc,
    phases: &[u64],
    logs: &[&[AtomicU64]],
) -> Result<(), Box<dyn Error>> {
    let port = OutputPort::described(env, "record")?;
    let put = |word: u64| port.write(&word.to_le_bytes());
    for word in [BEGIN, u64::from(tsc.mhz()), phases.len() as u64] {
        put(word)?;
    }
    phases.iter().try_for_each(|began| put(*began))?;
    put(logs.len() as u64)?;
    for log in logs {
        let answered = log[ANSWERED].load(Acquire) as usize;
        let all = &log[..LOG_HEADER + answered * Request::WORDS];
        all.iter().try_for_each(|word| put(word.load(Relaxed)))?;
    }
    put(END)?;
    Ok(())
}
