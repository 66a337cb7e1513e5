//! Prints what timers cost, in ticks, which are instructions where one takes 1 ns:
//!
//! `figure NAME TIMERS MEAN MOST`, of `samples` samples while so many timers are armed.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::boxed::Box;
use core::error::Error;

use sandglass::cap::SchedContext;
use sandglass::time::{self, Tsc};
use sandglass::{println, timer, Environment};
use sandglass_timers::alarm::Alarm;
use sandglass_timers::{Refusal, Timer};

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

const ARMED: [u64; 3] = [10, 100, 10_000];
/// How far ahead a timer is set that is to expire, µs.
const AHEAD_US: u64 = 500;
/// How far ahead those are that are only to be there, µs.
const FAR_US: u64 = 1_000_000_000;

fn main(env: &'static Environment) -> Result<u8, Box<dyn Error>> {
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let samples = env.parameter("samples");
    match timer::Timer::is_described(env, "hpet", "timer") {
        true => own(env, tsc, samples)?,
        false => served(env, tsc, samples)?,
    }
    Ok(0)
}

/// Mean and most of so many samples.
fn figure<E>(
    name: &str,
    timers: u64,
    samples: u64,
    mut sample: impl FnMut(u64) -> Result<u64, E>,
) -> Result<(), E> {
    let (mut total, mut most) = (0, 0);
    for number in 0..samples {
        let ticks = sample(number)?;
        total += ticks;
        most = ticks.max(most);
    }
    println!("figure {name} {timers} {} {most}", total / samples.max(1));
    Ok(())
}

/// The HPET without a service.
fn own(env: &'static Environment, tsc: Tsc, samples: u64) -> Result<(), Box<dyn Error>> {
    let timer = timer::Timer::device(env)?;
    let alarm = Alarm::new(timer, tsc);
    let far = time::ticks() + tsc.us_to_ticks(FAR_US);
    figure::<timer::TimerError>("set", 1, samples, |number| {
        let begin = time::ticks();
        let _ = alarm.set(far + number);
        Ok(time::ticks() - begin)
    })?;
    figure::<timer::TimerError>("wake", 1, samples, |_| {
        let at = time::ticks() + tsc.us_to_ticks(AHEAD_US);
        let _ = alarm.set(at);
        while time::ticks() < at {
            timer.notification().wait();
            alarm.acknowledge()?;
        }
        Ok(time::ticks() - at)
    })?;
    Ok(())
}

fn served(env: &'static Environment, tsc: Tsc, samples: u64) -> Result<(), Refusal> {
    let (probe, crowd) = (
        Timer::described(env, "probe"),
        Timer::described(env, "crowd"),
    );
    let far = time::ticks() + tsc.us_to_ticks(FAR_US);
    let mut random = Random(1);
    let mut next = 0;
    for armed in ARMED {
        while next < armed {
            let _ = crowd.nth(next).at(far + random.below(1 << 30))?;
            next += 1;
        }
        requests(crowd, armed, samples, far, &mut random)?;
        expiries(env, crowd, tsc, armed, samples)?;
        crowded(probe, crowd, tsc, armed)?;
        // Those that have expired are armed again.
        next = 0;
    }
    Ok(())
}

/// Those of all timers in turn, to random places among them.
fn requests(
    crowd: Timer,
    armed: u64,
    samples: u64,
    far: u64,
    random: &mut Random,
) -> Result<(), Refusal> {
    figure("cancel", armed, samples, |number| {
        let timer = crowd.nth(number * 7919 % armed);
        let at = far + random.below(1 << 30);
        let begin = time::ticks();
        let _ = timer.cancel()?;
        let ticks = time::ticks() - begin;
        timer.at(at).map(|_| ticks)
    })?;
    figure("arm", armed, samples, |number| {
        let timer = crowd.nth(number * 7919 % armed);
        // Every other one becomes the first of all, and is the last after that.
        let at = if number % 2 == 0 {
            far - number
        } else {
            far + (1 << 31)
        };
        let begin = time::ticks();
        let _ = timer.at(at)?;
        Ok(time::ticks() - begin)
    })
}

/// What an expiry costs the service, by its own context, and when its user runs.
fn expiries(
    env: &Environment,
    crowd: Timer,
    tsc: Tsc,
    armed: u64,
    samples: u64,
) -> Result<(), Refusal> {
    let service: SchedContext = env.context_of("timers");
    let consumed = || tsc.us_to_ticks(service.consumed_us().unwrap_or(0));
    let _ = consumed();
    figure("wake", armed, samples, |number| {
        let timer = crowd.nth(number % armed);
        let at = time::ticks() + tsc.us_to_ticks(AHEAD_US);
        timer.wait_until(at)?;
        let late = time::ticks() - at;
        // It is to be there again.
        timer.at(at + tsc.us_to_ticks(FAR_US)).map(|_| late)
    })?;
    let mean = consumed() / samples.max(1);
    println!("figure expiry {armed} {mean} {mean}");
    Ok(())
}

/// When somebody runs whose timer is due together with all of the others'.
fn crowded(probe: Timer, crowd: Timer, tsc: Tsc, armed: u64) -> Result<(), Refusal> {
    // All are armed before that.
    let at = time::ticks() + tsc.us_to_ticks(20 * armed + 1000);
    for number in 0..armed {
        let _ = crowd.nth(number).at(at)?;
    }
    probe.wait_until(at)?;
    let late = time::ticks() - at;
    println!("figure crowd {armed} {late} {late}");
    for number in 0..armed {
        let _ = crowd.nth(number).cancel()?;
    }
    crowd.signal().poll();
    Ok(())
}

/// xorshift64* (Vigna 2016).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % bound
    }
}
