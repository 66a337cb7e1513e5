//! Who says which phase it is, and when clients begin that have no slots; and who sends what they recorded, in the end.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::error::Error;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use key_server_study::record::{Request, ANSWERED, ASKED, BEGIN, END, LOG_HEADER};
use key_server_study::PHASES;
use sandglass::cap::Notification;
use sandglass::serial::{SerialPort, COM2_FIRST};
use sandglass::{println, sys, time, Environment};

use crate::{log, CLOCK, IS_READY, PHASE};

/// So many ticks of the study the last requests may take, after the last phase.
const PATIENCE: u64 = 1_000;

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
    let began = time::ticks();
    let begin = (first - 1) * length;
    for tick in begin..last * length {
        clock[PHASE].store(tick / length + 1, Relaxed);
        for start in starts.iter().filter(|start| start.is_at(tick)) {
            start.signal.signal();
        }
        sys::yield_now();
    }
    clock[PHASE].store(PHASES as u64 + 1, Relaxed);
    let mut patience = PATIENCE;
    while !logs.iter().all(|log| is_answered(log)) && patience > 0 {
        patience -= 1;
        sys::yield_now();
    }
    let unanswered = logs.iter().filter(|log| !is_answered(log)).count();
    if unanswered > 0 {
        println!("{unanswered} clients wait for an answer, and nobody asks any more");
    }
    send(env, began, &logs)?;
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
fn send(env: &Environment, began: u64, logs: &[&[AtomicU64]]) -> Result<(), Box<dyn Error>> {
    let port = SerialPort::open(env.capability("record"), COM2_FIRST)?;
    let mhz = env.tsc().map_or(0, |tsc| u64::from(tsc.mhz()));
    let put = |word: u64| port.write(&word.to_le_bytes());
    for word in [BEGIN, mhz, began, logs.len() as u64] {
        put(word)?;
    }
    for log in logs {
        let answered = log[ANSWERED].load(Acquire) as usize;
        let all = &log[..LOG_HEADER + answered * Request::WORDS];
        all.iter().try_for_each(|word| put(word.load(Relaxed)))?;
    }
    put(END)?;
    Ok(())
}
