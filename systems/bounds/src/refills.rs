//! Budgets in as many pieces as can be.

use sandglass::abi::sched::max_extra_refills;
use sandglass::abi::syscall::Syscall;
use sandglass::cap::{Notification, SchedContext, SchedParams};
use sandglass::time::{spin_until, ticks};
use sandglass::{println, SetupError};

use crate::crowd::MIDDLE;
use crate::lab::{many, Cost, Lab};
use crate::program::{spinning, Call};

/// Largest context that is tried, log2 bytes.
const LARGEST_BITS: u32 = 20;

/// Period of the thread, µs: longer than it takes to cut the budget into so many pieces.
const fn period_us(pieces: u64) -> u64 {
    2_000 + 4 * pieces
}

/// Most extra refills that this kernel uses.
const MOST_USED: u64 = 128;

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

/// A context whose budget is cut into `pieces`, and a thread that cuts it: at each signal of
/// `notification` it runs for a moment, and what it used comes back on its own.
struct Cutter {
    context: SchedContext,
    notification: Notification,
    period_us: u64,
    pieces: u64,
}

impl Cutter {
    fn new(lab: &mut Lab, pieces: u64, sporadic: bool) -> Result<Self, SetupError> {
        let period_us = period_us(pieces.min(max_extra_refills(context_bits(pieces))));
        let params = SchedParams::new(period_us / 5 * 4, period_us);
        Self::with(lab, pieces, params, sporadic)
    }

    /// With this budget and period.
    fn with(
        lab: &mut Lab,
        pieces: u64,
        params: SchedParams,
        sporadic: bool,
    ) -> Result<Self, SetupError> {
        let bits = context_bits(pieces);
        let pieces = pieces.min(max_extra_refills(bits));
        let period_us = params.time.period_us;
        let context = lab.process.resources.sched_context(bits)?;
        let mut params = params.extra_refills(pieces);
        if sporadic {
            params = params.sporadic();
        }
        lab.control.configure(context, params)?;
        let visitor = lab.visitors[0];
        visitor.context.unbind()?;
        context.bind(visitor.tcb)?;
        visitor.tcb.set_priority(lab.process.authority(), MIDDLE)?;
        let notification = lab.process.resources.notification()?;
        let wait = Call::new(Syscall::Wait, notification.address());
        visitor.start(&wait.repeated())?;
        Ok(Self {
            context,
            notification,
            period_us,
            pieces,
        })
    }

    /// Cuts the budget; this thread runs below the cutter.
    fn cut(&self) {
        for _ in 0..self.pieces + 10 {
            self.notification.signal();
        }
    }

    /// All that was used comes back meanwhile.
    fn wait_a_period(&self, lab: &Lab) {
        spin_until(ticks() + lab.us_to_ticks(self.period_us));
    }

    /// The context alone is left.
    fn end(self, lab: &mut Lab) -> Result<SchedContext, SetupError> {
        let visitor = lab.visitors[0];
        visitor.tcb.suspend()?;
        self.context.unbind()?;
        visitor.context.bind(visitor.tcb)?;
        lab.process.resources.delete(self.notification)?;
        Ok(self.context)
    }
}

/// A context that starts its refills anew when its thread wakes, if it is `sporadic`, or else when its thread runs, cut into
/// the most pieces that there are; they come back after so many microseconds.
pub fn fragmented(lab: &mut Lab, sporadic: bool) -> Result<(SchedContext, u64), SetupError> {
    let cutter = Cutter::new(lab, MOST_USED, sporadic)?;
    lab.lower()?;
    cutter.cut();
    lab.raise()?;
    let period_us = cutter.period_us;
    Ok((cutter.end(lab)?, period_us))
}

/// A context with this budget and period, the most pieces of which come back one after the other, the first one period after
/// `start`, in ticks.
pub fn fragmented_from(
    lab: &mut Lab,
    start: u64,
    budget_us: u64,
    period_us: u64,
) -> Result<SchedContext, SetupError> {
    let params = SchedParams::new(budget_us, period_us);
    let cutter = Cutter::with(lab, MOST_USED, params, false)?;
    spin_until(start);
    lab.lower()?;
    cutter.cut();
    lab.raise()?;
    cutter.end(lab)
}

fn fragments(lab: &mut Lab, size: u64, sporadic: bool) -> Result<(), SetupError> {
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
    let cutter = Cutter::new(lab, size, sporadic)?;
    lab.lower()?;
    cutter.cut();
    // One more, when the queue is full.
    let signal = || cutter.notification.signal();
    many(names[0], size, Cost::Longest, signal);
    // All of it has come back, and the thread did not need it: it wakes.
    cutter.wait_a_period(lab);
    many(names[1], size, Cost::Longest, signal);
    cutter.cut();
    lab.raise()?;
    // It uses up all that it has, piece by piece.
    let visitor = lab.visitors[0];
    visitor.tcb.suspend()?;
    visitor.start(&spinning())?;
    many(
        names[2],
        size,
        Cost::Longest,
        || -> Result<(), SetupError> {
            lab.lower()?;
            cutter.wait_a_period(lab);
            lab.raise()
        },
    )?;
    let context = cutter.end(lab)?;
    lab.process.resources.delete(context)
}
