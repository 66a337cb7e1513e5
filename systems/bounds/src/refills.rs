//! Budgets in as many pieces as can be.

use sandglass::abi::sched::max_extra_refills;
use sandglass::abi::syscall::Syscall;
use sandglass::cap::SchedParams;
use sandglass::time::ticks;
use sandglass::{println, SetupError};

use crate::crowd::MIDDLE;
use crate::lab::{many, spin_until, Cost, Lab};
use crate::program::{spinning, Call};

/// Largest context that is tried, log2 bytes.
const LARGEST_BITS: u32 = 20;

/// Period of the thread, µs: longer than it takes to cut the budget into so many pieces.
const fn period_us(pieces: u64) -> u64 {
    1_000 + 3 * pieces
}

/// A context of a size with room for about so many refills.
fn context_bits(refills: u64) -> u32 {
    (8..LARGEST_BITS)
        .find(|&bits| max_extra_refills(bits) >= refills)
        .unwrap_or(LARGEST_BITS)
}

pub fn measure(lab: &mut Lab) -> Result<(), SetupError> {
    for size in lab.sizes.clone() {
        println!("bounds: {size} pieces of budget");
        for sporadic in [false, true] {
            fragments(lab, size, sporadic)?;
        }
    }
    Ok(())
}

fn fragments(lab: &mut Lab, size: u64, sporadic: bool) -> Result<(), SetupError> {
    let bits = context_bits(size);
    let extra = size.min(max_extra_refills(bits));
    let period_us = period_us(extra);
    let context = lab.process.resources.sched_context(bits)?;
    let mut params = SchedParams::new(period_us / 5 * 4, period_us).extra_refills(extra);
    if sporadic {
        params = params.sporadic();
    }
    lab.control.configure(context, params)?;
    let visitor = lab.visitors[0];
    let authority = lab.process.authority();
    visitor.context.unbind()?;
    context.bind(visitor.tcb)?;
    visitor.tcb.set_priority(authority, MIDDLE)?;
    let notification = lab.process.resources.notification()?;
    let wait = Call::new(Syscall::Wait, notification.address());
    let names = if sporadic {
        [
            "sporadic-cut",
            "sporadic-wake-fragmented",
            "sporadic-exhaust-fragmented",
        ]
    } else {
        [
            "constant-cut",
            "constant-wake-fragmented",
            "constant-exhaust-fragmented",
        ]
    };
    // Each turn uses a little, and what it used comes back on its own.
    visitor.start(&wait.repeated())?;
    lab.lower()?;
    for _ in 0..extra + 10 {
        notification.signal();
    }
    // The last of them, when the queue is full.
    many(names[0], size, Cost::Longest, || notification.signal());
    // All of it has come back, and the thread did not need it: it wakes.
    spin_until(ticks() + period_us * lab.ticks_per_us);
    many(names[1], size, Cost::Longest, || notification.signal());
    for _ in 0..extra + 10 {
        notification.signal();
    }
    // It uses up all that it has, piece by piece.
    lab.raise()?;
    visitor.tcb.suspend()?;
    visitor.start(&spinning())?;
    many(
        names[2],
        size,
        Cost::Longest,
        || -> Result<(), SetupError> {
            lab.lower()?;
            spin_until(ticks() + period_us * lab.ticks_per_us);
            lab.raise()
        },
    )?;
    visitor.tcb.suspend()?;
    context.unbind()?;
    visitor.context.bind(visitor.tcb)?;
    lab.process.resources.delete(notification)?;
    lab.process.resources.delete(context)
}
