//! What threads do: they look at the clock all the time, so that a switch is seen from both sides, at the last look before
//! it and the first after it. The first look after a decision is noted.

use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use sandglass::cap::{Capability, Endpoint};
use sandglass::{arch, time};
use sandglass_partitions::{Arrivals, Member};

/// Decisions so far.
static DECISIONS: AtomicU64 = AtomicU64::new(0);
/// The number of decisions when one was noticed last, and when that was.
static NOTICED: AtomicU64 = AtomicU64::new(0);
static NOTICED_AT: AtomicU64 = AtomicU64::new(0);
/// The last look.
static LAST: AtomicU64 = AtomicU64::new(0);
/// Ticks that a job of a periodic thread computes.
static JOB: AtomicU64 = AtomicU64::new(0);

/// Where arrivals are reported.
static ARRIVALS: AtomicU64 = AtomicU64::new(0);

pub fn set_arrivals(arrivals: Endpoint) {
    ARRIVALS.store(arrivals.cptr().raw(), Relaxed);
}

/// Sets how long jobs are, in ticks.
pub fn set_job(ticks: u64) {
    JOB.store(ticks, Relaxed);
}

/// Computes for good.
pub fn compute(member: Member) -> ! {
    member.run(|| loop {
        look();
    })
}

/// Does jobs, one after the other.
pub fn work(member: Member) -> ! {
    member.run(|| {
        let mut left = JOB.load(Relaxed);
        let mut before = look();
        while left > 0 {
            let now = look();
            // Longer ones are those of others.
            left = left.saturating_sub((now - before).min(64));
            before = now;
        }
    })
}

/// Reports arrivals for good.
pub fn flood(member: Member) -> ! {
    let arrivals = Arrivals::of(Endpoint::at(ARRIVALS.load(Relaxed)));
    member.run(|| loop {
        arrivals.report();
    })
}

/// Executes what no processor executes.
pub fn fault(member: Member) -> ! {
    member.run(|| arch::invalid_instruction())
}

fn look() -> u64 {
    // The clock last: who is preempted before it notes a later time, and nobody an earlier one.
    let decisions = DECISIONS.load(Acquire);
    let now = time::ticks();
    if decisions > NOTICED.load(Acquire) {
        NOTICED_AT.store(now, Release);
        NOTICED.store(decisions, Release);
    }
    LAST.store(now, Release);
    now
}

/// When a thread looked at the clock last.
pub fn last() -> u64 {
    LAST.load(Acquire)
}

/// A decision was made. Returns when the one before was noticed, if it was.
pub fn decided() -> Option<u64> {
    let before = DECISIONS.fetch_add(1, Release);
    (NOTICED.load(Acquire) == before).then(|| NOTICED_AT.load(Acquire))
}
