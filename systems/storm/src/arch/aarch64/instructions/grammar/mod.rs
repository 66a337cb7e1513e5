//! The grammar: random instructions of each class, with what prepares them.

mod programs;
mod system;

use core::sync::atomic::Ordering::Relaxed;

use super::class::Class;
use super::{entry_address, summit};
use crate::actor::Dice;
use crate::arch::code::{without_the_host, Code};
use crate::area::{area_address, stack_top, Area};
use crate::instructions::places;

/// Bytes of the longest batch: [`crate::instructions::batch::MOST_ITEMS`] of the longest items, registers before and
/// the way back behind.
const MOST_CODE: usize = 2400;

/// Registers of data, and the one of an address to go to, which hardly anything else takes for an address of data.
const DATA: u32 = 9;
const OTHER: u32 = 10;
const TARGET: u32 = 11;
/// What the stack pointer is moved by.
const STACK: u32 = 12;
/// What items are counted with.
const COUNTER: [u32; 2] = [16, 17];
/// The number of a system call.
const NUMBER: u32 = 7;
/// x0 to x30.
const REGISTERS: u32 = 31;
const SP: u32 = 31;

/// ADD Xd, Xn, #0, by which the stack pointer is written.
const MOVE_TO_SP: u32 = 0x9100_0000 | SP;
const BRANCH: u32 = 0xd61f_0000;

/// Makes a batch.
pub struct Composer<'a> {
    pub dice: Dice<'a>,
    pub code: Code<MOST_CODE>,
    area: &'a Area,
}

impl<'a> Composer<'a> {
    pub fn new(area: &'a Area, dice: Dice<'a>) -> Self {
        Self {
            dice,
            code: Code::new(),
            area,
        }
    }

    /// Loads all registers with anything, the stack pointer mostly with a stack. What they are now leads
    /// to the counters.
    pub fn registers(&mut self) {
        let stack = match self.dice.below(8) {
            0 => self.address(),
            _ => self.stack(),
        };
        self.load_stack(stack);
        for register in 0..REGISTERS {
            let value = self.address();
            self.code.load(register, value);
        }
        self.no_call();
    }

    /// System calls have negative numbers. Those of the debug kernel are not to be met by chance.
    fn no_call(&mut self) {
        let number = self.dice.below(1 << 16);
        self.code.load(NUMBER, number);
    }

    /// A class by its weight.
    pub fn class(&mut self) -> Class {
        const WEIGHTS: [u64; Class::COUNT] = {
            let mut weights = [0; Class::COUNT];
            let mut i = 0;
            while i < Class::COUNT {
                weights[i] = Class::ALL[i].weight();
                i += 1;
            }
            weights
        };
        Class::ALL[self.dice.weighted(WEIGHTS)]
    }

    /// Counts the begin of an item in the byte at `counter`, whatever the registers are but for two.
    pub fn count(&mut self, counter: u64) {
        let [address, value] = COUNTER;
        self.code.load(address, counter);
        self.code.extend(&[
            // ldrb value, [address]; add value, value, #1; strb value, [address]
            0x3940_0000 | address << 5 | value,
            0x1100_0400 | value << 5 | value,
            0x3900_0000 | address << 5 | value,
        ]);
    }

    /// Starts the thread anew.
    pub fn leave(&mut self) {
        let index = self.area.control.index as usize;
        self.load_stack(stack_top(index));
        self.code.load(0, area_address(index));
        self.code.load(TARGET, entry_address());
        self.code.push(BRANCH | TARGET << 5);
    }

    /// An instruction of `class`.
    pub fn item(&mut self, class: Class) {
        match class {
            Class::SystemCall => self.system_call(),
            Class::OtherCall => self.other_call(),
            Class::ExceptionReturn => self.exception_return(),
            Class::SystemRegister => self.system_register(),
            Class::AnyRegister => self.any_register(),
            Class::ProcessState => self.process_state(),
            Class::Maintenance => self.maintenance(),
            Class::Counter => self.counter(),
            Class::ThreadPointer => self.thread_pointer(),
            Class::Waiting => self.waiting(),
            Class::FpuControl => self.fpu_control(),
            Class::FpuOperation => self.fpu_operation(),
            Class::Memory => self.memory(),
            Class::Exclusive => self.exclusive(),
            Class::Jump => self.jump(),
            Class::StackPointer => self.stack_pointer(),
            Class::SelfModifying => self.self_modifying(),
            Class::PointerAuthentication => self.pointer_authentication(),
            Class::Unallocated => self.unallocated(),
            Class::Noise => self.noise(),
            Class::Edge => self.edge(),
        }
    }

    /// The middle of the thread's stack, or near.
    fn stack(&mut self) -> u64 {
        let top = stack_top(self.area.control.index as usize);
        top - 0x4000 - 8 * self.dice.below(32)
    }

    fn load_stack(&mut self, stack: u64) {
        self.code.load(STACK, stack);
        self.code.push(MOVE_TO_SP | STACK << 5);
    }

    /// An address of data.
    fn address(&mut self) -> u64 {
        places::data(self.area, &mut self.dice)
    }

    /// An address to go to.
    fn target(&mut self) -> u64 {
        places::code(self.area, &mut self.dice, summit::address())
    }

    /// Memory for `bytes` bytes, aligned to 16: its address, and the index of its first word.
    fn scratch(&mut self, bytes: usize) -> (u64, usize) {
        places::scratch(self.area, &mut self.dice, bytes)
    }

    /// Writes to such memory.
    fn write_scratch(&mut self, word: usize, value: u64) {
        if let Some(word) = self.area.scratch.words.get(word) {
            word.store(value, Relaxed);
        }
    }

    /// An instruction of anything.
    fn any(&mut self) -> u32 {
        without_the_host(self.dice.word() as u32)
    }
}
