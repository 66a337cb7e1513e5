//! The scheduler's queues: threads that wait for their budgets, budgets that fall due, threads that
//! are ready.

use sandglass::abi::syscall::Syscall;
use sandglass::cap::SchedParams;
use sandglass::time::{spin_until, ticks};
use sandglass::{boot, println, SetupError};

use crate::crowd::{HIGH, LOW};
use crate::lab::{many, Cost, Lab, LONG};
use crate::program::Call;

/// Budget of those that wait, µs: enough for a system call.
const BUDGET_US: u64 = 100;

/// µs between the starts of two threads; a thread is started in less.
const STEP_US: u64 = 4;

/// The attackers all have the priority of the thread that is measured: there they are in its way.
const PRIORITY: u8 = LOW;

pub fn measure(lab: &mut Lab) -> Result<(), SetupError> {
    for size in lab.sizes.clone() {
        println!("bounds: {size} releases");
        ready(lab, size)?;
        let authority = lab.process.authority();
        lab.crowd.prioritise(authority, size, |_| PRIORITY)?;
        pending(lab, size)?;
        due(lab, size, "at-once", 0)?;
        // 1.5 µs, that is by turns 1,000 and 2,000 instructions.
        due(lab, size, "in-turn", 3)?;
        lab.crowd.configure(lab.control, size, LONG)?;
        let restored = |i| if i % 2 == 0 { LOW } else { HIGH };
        lab.crowd.prioritise(authority, size, restored)?;
    }
    Ok(())
}

/// The crowd yields its budget for ever.
fn yielding() -> Call {
    Call::new(Syscall::Yield, 0)
}

/// All of the crowd is ready; another becomes ready, is changed and is stopped.
fn ready(lab: &Lab, size: u64) -> Result<(), SetupError> {
    let authority = lab.process.authority();
    for member in lab.crowd.first(size) {
        member.start(&yielding().repeated())?;
    }
    for (visitor, i) in lab.visitors.iter().zip(0..) {
        visitor.tcb.set_priority(authority, LOW)?;
        visitor.prepare(&yielding().repeated())?;
        many("ready-insert", size, Cost::First, || visitor.tcb.resume())?;
        let priority = if i % 2 == 0 { HIGH } else { LOW - 1 };
        many("ready-reprioritise", size, Cost::First, || {
            visitor.tcb.set_priority(authority, priority)
        })?;
        many("ready-reprioritise", size, Cost::First, || {
            visitor.tcb.set_priority(authority, LOW)
        })?;
        many("ready-yield-to", size, Cost::First, || {
            visitor.context.yield_to()
        })
        .ok();
        many("ready-configure", size, Cost::First, || {
            lab.control.configure(visitor.context, LONG)
        })?;
        many("ready-set-domain", size, Cost::First, || {
            boot::DOMAIN.set(visitor.tcb, 0)
        })?;
        many("ready-set-domain-start", size, Cost::First, || {
            boot::DOMAIN.set_schedule_start(0)
        })?;
        many("ready-unbind", size, Cost::First, || {
            visitor.context.unbind()
        })?;
        many("ready-bind", size, Cost::First, || {
            visitor.context.bind(visitor.tcb)
        })?;
        many("ready-remove", size, Cost::First, || visitor.tcb.suspend())?;
    }
    lab.crowd.stop(size)
}

/// The crowd waits for its budgets, which come back `half_us_apart` from `at` on; every second
/// thread's `gap_us` later.
fn exhaust(
    lab: &Lab,
    size: u64,
    at: u64,
    half_us_apart: u64,
    gap_us: u64,
) -> Result<(), SetupError> {
    let first = ticks() + lab.us_to_ticks((size + 1) * STEP_US);
    let start = |i| first + lab.us_to_ticks(i * STEP_US);
    for (member, i) in lab.crowd.first(size).iter().zip(0..) {
        // Sporadic: the budget counts from the moment at which the thread is resumed.
        let period_us = lab.ticks_to_us(at - start(i)) + i * half_us_apart / 2;
        let period_us = period_us + i % 2 * gap_us;
        let params = SchedParams::new(BUDGET_US, period_us).sporadic();
        lab.control.configure(member.context, params)?;
        member.prepare(&yielding().repeated())?;
    }
    for (member, i) in lab.crowd.first(size).iter().zip(0..) {
        spin_until(start(i));
        member.tcb.resume()?;
    }
    lab.settle()
}

/// µs from now at which the budgets of all can come back.
fn lead_us(size: u64) -> u64 {
    size * (2 * STEP_US + 2) + 1_000
}

/// All of the crowd waits for budgets of two later times; another begins to wait in between, is
/// changed and is stopped.
fn pending(lab: &Lab, size: u64) -> Result<(), SetupError> {
    const GAP_US: u64 = 1_000_000;
    let authority = lab.process.authority();
    let at = ticks() + lab.us_to_ticks(lead_us(size) + 1_000_000);
    exhaust(lab, size, at, 0, GAP_US)?;
    for (visitor, i) in lab.visitors.iter().zip(0..) {
        visitor.tcb.set_priority(authority, PRIORITY)?;
        let middle = lab.ticks_to_us(at - ticks()) + GAP_US / 2;
        let params = SchedParams::new(BUDGET_US, middle);
        lab.control.configure(visitor.context, params)?;
        visitor.prepare(&yielding().measured())?;
        lab.lower()?;
        many("release-insert", size, Cost::First, || visitor.tcb.resume())?;
        lab.raise()?;
        let change = |priority| {
            many("release-reprioritise", size, Cost::First, || {
                visitor.tcb.set_priority(authority, priority)
            })
        };
        change(if i % 2 == 0 {
            PRIORITY - 1
        } else {
            PRIORITY + 1
        })?;
        change(PRIORITY)?;
        many("release-configure", size, Cost::First, || {
            lab.control.configure(visitor.context, params)
        })?;
        visitor.start(&yielding().once())?;
        lab.settle()?;
        many("release-unbind", size, Cost::First, || {
            visitor.context.unbind()
        })?;
        visitor.context.bind(visitor.tcb)?;
        lab.settle()?;
        many("release-remove", size, Cost::First, || {
            visitor.tcb.suspend()
        })?;
        lab.control.configure(visitor.context, LONG)?;
    }
    lab.crowd.stop(size)
}

/// The budgets of the crowd fall due while a thread of higher priority runs; then nobody is above
/// them any more, and they run one after the other.
fn due(lab: &Lab, size: u64, form: &str, half_us_apart: u64) -> Result<(), SetupError> {
    let name = |what: &str| alloc::format!("due-{form}-{what}");
    let lasts = lab.us_to_ticks(size * half_us_apart / 2 + 100);
    for (what, cost) in [("delay", Cost::Longest), ("taken", Cost::Total)] {
        let at = ticks() + lab.us_to_ticks(lead_us(size));
        exhaust(lab, size, at, half_us_apart, 0)?;
        assert!(ticks() < at, "the crowd takes too long");
        spin_until(at - lab.us_to_ticks(10));
        many(&name(what), size, cost, || spin_until(at + lasts));
        if matches!(cost, Cost::Longest) {
            many(&name("run"), size, cost, || lab.settle())?;
        }
        lab.crowd.stop(size)?;
    }
    Ok(())
}
