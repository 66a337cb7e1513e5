//! What tasks execute: chunks of a fixed length, with a look at the clock between them.
//!
//! So a switch is seen from both sides: the last look before it, and the first after it (thesis
//! 8.4.2). A thread that looks for the first time since a decision notes that it, and nobody else,
//! runs.

use core::arch::asm;
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};

use edf_record::{Noticed, MAX_TASKS};
use sandglass::time;

/// Times that a chunk counts down beside the look, two instructions each: a host executes them quickly.
const SPINS: u64 = 48;
/// Chunks that are executed to learn how long one takes.
const CALIBRATION: u64 = 500;
const TRIES: usize = 8;

/// Chunks in a job, of each task.
static LENGTHS: [AtomicU64; MAX_TASKS] = [const { AtomicU64::new(0) }; MAX_TASKS];
/// Changes when all jobs are to end.
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// Decisions so far.
static DECISIONS: AtomicU64 = AtomicU64::new(0);
/// The number of decisions when one was noticed last; whose look that was, and when.
static NOTICED: AtomicU64 = AtomicU64::new(0);
static NOTICED_BY: AtomicU64 = AtomicU64::new(0);
static NOTICED_AT: AtomicU64 = AtomicU64::new(0);
/// The last look.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Executes a job of a task.
pub fn execute(task: usize) {
    let generation = GENERATION.load(Acquire);
    let mut left = LENGTHS[task].load(Acquire);
    while left > 0 && GENERATION.load(Acquire) == generation {
        look(task);
        spin();
        left -= 1;
    }
    look(task);
}

fn look(task: usize) {
    // The clock last: who is preempted before it notes a later time, and nobody an earlier one.
    let decisions = DECISIONS.load(Acquire);
    let now = time::ticks();
    if decisions > NOTICED.load(Acquire) {
        NOTICED_BY.store(task as u64, Release);
        NOTICED_AT.store(now, Release);
        NOTICED.store(decisions, Release);
    }
    LAST.store(now, Release);
}

#[cfg(target_arch = "x86_64")]
fn spin() {
    // SAFETY: counts a register down.
    unsafe {
        asm!(
            "2: dec {left}",
            "jnz 2b",
            left = inout(reg) SPINS => _,
            options(nomem, nostack),
        );
    }
}

#[cfg(target_arch = "aarch64")]
fn spin() {
    // SAFETY: counts a register down.
    unsafe {
        asm!(
            "2: subs {left}, {left}, #1",
            "b.ne 2b",
            left = inout(reg) SPINS => _,
            options(nomem, nostack),
        );
    }
}

/// Ticks that a chunk takes, if nobody interrupts it: exact in virtual time, where it always takes the
/// same. The shortest of several tries is one that the end of a slice does not fall into.
pub fn calibrate() -> u64 {
    let shortest = |chunks| {
        set_length(0, chunks);
        let tries = (0..TRIES).map(|_| {
            let start = time::ticks();
            execute(0);
            time::ticks() - start
        });
        tries.min().unwrap_or(0)
    };
    // What is around the chunks takes the same time in both.
    ((shortest(2 * CALIBRATION) - shortest(CALIBRATION)) / CALIBRATION).max(1)
}

/// From its next job on, a task executes so many chunks.
pub fn set_length(task: usize, chunks: u64) {
    LENGTHS[task].store(chunks, Release);
}

/// Lets all jobs end at once, also one that has been released and does not know its length yet.
pub fn abandon() {
    for length in &LENGTHS {
        length.store(0, Release);
    }
    GENERATION.fetch_add(1, Release);
}

/// When a task looked at the clock last.
pub fn last_look() -> u64 {
    LAST.load(Acquire)
}

/// Tells the tasks that a decision was made. Returns who noticed the one before, if anybody did.
pub fn decided() -> Option<Noticed> {
    let before = DECISIONS.fetch_add(1, Release);
    (NOTICED.load(Acquire) == before).then(|| Noticed {
        task: NOTICED_BY.load(Acquire) as u32,
        at: NOTICED_AT.load(Acquire),
    })
}
