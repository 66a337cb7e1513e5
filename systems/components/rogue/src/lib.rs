//! A thread that acts at random, by a seed: what an untrusted component does to those that
//! share something with it. `systems/rogues` has it beside each policy; the program of this package is what
//! `./sandglass run --rogue SEED` adds to a system.

#![no_std]

extern crate alloc;

use alloc::vec::Vec;
use core::hint::black_box;
use core::slice;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::{Endpoint, Notification, Tcb};
use sandglass::env::MemoryRegion;
use sandglass::sys::yield_now;
use sandglass::{arch, exit, time, Environment, Message};

/// Label of a request that some servers of the tests do not survive by themselves.
pub const BUG: u64 = 0x62_7567;

/// Memory as words, which anybody may write at any time.
fn words(memory: MemoryRegion) -> &'static [AtomicU64] {
    // SAFETY: the system maps it for good, page-aligned; every content of an atomic is valid. What may not be written is a
    // fault of the thread that does so.
    unsafe { slice::from_raw_parts(memory.as_mut_ptr().cast(), memory.len as usize / 8) }
}

/// A thread, and all that its component has.
pub struct Storm {
    env: &'static Environment,
    /// Never 0.
    state: u64,
    /// Without the launcher's.
    endpoints: Vec<Endpoint>,
    launcher: Option<Endpoint>,
    /// Its timers, of the timer service.
    timers: Option<Endpoint>,
    /// Longest work between two system calls, steps.
    longest_work: u64,
    notifications: [Option<Notification>; 3],
    /// What it shares with others and can write, as words.
    board: Option<&'static [AtomicU64]>,
    /// What others can read, and it should not be able to write.
    start: Option<MemoryRegion>,
    second: Option<Tcb>,
    /// It may do what it does not come back from: every second seed.
    is_mortal: bool,
}

impl Storm {
    /// Thread number `thread` of the component, which has a parameter `seed`; it knows the endpoints of these names, as far as it has them, and
    /// works for at most `longest_work` steps at a time; at least 1.
    pub fn new<'n>(
        env: &'static Environment,
        thread: u64,
        endpoints: impl IntoIterator<Item = &'n str>,
        longest_work: u64,
    ) -> Self {
        let endpoints = endpoints.into_iter();
        Self {
            env,
            // An odd factor keeps seeds apart, and rogues of different names; the state of this generator is not 0.
            state: (env.parameter("seed") * 4 + thread + 1)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .wrapping_add(
                    env.name()
                        .bytes()
                        .fold(0, |sum, byte| sum * 31 + u64::from(byte)),
                )
                | 1,
            endpoints: endpoints
                .filter_map(|name| env.find_capability(name))
                .collect(),
            launcher: env.find_capability("launcher"),
            timers: env.find_capability("timers"),
            longest_work: longest_work.max(1),
            notifications: ["never", "ready", "event"].map(|name| env.find_capability(name)),
            board: env.find_memory("board").map(words),
            start: env.find_memory("start"),
            second: env.find_capability("second.tcb"),
            is_mortal: env.parameter("seed").is_multiple_of(2),
        }
    }

    /// Writes something somewhere, mostly where it may.
    fn write(&mut self) {
        let (place, value) = (self.next() as usize, self.next());
        if let Some(board) = self.board {
            board[place % board.len()].store(value, Relaxed);
        }
        if let Some(start) = self.start.filter(|_| place % 512 == 0) {
            words(start)[0].store(1, Relaxed);
        }
    }

    /// xorshift64* (Vigna 2016).
    fn next(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn endpoint(&mut self) -> Option<Endpoint> {
        // The launcher does not answer: this is a way to end, and so is rarely taken.
        if self.below(64) == 0 && self.is_mortal {
            return self.launcher;
        }
        let count = self.endpoints.len() as u64;
        if count == 0 {
            return None;
        }
        let choice = self.below(count);
        self.endpoints.get(choice as usize).copied()
    }

    fn message(&mut self) -> Message {
        let label = match self.below(4) {
            0 => 0,
            // Those of faults, and of the sharing policies' answers.
            1 => self.below(8),
            2 => match self.below(9) {
                8 => BUG,
                label => 0x5_0000 + label,
            },
            _ => self.next(),
        };
        let words = [0; 4].map(|_: u64| match self.below(3) {
            0 => 0,
            1 => self.below(1 << 20),
            _ => self.next(),
        });
        Message::new(label, words)
    }

    /// For good, or until it dies of it.
    pub fn rage(mut self) -> ! {
        loop {
            self.act();
        }
    }

    /// Arms and cancels some of the first 64 timers, for about now, in turns, as the service understands it or nearly so.
    fn tease(&mut self, timers: Endpoint) {
        for _ in 0..self.below(8) {
            let timer = self.below(68);
            let now = time::ticks();
            let first = match self.below(4) {
                0 => now,
                1 => self.next(),
                _ => now + self.below(20_000),
            };
            let period = match self.below(3) {
                0 => self.next(),
                _ => self.below(1 << 20),
            };
            black_box(timers.call(Message::new(self.below(6), [timer, first, period])));
        }
    }

    fn act(&mut self) {
        if let Some(timers) = self.timers {
            if self.below(2) == 0 {
                return self.tease(timers);
            }
        }
        match self.below(100) {
            0..30 => {
                if let Some(endpoint) = self.endpoint() {
                    black_box(endpoint.call(self.message()));
                }
            }
            30..50 => {
                let times = self.below(20);
                for _ in 0..times {
                    if let Some(endpoint) = self.endpoint() {
                        endpoint.nb_send(self.message());
                    }
                }
            }
            50..56 => {
                if let Some(endpoint) = self.endpoint() {
                    endpoint.send(self.message());
                }
            }
            56..70 => {
                let steps = self.below(self.longest_work);
                time::work(steps);
            }
            70..86 => yield_now(),
            86..92 => {
                let choice = self.below(3) as usize;
                if let Some(notification) = self.notifications[choice] {
                    match self.below(8) {
                        0 if self.is_mortal => _ = notification.wait(),
                        _ => notification.signal(),
                    }
                }
            }
            92..94 => {
                for _ in 0..self.below(64) {
                    self.write();
                }
            }
            94..97 => {
                if let Some(second) = self.second {
                    let _ = match self.below(3) {
                        0 => second.suspend(),
                        _ => second.resume(),
                    };
                }
            }
            97 if self.is_mortal && self.below(16) == 0 => exit::exit(self.below(3) as u8),
            98 if self.is_mortal && self.below(8) == 0 => panic!("as the seed has it"),
            99 if self.is_mortal && self.below(8) == 0 => arch::invalid_instruction(),
            _ => {
                // What is not in the environment does not exist either.
                black_box(self.env.find_capability::<Endpoint>("no such thing"));
            }
        }
    }
}
