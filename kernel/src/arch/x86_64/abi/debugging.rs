//! What a thread has set to be watched of itself, or a debugger for it: breakpoints, watchpoints and single steps (09,
//! section 3). It is part of the thread's registers; the processor has it while the thread runs.

use core::cell::Cell;

use crate::cells::Owner;

const _: () = assert!(
    sandglass_abi::profile::THIS.hardware_debug,
    "the feature `hardware-debug` is for profiles with that API"
);

/// Breakpoints of a processor, and so of a thread.
pub const BREAKPOINTS: u64 = 4;

/// First bit of each breakpoint's four in DR7: what is watched, and of how many bytes.
const KIND_SHIFT: u64 = 16;
const KIND_BITS: u64 = 4;
/// Bits of DR6: the breakpoints that were hit, and that an instruction was a single step.
const HIT: u64 = (1 << BREAKPOINTS) - 1;
const STEPPED: u64 = 1 << 14;
/// Bits of a set of numbers: greater ones have no place of their own. Numbers of breakpoints are four.
const NUMBERS: u64 = 64;

/// How memory is accessed that is watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    Write,
    /// Reading alone is nothing that the processor can watch.
    ReadWrite,
}

/// What a breakpoint watches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watch {
    Instruction,
    /// So many bytes: 1, 2, 4 or 8.
    Data {
        size: u64,
        access: Access,
    },
}

impl Watch {
    /// Its bits in DR7: two for what, two for how many bytes.
    fn bits(self) -> u64 {
        let Watch::Data { size, access } = self else {
            return 0;
        };
        let access = match access {
            Access::Write => 0b01,
            Access::ReadWrite => 0b11,
        };
        let size = match size {
            2 => 0b01,
            4 => 0b11,
            8 => 0b10,
            _ => 0b00,
        };
        size << 2 | access
    }

    fn of_bits(bits: u64) -> Self {
        let access = match bits & 0b11 {
            0b00 => return Watch::Instruction,
            0b01 => Access::Write,
            _ => Access::ReadWrite,
        };
        let size = match bits >> 2 & 0b11 {
            0b00 => 1,
            0b01 => 2,
            0b11 => 4,
            _ => 8,
        };
        Watch::Data { size, access }
    }
}

/// A breakpoint of a thread. One that was not set, or was removed, watches instructions at 0, and is off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Breakpoint {
    pub address: u64,
    pub watch: Watch,
    pub is_enabled: bool,
}

impl Breakpoint {
    pub const NONE: Breakpoint = Breakpoint {
        address: 0,
        watch: Watch::Instruction,
        is_enabled: false,
    };
}

/// What the processor reports (05, section 2.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The thread accessed what breakpoint `number` watches, from `address` on.
    Data { address: u64, number: u8 },
    /// It is about to execute what breakpoint `number` watches.
    Instruction { address: u64, number: u8 },
    /// It has executed the last of the instructions that it was to.
    Step,
    /// It has executed INT3.
    Software,
}

impl Event {
    /// Which kind it is.
    pub fn reason(self) -> u64 {
        match self {
            Event::Data { .. } => 0,
            Event::Instruction { .. } => 1,
            Event::Step => 2,
            Event::Software => 3,
        }
    }
}

/// What is watched of a thread. In a new one it is all zero: nothing.
pub struct State {
    /// As DR0 to DR3.
    addresses: [Cell<u64>; BREAKPOINTS as usize],
    /// As DR7, but for the bit that is always set.
    control: Cell<u64>,
    /// Numbers that are in use. Without any, nothing is watched, whatever is set.
    used: Cell<u64>,
    /// Whether the thread is stepped.
    stepping: Cell<bool>,
    /// Instructions that it executes before that is reported; then, each is.
    steps: Cell<u64>,
}

impl State {
    pub const fn new() -> Self {
        State {
            addresses: [const { Cell::new(0) }; BREAKPOINTS as usize],
            control: Cell::new(0),
            used: Cell::new(0),
            stepping: Cell::new(false),
            steps: Cell::new(0),
        }
    }

    /// Breakpoint `number`; none past the last.
    pub fn breakpoint(&self, number: u64) -> Breakpoint {
        let Some(address) = self.addresses.get(number as usize) else {
            return Breakpoint::NONE;
        };
        let control = self.control.get();
        Breakpoint {
            address: address.get(),
            watch: Watch::of_bits(control >> kind_shift(number)),
            is_enabled: control & enabled(number) != 0,
        }
    }

    /// Replaces breakpoint `number`, which is in use from now on if it is enabled, and otherwise is not.
    pub fn set_breakpoint(&self, k: &impl Owner, number: u64, breakpoint: Breakpoint) {
        let Some(address) = self.addresses.get(number as usize) else {
            return;
        };
        let own = enabled(number) | ((1 << KIND_BITS) - 1) << kind_shift(number);
        let mut control = self.control.get() & !own;
        control |= breakpoint.watch.bits() << kind_shift(number);
        if breakpoint.is_enabled {
            control |= enabled(number);
        }
        address.set(breakpoint.address);
        self.control.set(control);
        self.set_used(k, number, breakpoint.is_enabled);
    }

    /// The thread is stepped, and reports after `steps` instructions; with 0, it is not stepped any more.
    pub fn set_steps(&self, _: &impl Owner, steps: u64) {
        self.stepping.set(steps != 0);
        self.steps.set(steps);
    }

    /// Whether `number` is in use.
    pub fn set_used(&self, _: &impl Owner, number: u64, used: bool) {
        let bit = 1 << (number % NUMBERS);
        self.used.set(match used {
            true => self.used.get() | bit,
            false => self.used.get() & !bit,
        });
    }

    /// Whether the processor is to know anything of it.
    #[inline(always)]
    pub fn is_used(&self) -> bool {
        self.used.get() != 0
    }

    /// Whether the thread's trap flag is the kernel's affair.
    #[inline(always)]
    pub fn is_stepped(&self) -> bool {
        self.stepping.get()
    }

    /// The registers DR0 to DR3, and DR7.
    pub fn registers(&self) -> ([u64; BREAKPOINTS as usize], u64) {
        (self.addresses.each_ref().map(Cell::get), self.control.get())
    }

    /// What is to be told of the debug exception with the `status` of DR6, if anything: a breakpoint before a step, the lowest
    /// first. Counts the step.
    pub fn trapped(&self, status: u64) -> Option<Event> {
        let lowest = u64::from((status & HIT & self.enabled_breakpoints()).trailing_zeros());
        if lowest < BREAKPOINTS {
            let Breakpoint { address, watch, .. } = self.breakpoint(lowest);
            let number = lowest as u8;
            return Some(match watch {
                Watch::Instruction => Event::Instruction { address, number },
                Watch::Data { .. } => Event::Data { address, number },
            });
        }
        if status & STEPPED == 0 {
            return None;
        }
        let left = self.steps.get().saturating_sub(1);
        self.steps.set(left);
        (left == 0).then_some(Event::Step)
    }

    /// A bit for each breakpoint that is enabled.
    fn enabled_breakpoints(&self) -> u64 {
        let bit = |number| u64::from(self.control.get() & enabled(number) != 0) << number;
        bit(0) | bit(1) | bit(2) | bit(3)
    }
}

/// The bit of DR7 by which breakpoint `number` is on, whatever task the processor thinks there is.
const fn enabled(number: u64) -> u64 {
    1 << (2 * (number % BREAKPOINTS) + 1)
}

const fn kind_shift(number: u64) -> u64 {
    KIND_SHIFT + KIND_BITS * (number % BREAKPOINTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Anyone;
    impl Owner for Anyone {}

    fn data(address: u64, size: u64, access: Access) -> Breakpoint {
        Breakpoint {
            address,
            watch: Watch::Data { size, access },
            is_enabled: true,
        }
    }

    #[test]
    fn what_was_set_is_read_back_and_the_others_stay() {
        let state = State::new();
        let mut set = [Breakpoint::NONE; BREAKPOINTS as usize];
        for size in [1, 2, 4, 8] {
            for access in [Access::Write, Access::ReadWrite] {
                for number in 0..BREAKPOINTS {
                    set[number as usize] = data(size * number, size, access);
                    state.set_breakpoint(&Anyone, number, set[number as usize]);
                    for other in 0..BREAKPOINTS {
                        assert_eq!(state.breakpoint(other), set[other as usize]);
                    }
                }
            }
        }
        for number in 0..BREAKPOINTS {
            assert!(state.is_used());
            state.set_breakpoint(&Anyone, number, Breakpoint::NONE);
        }
        assert_eq!(state.registers(), ([0; 4], 0));
        assert!(!state.is_used());
    }

    /// As Intel's manual has the register (volume 3, 18.2.4), by hand.
    #[test]
    fn the_control_register_is_the_processors() {
        let state = State::new();
        state.set_breakpoint(&Anyone, 0, data(0x1000, 1, Access::Write));
        state.set_breakpoint(&Anyone, 1, data(0x2000, 2, Access::ReadWrite));
        state.set_breakpoint(&Anyone, 3, data(0x3000, 8, Access::ReadWrite));
        let (addresses, control) = state.registers();
        assert_eq!(addresses, [0x1000, 0x2000, 0, 0x3000]);
        assert_eq!(control, 0xb071_008a);
    }

    #[test]
    fn the_lowest_breakpoint_that_is_on_is_told_and_steps_are_told_last() {
        let state = State::new();
        state.set_breakpoint(&Anyone, 2, data(8, 8, Access::Write));
        state.set_steps(&Anyone, 2);
        let hit = Event::Data {
            address: 8,
            number: 2,
        };
        assert_eq!(state.trapped(0b1111), Some(hit));
        assert_eq!(state.trapped(0b0011), None, "others are off");
        assert_eq!(state.trapped(STEPPED), None, "the first of two");
        assert_eq!(state.trapped(STEPPED | 0b0100), Some(hit));
        assert_eq!(state.trapped(STEPPED), Some(Event::Step));
        assert_eq!(state.trapped(STEPPED), Some(Event::Step), "each, then");
    }
}
