//! Marks in the execution trace: what only a program knows of its own course.
//!
//! A system that runs under `sandglass trace` has a kernel that records what it does: who runs, on
//! whose budget, who waits for what. Jobs, deadlines and modes belong to the user level; a program that
//! wants to see them in the trace, and have them checked, marks them:
//!
//! ```ignore
//! use sandglass::trace::{self, Mark};
//!
//! trace::mark(Mark::Release { job, at: released });
//! trace::mark(Mark::Deadline { job, at: released + relative_deadline });
//! work();
//! trace::mark(Mark::End { job });
//! ```
//!
//! In a system that is not traced a mark does nothing and costs a load and a branch; so programs
//! leave their marks in. In one that is, a mark is a system call: about as long as a signal.

use core::sync::atomic::{AtomicBool, Ordering};

use sandglass_abi::trace::{Call, MarkKind, HARD, STOP_WHEN_FULL};

pub use sandglass_abi::trace::Parameter;

use crate::cap::{Capability, Frame, SchedControl};
use crate::sys;

/// Whether the kernel takes marks.
static TRACED: AtomicBool = AtomicBool::new(false);

/// Something to be seen in the trace. Times are in ticks ([`crate::time::ticks`]); jobs of one thread
/// have different numbers, which need not be in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The job `job` was released at the time `at`: when it should have begun, not when its thread
    /// first ran.
    Release { job: u64, at: u64 },
    /// The job `job` is to end by the time `at`. Without this mark, the thread's described `deadline`
    /// counts from the release, if there is one.
    Deadline { job: u64, at: u64 },
    /// The job `job` has ended, in time or not.
    End { job: u64 },
    /// The system's mode of criticality goes from one level to another.
    Mode { from: u64, to: u64 },
    /// Two numbers that say something to whoever looks at the trace.
    Note { what: u64, value: u64 },
    /// The time from which on a scheduler's plan counts: release and frame 0.
    Origin { at: u64 },
    /// At the time `at` it was decided that the processor is a partition's until `until`; nobody else's any more. `number` is
    /// that of its release or of the frame.
    Window { number: u64, at: u64, until: u64 },
    /// At the time `at` it was decided that the processor is nobody's.
    WindowEnd { at: u64 },
    /// At the time `at` a partition has had so many ticks beyond its window.
    Overrun { at: u64, ticks: u64 },
    /// A thread's reservation, µs, of which the trace keeps 32 bits; no budget: it has none any more.
    Reservation {
        budget_us: u64,
        period_us: u64,
        deadline_us: u64,
        hard: bool,
    },
    /// What a gate of a resource server did, as `sandglass_mc_ipc::marks` writes it.
    Gate { what: u8, first: u64, second: u64 },
}

impl Mark {
    /// Detail and words of the record.
    const fn words(self) -> (u64, u64, u64) {
        let (kind, first, second) = match self {
            Self::Release { job, at } => (MarkKind::Release, job, at),
            Self::Deadline { job, at } => (MarkKind::Deadline, job, at),
            Self::End { job } => (MarkKind::End, job, 0),
            Self::Mode { from, to } => (MarkKind::Mode, from, to),
            Self::Note { what, value } => (MarkKind::Note, what, value),
            Self::Origin { at } => (MarkKind::Origin, at, 0),
            Self::Window { at, until, .. } => (MarkKind::Window, at, until),
            Self::WindowEnd { at } => (MarkKind::WindowEnd, at, 0),
            Self::Overrun { at, ticks } => (MarkKind::Overrun, at, ticks),
            Self::Reservation {
                budget_us,
                period_us,
                deadline_us,
                hard,
            } => {
                let parameters = half(budget_us) | half(period_us) << 32;
                let is_hard = if hard { HARD } else { 0 };
                (
                    MarkKind::Reservation,
                    parameters,
                    half(deadline_us) | is_hard,
                )
            }
            Self::Gate { first, second, .. } => (MarkKind::Gate, first, second),
        };
        (kind as u64 | self.more() << 8, first, second)
    }

    /// What the detail says above its eight bits.
    const fn more(self) -> u64 {
        match self {
            Self::Window { number, .. } => number % 256,
            Self::Gate { what, .. } => what as u64,
            _ => 0,
        }
    }
}

/// `value` as 32 bits; the most that they say, if it is more.
const fn half(value: u64) -> u64 {
    if value > u32::MAX as u64 {
        u32::MAX as u64
    } else {
        value
    }
}

/// Whether this system is traced. A program need not ask; it may, to save itself the making of marks.
#[inline(always)]
pub fn is_traced() -> bool {
    TRACED.load(Ordering::Relaxed)
}

/// Marks something about the calling thread.
#[inline(always)]
pub fn mark(mark: Mark) {
    if is_traced() {
        let (detail, first, second) = mark.words();
        write(0, detail, first, second);
    }
}

/// Marks something about another thread, by its TCB or its scheduling context: for schedulers, which
/// release the jobs of others. Of a context, the mark is about the thread that is bound to it when
/// the trace begins.
#[inline(always)]
pub fn mark_of(subject: impl Capability, mark: Mark) {
    if is_traced() {
        let (detail, first, second) = mark.words();
        write(subject.cptr().raw(), detail, first, second);
    }
}

/// Gives a thread or a scheduling context the name under which the trace shows it.
pub fn name(subject: impl Capability, name: &str) {
    if !is_traced() {
        return;
    }
    for (i, part) in name.as_bytes().chunks(16).enumerate() {
        let mut bytes = [0; 16];
        bytes[..part.len()].copy_from_slice(part);
        let words = u128::from_le_bytes(bytes);
        let detail = MarkKind::Name as u64 | (i as u64) << 8;
        write(
            subject.cptr().raw(),
            detail,
            words as u64,
            (words >> 64) as u64,
        );
    }
}

/// Tells the trace a described parameter of a thread.
pub fn parameter(subject: impl Capability, parameter: Parameter, value: u64) {
    if is_traced() {
        let kind = MarkKind::Parameter as u64;
        write(subject.cptr().raw(), kind, parameter as u64, value);
    }
}

/// From now on marks are made: the kernel is one that is built for traces. The entry code of a
/// component calls this if its environment says so; a root task that gave the kernel buffers does
/// it itself.
pub fn enable() {
    TRACED.store(true, Ordering::Relaxed);
}

/// Gives the kernel a frame of 2 MiB for the records of the core of `control`: more memory for its log
/// if the frame begins where that ends, else all of it. When a log is full, what comes is lost, and
/// counted. Returns whether the kernel takes it: one with traces does, if the capability to the
/// frame has the rights to read and write it.
#[must_use]
pub fn give_log(frame: Frame, control: SchedControl) -> bool {
    let words = [control.cptr().raw(), 0];
    sys::trace(
        Call::SetLogBuffer,
        frame.cptr().raw(),
        STOP_WHEN_FULL,
        words,
    ) == 0
}

#[inline(never)]
fn write(subject: u64, detail: u64, first: u64, second: u64) {
    sys::trace(Call::Mark, subject, detail, [first, second]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_without_a_trace_do_nothing() {
        assert!(!is_traced());
        mark(Mark::End { job: 1 });
        mark_of(crate::cap::Tcb::at(7), Mark::Mode { from: 0, to: 1 });
        name(crate::cap::Tcb::at(7), "somebody");
    }

    #[test]
    fn the_words_of_a_mark_are_those_of_the_format() {
        assert_eq!(
            Mark::Deadline { job: 3, at: 900 }.words(),
            (MarkKind::Deadline as u64, 3, 900)
        );
        assert_eq!(
            Mark::Mode { from: 0, to: 2 }.words(),
            (MarkKind::Mode as u64, 0, 2)
        );
        let window = Mark::Window {
            number: 0x102,
            at: 5,
            until: 9,
        };
        let detail = MarkKind::Window as u64 | 2 << 8;
        assert_eq!(window.words(), (detail, 5, 9));
        let gate = Mark::Gate {
            what: 3,
            first: 5,
            second: 9,
        };
        assert_eq!(gate.words(), (MarkKind::Gate as u64 | 3 << 8, 5, 9));
        let reservation = Mark::Reservation {
            budget_us: 1 << 40,
            period_us: 2,
            deadline_us: 3,
            hard: true,
        };
        let words = (MarkKind::Reservation as u64, 0x2_ffff_ffff, HARD | 3);
        assert_eq!(reservation.words(), words);
    }
}
