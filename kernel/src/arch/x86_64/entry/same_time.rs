//! Whether the time-stamp counters of the cores agree: the kernel compares times of different cores.
//!
//! The core that boots asks each core that it has started a few times for its counter, and reads its
//! own before and after. What it cannot see is less than the time between the two, which is that of
//! two messages between cores. Firmware that sets counters apart sets them apart by more.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::arch::x86_64::machine::cpu;
use crate::arch::x86_64::machine::rate::agree;

/// Number of the last question, and of the question that was answered last, of the core that is
/// started.
///
/// Release and Acquire: who sees the number sees what was written before.
static ASKED: AtomicU32 = AtomicU32::new(0);
static ANSWERED: AtomicU32 = AtomicU32::new(0);
/// The answer.
static COUNTER: AtomicU64 = AtomicU64::new(0);

const QUESTIONS: u32 = 4;

/// No question is open. Before another core is started.
pub fn prepare() {
    ASKED.store(0, Ordering::Relaxed);
    ANSWERED.store(0, Ordering::Release);
}

/// Answers all questions of the core that boots, on the core that it has started. If that stops
/// asking, it resets this one.
pub fn answer() {
    for question in 1..=QUESTIONS {
        while ASKED.load(Ordering::Acquire) != question {
            core::hint::spin_loop();
        }
        COUNTER.store(cpu::time_stamp(), Ordering::Relaxed);
        ANSWERED.store(question, Ordering::Release);
    }
}

/// Whether the core that was just started has a counter that agrees with this one's, but for `error`
/// ticks; `None` if it does not answer for `patience` ticks.
pub fn ask(patience: u64, error: u64) -> Option<bool> {
    let mut all = true;
    for question in 1..=QUESTIONS {
        let asked = cpu::time_stamp();
        ASKED.store(question, Ordering::Release);
        while ANSWERED.load(Ordering::Acquire) != question {
            if cpu::time_stamp().wrapping_sub(asked) > patience {
                return None;
            }
            core::hint::spin_loop();
        }
        let heard = cpu::time_stamp();
        all &= agree(asked, COUNTER.load(Ordering::Relaxed), heard, error);
    }
    Some(all)
}
