//! What client and server agree on, and the counting: pure logic, without a machine.
//!
//! A request has three words: a ticket, the number to begin with, and the number to stop before. So has
//! the answer: the ticket, the number that comes next, and the primes up to there.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

/// Label of an answer to a whole request, and to one that ended early. They differ from the labels of
/// the kernel's errors.
pub const DONE: u64 = 0x51;
pub const PARTIAL: u64 = 0x52;

/// Numbers between two notes.
const STEP: u64 = 100;
/// Bits of a ticket, and of numbers and counts.
const TICKET_BITS: u32 = 8;
const NUMBER_BITS: u32 = 24;

/// How far a request is. It fits into a word, so that it can be noted in one instruction: what was noted
/// last is true wherever the server is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The client's badge.
    pub caller: u64,
    pub ticket: u64,
    pub next: u64,
    pub primes: u64,
}

impl Progress {
    pub const fn to_word(self) -> u64 {
        let mut word = self.caller;
        word = word << TICKET_BITS | self.ticket & ((1 << TICKET_BITS) - 1);
        word = word << NUMBER_BITS | self.next & ((1 << NUMBER_BITS) - 1);
        word << NUMBER_BITS | self.primes & ((1 << NUMBER_BITS) - 1)
    }

    pub const fn of_word(word: u64) -> Self {
        let number = (1 << NUMBER_BITS) - 1;
        Self {
            caller: word >> (2 * NUMBER_BITS + TICKET_BITS),
            ticket: word >> (2 * NUMBER_BITS) & ((1 << TICKET_BITS) - 1),
            next: word >> NUMBER_BITS & number,
            primes: word & number,
        }
    }

    /// Counts some of the primes below `end`. False if there are no more numbers.
    pub fn step(&mut self, end: u64) -> bool {
        // The client's word is a claim: what does not fit into a note is not counted.
        let end = end.min((1 << NUMBER_BITS) - 1);
        if self.next >= end {
            return false;
        }
        let stop = end.min(self.next + STEP);
        let primes = (self.next..stop).filter(|&number| is_prime(number));
        self.primes += primes.count() as u64;
        self.next = stop;
        true
    }
}

fn is_prime(number: u64) -> bool {
    let mut divisors = (2..).take_while(|divisor| divisor * divisor <= number);
    number >= 2 && divisors.all(|divisor| !number.is_multiple_of(divisor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_25_primes_below_100_and_2262_below_20000() {
        for (end, primes) in [(100, 25), (20_000, 2262)] {
            let mut progress = Progress::default();
            while progress.step(end) {}
            assert_eq!(progress.primes, primes);
        }
    }

    #[test]
    fn progress_is_what_its_word_says() {
        let progress = Progress {
            caller: 2,
            ticket: 255,
            next: 20_000,
            primes: 2262,
        };
        assert_eq!(Progress::of_word(progress.to_word()), progress);
    }

    #[test]
    fn a_request_without_an_end_ends() {
        let mut progress = Progress {
            next: (1 << NUMBER_BITS) - 2,
            ..Progress::default()
        };
        while progress.step(u64::MAX) {}
        assert_eq!(Progress::of_word(progress.to_word()), progress);
    }
}
