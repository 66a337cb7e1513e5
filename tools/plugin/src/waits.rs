//! The measurement of waiting: how long cores wait for their turns in the kernel.
//!
//! Virtual time passes for all cores at once, and how long the emulator stays with each is its own
//! choice. So the length of a wait is what others do meanwhile that keeps the core out: the instructions of
//! the kernel that they execute, but for those with which they wait themselves. What a core executes between
//! its exit and the end of its turn, or on its way to its place in the order, is among it; so a wait is told
//! too long rather than too short.

use std::ops::Range;

use crate::meter::{Block, Place};

/// Whether a block is of the code that waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Waiting {
    /// The wait begins with it.
    Begins,
    /// Whoever waits may execute it; others may, too.
    MayGoOn,
    /// Whoever executes it does not wait, or not any more.
    No,
}

/// Where the code is that waits.
#[derive(Default, Debug)]
pub struct WaitingCode {
    /// First instructions of the functions that wait.
    pub from: Vec<u64>,
    /// The code of these functions, and of those that they call.
    pub code: Vec<Range<u64>>,
}

impl WaitingCode {
    /// What a block at `start` is.
    pub fn of(&self, start: u64) -> Waiting {
        if self.from.contains(&start) {
            Waiting::Begins
        } else if self.code.iter().any(|code| code.contains(&start)) {
            Waiting::MayGoOn
        } else {
            Waiting::No
        }
    }
}

/// What a core does.
#[derive(Clone, Copy, Default, Debug)]
struct Core {
    /// It waits; the work of all others, when it began to.
    since: Option<u64>,
    /// Instructions since it has entered the kernel, got its turn or looked whether to stop.
    stretch: u64,
    /// Instructions in this turn, while others waited.
    turn: u64,
}

/// Measures windows.
#[derive(Default, Debug)]
pub struct WaitMeter {
    cores: Vec<Core>,
    /// Cores that wait.
    waiting: usize,
    /// Instructions of the kernel that all cores have executed, but for waiting.
    work: u64,
    /// In this window:
    waits: u64,
    longest_wait: u64,
    longest_turn: u64,
    longest_stretch: u64,
}

impl WaitMeter {
    /// `core` executes `block`.
    #[inline]
    pub fn run(&mut self, core: usize, block: Block, code: Waiting) {
        if core >= self.cores.len() {
            self.cores.resize(core + 1, Core::default());
        }
        let this = &mut self.cores[core];
        if block.place == Place::User {
            (this.stretch, this.turn) = (0, 0);
            return;
        }
        match (code, this.since) {
            (Waiting::Begins, None) => {
                this.since = Some(self.work);
                self.waiting += 1;
                self.waits += 1;
                return;
            }
            (Waiting::Begins | Waiting::MayGoOn, Some(_)) => return,
            (_, since) => {
                if let Some(since) = since {
                    self.longest_wait = self.longest_wait.max(self.work - since);
                    self.waiting -= 1;
                    *this = Core::default();
                }
            }
        }
        if block.place == Place::Point {
            this.stretch = 0;
        }
        let instructions = u64::from(block.length);
        self.work += instructions;
        this.stretch += instructions;
        self.longest_stretch = self.longest_stretch.max(this.stretch);
        if self.waiting > 0 {
            this.turn += instructions;
            self.longest_turn = self.longest_turn.max(this.turn);
        }
        if block.place == Place::Halt {
            (this.stretch, this.turn) = (0, 0);
        }
    }

    /// A window begins.
    pub fn begin(&mut self) {
        self.waits = 0;
        self.longest_wait = 0;
        self.longest_turn = 0;
        self.longest_stretch = 0;
    }

    /// It ends: a line `waits NUMBER LONGEST TURN STRETCH`: how often a core has waited and how
    /// long at most, the longest turn in the kernel as far as others have waited, and the longest
    /// stretch without a look.
    pub fn end(&self) -> String {
        format!(
            "waits {} {} {} {}\n",
            self.waits, self.longest_wait, self.longest_turn, self.longest_stretch
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: (Place, Waiting) = (Place::User, Waiting::No);
    const WORK: (Place, Waiting) = (Place::Kernel, Waiting::No);
    const LOOK: (Place, Waiting) = (Place::Point, Waiting::No);
    const WAIT: (Place, Waiting) = (Place::Kernel, Waiting::Begins);
    const SERVE: (Place, Waiting) = (Place::Kernel, Waiting::MayGoOn);

    fn measured(blocks: &[(usize, (Place, Waiting), u32)]) -> String {
        let mut meter = WaitMeter::default();
        meter.begin();
        for &(core, (place, code), length) in blocks {
            let block = Block {
                start: 0,
                length,
                place,
            };
            meter.run(core, block, code);
        }
        meter.end()
    }

    #[test]
    fn a_wait_is_as_long_as_the_work_of_others() {
        let blocks = [
            (1, WORK, 100),
            (0, WORK, 3),
            (0, WAIT, 5),
            (1, WORK, 20),
            (0, SERVE, 5),
            (2, WAIT, 7),
            (1, WORK, 4),
            (1, USER, 50),
            (0, WORK, 9),
            (2, WORK, 1),
        ];
        // Core 0 waits for 24; core 2 for 4 of them, and for 9 of core 0. The turn of core 1 is as long as
        // others wait.
        assert_eq!(measured(&blocks), "waits 2 24 24 124\n");
    }

    #[test]
    fn a_stretch_ends_at_a_look_and_serving_is_no_wait() {
        let blocks = [
            (0, WORK, 10),
            (0, LOOK, 2),
            (0, WORK, 5),
            (0, USER, 1),
            (0, SERVE, 8),
            (0, USER, 1),
        ];
        assert_eq!(measured(&blocks), "waits 0 0 0 10\n");
    }
}
