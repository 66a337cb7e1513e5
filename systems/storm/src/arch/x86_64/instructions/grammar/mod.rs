//! The grammar: random instructions of each class, with what prepares them.

mod programs;
mod segments;
mod system;

use core::sync::atomic::Ordering::Relaxed;

use super::class::Class;
use super::{entry_address, summit};
use crate::actor::Dice;
use crate::arch::code::{word_without_iret, Code};
use crate::area::{area_address, stack_top, Area};
use crate::instructions::places;

/// Bytes of the longest batch: [`crate::instructions::batch::MOST_ITEMS`] of the longest items, registers before and
/// the way back behind.
const MOST_CODE: usize = 1600;

const RAX: u8 = 0;
const RCX: u8 = 1;
const RDX: u8 = 2;
const RSP: u8 = 4;
const RSI: u8 = 6;
const RDI: u8 = 7;
const R11: u8 = 11;
const REGISTERS: u8 = 16;

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
        for register in (0..REGISTERS).filter(|&register| register != RSP) {
            let value = self.address();
            self.code.load(register, value);
        }
        // System calls have negative numbers. Those of the debug kernel are not to be met by chance.
        let number = self.dice.word() >> 1;
        self.code.load(RDX, number);
        let stack = match self.dice.below(8) {
            0 => self.address(),
            _ => self.stack(),
        };
        self.code.load(RSP, stack);
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

    /// Counts the begin of an item in the byte at `counter`, whatever the registers are.
    pub fn count(&mut self, counter: u64) {
        // inc byte [counter]
        self.code.verbatim(&[0xfe, 0x04, 0x25]);
        self.code.verbatim(&(counter as u32).to_le_bytes());
    }

    /// Starts the thread anew.
    pub fn leave(&mut self) {
        const JUMP_TO_RAX: [u8; 2] = [0xff, 0xe0];
        let index = self.area.control.index as usize;
        self.code.load_verbatim(RSP, stack_top(index));
        self.code.load_verbatim(RDI, area_address(index));
        self.code.load_verbatim(RAX, entry_address());
        self.code.bytes(&JUMP_TO_RAX);
    }

    /// An instruction of `class`.
    pub fn item(&mut self, class: Class) {
        match class {
            Class::FarTransfer => self.far_transfer(),
            Class::InterruptReturn => self.interrupt_return(),
            Class::SegmentRegister => self.segment_register(),
            Class::SoftwareInterrupt => self.software_interrupt(),
            Class::SystemCall => self.system_call(),
            Class::Port => self.port(),
            Class::Prefix => self.prefix(),
            Class::SelfModifying => self.self_modifying(),
            Class::StackAndFlags => self.stack_and_flags(),
            Class::ControlRegister => self.control_register(),
            Class::DescriptorTable => self.descriptor_table(),
            Class::FpuImage => self.fpu_image(),
            Class::FpuOperation => self.fpu_operation(),
            Class::SegmentBase => self.segment_base(),
            Class::StackShadow => self.stack_shadow(),
            Class::Waiting => self.waiting(),
            Class::Memory => self.memory(),
            Class::Jump => self.jump(),
            Class::Descriptor => self.descriptor(),
            Class::Noise => self.noise(),
            Class::Edge => self.edge(),
        }
    }

    /// The middle of the thread's stack, or near.
    fn stack(&mut self) -> u64 {
        let top = stack_top(self.area.control.index as usize);
        top - 0x4000 - 8 * self.dice.below(32)
    }

    /// An address of data.
    fn address(&mut self) -> u64 {
        places::data(self.area, &mut self.dice)
    }

    /// An address to go to. It belongs into R11, which hardly anything else takes for an address of data; what is written
    /// there is by [`Code`] and [`word_without_iret`].
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
            word.store(word_without_iret(value), Relaxed);
        }
    }

    /// An operand in memory at `address`, with `field` as register or number of the operation.
    fn operand(&mut self, field: u8, address: u64) {
        const NO_BASE: [u8; 2] = [0x04, 0x25];
        let [modes, base] = NO_BASE;
        self.code.bytes(&[modes | field << 3, base]);
        self.code.word32(address as u32);
    }

    /// push `value`, of which 32 bits are kept and extended by their sign.
    fn push(&mut self, value: u64) {
        self.code.bytes(&[0x68]);
        self.code.word32(value as u32);
    }

    /// Loads random flags.
    fn odd_flags(&mut self) {
        const KEPT_OFTEN: u64 = !0x100;
        let mut flags = self.dice.word() & 0x3f_7fff;
        if !self.dice.one_in(6) {
            flags &= KEPT_OFTEN;
        }
        self.push(flags);
        self.code.bytes(&[0x9d]);
    }
}
