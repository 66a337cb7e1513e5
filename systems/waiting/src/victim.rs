//! The task that must notice nothing.

use core::sync::atomic::{AtomicU64, Ordering};

use sandglass::cap::{Notification, SchedParams};
use sandglass::sys::yield_now;
use sandglass::testing::shared;
use sandglass::time::ticks;
use sandglass::SetupError;

use alloc::vec::Vec;

use crate::crew::{count_down, Crew};
use crate::marks;

const PRIORITY: u8 = 200;
/// Budget and period, µs. The budget of a sporadic context comes back when it is due, however late
/// the thread was let run; so periods begin at known times.
const TIME: SchedParams = SchedParams::new(500, 10_000).sporadic();

/// A job: so often some work and two system calls, some 60 µs in all.
const STEPS: u64 = 10;
const ROUNDS: u64 = 1_000;

pub const MOST_JOBS: u64 = 64;

/// How it went.
pub struct Outcome {
    pub jobs: u64,
    /// Jobs that ended within their periods.
    pub in_time: u64,
    /// The longest time from the beginning of a period to the end of its job, µs.
    pub worst_us: u64,
    /// What the kernel charged for all jobs, µs.
    pub paid_us: u64,
    /// What of it is time between two readings of the clock in user code, µs.
    pub user_us: u64,
    /// How often each attacker has done its operation meanwhile.
    pub rounds: Vec<u64>,
}

impl Outcome {
    /// What it paid for its time in the kernel, and on the way there and back, µs.
    pub fn kernel_us(&self) -> u64 {
        self.paid_us.saturating_sub(self.user_us)
    }
}

/// What the task says of its jobs.
#[derive(Default)]
struct Log {
    in_time: AtomicU64,
    user_ticks: AtomicU64,
    worst_ticks: AtomicU64,
}

/// Measures a window in which the task does its jobs; then everybody stops.
pub fn run(crew: &mut Crew, jobs: u64) -> Result<Outcome, SetupError> {
    let clock = crew.clock();
    let period = clock.us_to_ticks(TIME.time.period_us);
    let (work, done) = (
        crew.process.resources.notification()?,
        crew.process.resources.notification()?,
    );
    let log: &'static Log = shared();
    let (_, context) = crew.thread(0, PRIORITY, TIME, move || {
        let begun = ticks();
        for job in 0..jobs {
            let user = do_job(work);
            log.user_ticks.fetch_add(user, Ordering::Relaxed);
            let response = ticks().saturating_sub(begun + job * period);
            log.worst_ticks.fetch_max(response, Ordering::Relaxed);
            log.in_time
                .fetch_add(u64::from(response <= period), Ordering::Relaxed);
            // The rest of the budget is given up: the next job is in the next period.
            yield_now();
        }
        done.signal();
    })?;
    marks::begin();
    crew.start()?;
    done.wait();
    marks::end();
    let outcome = Outcome {
        jobs,
        in_time: log.in_time.load(Ordering::Relaxed),
        worst_us: clock.ticks_to_us(log.worst_ticks.load(Ordering::Relaxed)),
        paid_us: context.consumed_us()?,
        user_us: clock.ticks_to_us(log.user_ticks.load(Ordering::Relaxed)),
        rounds: crew.rounds(),
    };
    crew.stop()?;
    Ok(outcome)
}

/// Returns the ticks that passed in user code.
fn do_job(work: Notification) -> u64 {
    let mut user = 0;
    for _ in 0..STEPS {
        let before = ticks();
        count_down(ROUNDS);
        user += ticks() - before;
        work.signal();
        work.poll();
    }
    user
}
