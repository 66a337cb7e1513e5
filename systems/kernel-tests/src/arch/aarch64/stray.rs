//! Interrupts that nobody asked the kernel for. The thread that runs on that core has nothing to do with them, and the interrupts
//! that the kernel lives by go on.

use core::arch::asm;

use sandglass::abi::invocation as label;
use sandglass::arch::label as arch_label;
use sandglass::cap::{CPtr, Capability, Endpoint, SchedParams};
use sandglass::fault::Fault;
use sandglass::testing::{Failure, Suite, TestResult};
use sandglass::{boot, ensure, ensure_eq, time, Message};

use super::Timer;
use crate::fixture::Fixture;
use crate::patient::Patient;

/// Budget and period of the thread that is disturbed, µs.
const BUDGET_US: u64 = 100;
const PERIOD_US: u64 = 500;
/// When the timer fires, counted from the thread's start: while it runs, and while it waits.
const MOMENTS_US: [u64; 2] = [50, 300];
/// ESR of BRK #7.
const BREAKPOINT: u64 = 0xf200_0007;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "stray",
        &[
            ("a_timer_that_nobody_handles_disturbs_nobody", timer),
            ("signals_that_nobody_handles_disturb_nobody", signals),
        ],
    );
}

/// Runs for three periods, and returns the longest pause, in ticks: until the budget was there again, if the timer ended it.
fn longest_pause(period: u64) -> u64 {
    let start = time::ticks();
    let (mut last, mut longest) = (start, 0);
    while last - start < 3 * period {
        let now = time::ticks();
        longest = longest.max(now - last);
        last = now;
    }
    longest
}

/// Lets a thread run on each core that does this at each of its moments, and fails unless it ends as it should.
fn undisturbed(
    fixture: &mut Fixture,
    before: impl Fn(u64) + Copy + Send + 'static,
    after: impl Fn() + Copy + Send + 'static,
) -> TestResult {
    let period = fixture.ticks(PERIOD_US);
    let least_pause = fixture.ticks(PERIOD_US - BUDGET_US) / 2;
    let ticks_per_us = fixture.ticks(1);
    let params = SchedParams::new(BUDGET_US, PERIOD_US);
    for core in 0..fixture.boot.cores() {
        let control = fixture.boot.sched_control(core).ok_or("no such core")?;
        let patient = Patient::on(fixture, control, params, move || {
            for us in MOMENTS_US {
                before(us * ticks_per_us);
                let pause = longest_pause(period);
                after();
                if pause < least_pause {
                    // SAFETY: never continues here.
                    unsafe { asm!("udf #0") }
                }
            }
            // SAFETY: likewise.
            unsafe { asm!("brk #7") }
        })?;
        let fault = patient.next()?;
        ensure!(
            matches!(
                fault,
                Fault::Exception {
                    number: BREAKPOINT,
                    ..
                }
            ),
            "core {core}: {fault:?}"
        );
    }
    Ok(())
}

fn timer(fixture: &mut Fixture) -> TestResult {
    undisturbed(fixture, Timer::start, Timer::stop)
}

/// Every software-generated interrupt, by a capability for it; with several cores there are none.
fn signals(fixture: &mut Fixture) -> TestResult {
    if fixture.boot.sched_control(1).is_some() {
        return Err(Failure::skip("kernels for several cores have no signals"));
    }
    let mut signals = alloc::vec::Vec::new();
    for number in 0..16 {
        let slot = fixture.process.resources.allocate_slot()?;
        let words = [number, 0, slot.index(), 64];
        let issue = arch_label::IRQ_CONTROL_ISSUE_SGI_SIGNAL;
        let caps = [boot::CNODE.cptr()];
        let control = Endpoint::at(boot::IRQ_CONTROL.address());
        let message = Message::long(issue, &words).with_caps(&caps);
        ensure_eq!(control.call(message).label(), 0);
        signals.push(slot.capability::<CPtr>());
    }
    let signals: &'static [CPtr] = signals.leak();
    let signal = move |_| {
        for signal in signals {
            Endpoint::at(signal.raw()).call(Message::new(label::INVALID, []));
        }
    };
    undisturbed(fixture, signal, || ())
}
