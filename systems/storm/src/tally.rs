//! Counts of what was called and what came of it.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use sandglass::abi::error::ErrorNumber;
use sandglass::abi::invocation::extension;

use crate::arch::operations;

/// Labels of the ABI.
const OF_ABI: usize = operations::LAST_LABEL as usize + 1;
/// Labels that are counted: those of the ABI, and behind them those of Sandglass.
pub const LABELS: usize = OF_ABI + extension::ALL.len();

/// Where the invocations with `label` are counted; beyond all rows if they are not.
pub fn row_of(label: u64) -> usize {
    let of_extension = extension::ALL.iter().position(|&(other, _)| other == label);
    match of_extension {
        Some(index) => OF_ABI + index,
        None if label < OF_ABI as u64 => label as usize,
        None => usize::MAX,
    }
}
/// Outcomes of an invocation: no error, then each error by number.
pub const OUTCOMES: usize = ErrorNumber::NotEnoughMemory as usize + 1;
/// System calls that are counted one by one: −1 to −33 under 1 to 33, all others under 0.
pub const SYSCALLS: usize = 34;

/// What became of the invocations with one label.
#[repr(C)]
pub struct Invocations {
    pub issued: AtomicU32,
    /// Answers, by error number. Only Call has answers, and not every Call.
    pub answers: [AtomicU32; OUTCOMES],
}

/// What became of one system call.
#[repr(C)]
pub struct Calls {
    pub issued: AtomicU32,
    /// The thread went on behind it.
    pub returned: AtomicU32,
}

/// The counts of one thread. It alone writes them.
#[repr(C, align(4096))]
pub struct Tally {
    pub invocations: [Invocations; LABELS],
    pub syscalls: [Calls; SYSCALLS],
}

/// Adds one. The counter has one writer.
pub fn count(counter: &AtomicU32) {
    counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
}

/// The index of a system call number in [`Tally::syscalls`].
pub fn syscall_index(number: u64) -> usize {
    match number.wrapping_neg() {
        index @ 1..=33 => index as usize,
        _ => 0,
    }
}

/// Sums of many tallies.
pub struct Totals {
    pub invocations: [[u64; OUTCOMES + 1]; LABELS],
    pub syscalls: [[u64; 2]; SYSCALLS],
}

impl Totals {
    pub const fn new() -> Self {
        Self {
            invocations: [[0; OUTCOMES + 1]; LABELS],
            syscalls: [[0; 2]; SYSCALLS],
        }
    }

    /// Adds a tally.
    pub fn add(&mut self, tally: &Tally) {
        for (sums, row) in self.invocations.iter_mut().zip(&tally.invocations) {
            let counters = core::iter::once(&row.issued).chain(&row.answers);
            for (sum, counter) in sums.iter_mut().zip(counters) {
                *sum += u64::from(counter.load(Relaxed));
            }
        }
        for (sums, row) in self.syscalls.iter_mut().zip(&tally.syscalls) {
            for (sum, counter) in sums.iter_mut().zip([&row.issued, &row.returned]) {
                *sum += u64::from(counter.load(Relaxed));
            }
        }
    }
}

impl Tally {
    /// Sets all counts to zero.
    pub fn clear(&self) {
        for row in &self.invocations {
            row.issued.store(0, Relaxed);
            row.answers.iter().for_each(|count| count.store(0, Relaxed));
        }
        for row in &self.syscalls {
            row.issued.store(0, Relaxed);
            row.returned.store(0, Relaxed);
        }
    }

    /// System calls in all.
    pub fn calls(&self) -> u64 {
        let issued = self.syscalls.iter().map(|row| row.issued.load(Relaxed));
        issued.map(u64::from).sum()
    }
}
