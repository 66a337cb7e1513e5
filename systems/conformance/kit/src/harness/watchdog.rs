//! Ends the wait for a check that does not end.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::{Notification, SchedContext, SchedControl, SchedParams, Tcb};
use sandglass::thread::{Thread, ThreadParams};
use sandglass::time::Tsc;
use sandglass::{sys, time, BootInfo, Error, Process, SetupError};

use super::LIMIT_US;

/// The conductor's, so that no thread of a check can keep it from running.
const PRIORITY: u8 = 255;
/// Budget for its own few instructions, µs.
const BUDGET_US: u64 = 1_000;

/// When the current check must have ended, in ticks; 0 if none runs.
static DEADLINE: AtomicU64 = AtomicU64::new(0);

/// A thread that sleeps until the deadline: it yields, and its next budget comes then.
pub struct Watchdog {
    control: SchedControl,
    context: SchedContext,
    tcb: Tcb,
    tsc: Tsc,
    begin: Notification,
    expired: Notification,
}

impl Watchdog {
    /// `expired` is bound to the conductor; `signal` is what the watchdog signals it by.
    pub fn start(
        process: &mut Process,
        boot: &BootInfo,
        expired: Notification,
        signal: Notification,
    ) -> Result<Self, SetupError> {
        let begin = process.resources.notification()?;
        let context = process.resources.sched_context(params().size_bits())?;
        let control = boot.sched_control(0).expect("there is a first core");
        control.configure(context, params())?;
        let thread = Thread::spawn(
            process,
            ThreadParams::new(PRIORITY, context),
            move || loop {
                begin.wait();
                watch(signal);
            },
        )?;
        Ok(Self {
            control,
            context,
            tcb: thread.tcb(),
            tsc: boot.tsc().expect("the kernel reports the TSC's frequency"),
            begin,
            expired,
        })
    }

    /// A check begins. The watchdog's context starts anew, so that its next sleep is a whole one and it does not preempt the
    /// check: without a thread, since that of one that sleeps would keep its replenishments (ABI 04, section 5.2).
    pub fn arm(&self) -> Result<(), Error> {
        DEADLINE.store(time::ticks() + self.tsc.us_to_ticks(LIMIT_US), Relaxed);
        self.context.unbind_tcb(self.tcb)?;
        self.control.configure(self.context, params())?;
        self.context.bind(self.tcb)?;
        self.begin.signal();
        Ok(())
    }

    /// The check has ended.
    pub fn disarm(&self) {
        DEADLINE.store(0, Relaxed);
        self.expired.poll();
    }
}

const fn params() -> SchedParams {
    SchedParams::new(BUDGET_US, LIMIT_US)
}

/// Signals when the deadline passes, unless there is none any more.
fn watch(signal: Notification) {
    loop {
        let deadline = DEADLINE.load(Relaxed);
        if deadline == 0 {
            return;
        }
        if time::ticks() >= deadline {
            DEADLINE.store(0, Relaxed);
            signal.signal();
            return;
        }
        sys::yield_now();
    }
}
