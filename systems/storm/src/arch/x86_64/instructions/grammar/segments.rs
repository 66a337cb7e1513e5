//! Segments: transfers and loads through descriptors, and the tables themselves.

use super::{Composer, R11, RAX, RCX};
use crate::arch::instructions::low::{self, selector};
use crate::area::LOW_ADDRESS;
use sandglass::abi::vspace::x86_64::HIGHEST_PAGE;

/// A prefix for the size of the operand: none, 16 bits, 64 bits.
const SIZES: [&[u8]; 3] = [&[], &[0x66], &[0x48]];

core::arch::global_asm!(
    // Nothing leads to the opcode without its prefix.
    "storm_interrupt_return_64: .byte 0x48, 0xcf",
    "storm_interrupt_return_16: .byte 0x66, 0xcf",
);

extern "C" {
    /// Code, not data: only their addresses are used.
    static storm_interrupt_return_64: u8;
    static storm_interrupt_return_16: u8;
}

fn interrupt_return_64() -> u64 {
    &raw const storm_interrupt_return_64 as u64
}

fn interrupt_return_16() -> u64 {
    &raw const storm_interrupt_return_16 as u64
}

impl Composer<'_> {
    pub fn far_transfer(&mut self) {
        match self.dice.below(8) {
            // call far, jmp far
            0..6 => {
                let size = self.dice.choose(SIZES);
                let (selector, target) = (selector(&mut self.dice), self.target());
                let (address, word) = self.scratch(16);
                let (offset_bits, selector) = match size {
                    [0x66] => (16, u64::from(selector)),
                    [0x48] => (64, u64::from(selector)),
                    _ => (32, u64::from(selector)),
                };
                let pointer = match offset_bits {
                    64 => [target, selector],
                    bits => [target & ((1 << bits) - 1) | selector << bits, 0],
                };
                self.write_scratch(word, pointer[0]);
                self.write_scratch(word + 1, pointer[1]);
                let operation = if self.dice.below(3) == 0 { 5 } else { 3 };
                self.code.bytes(size);
                self.code.bytes(&[0xff]);
                self.operand(operation, address);
            }
            // push selector; push target; retf, and the same with a number of bytes
            6 => {
                let size = self.dice.choose([SIZES[0], SIZES[2], SIZES[2]]);
                self.return_frame(size.len());
                self.code.bytes(size);
                self.code.bytes(&[0xcb]);
            }
            _ => {
                self.return_frame(1);
                let bytes = self.dice.below(64) as u16;
                self.code.bytes(&[0x48, 0xca]);
                self.code.word16(bytes);
            }
        }
    }

    /// push selector; push the address of what follows a far return of 1 + `prefixes` bytes, or any.
    fn return_frame(&mut self, prefixes: usize) {
        const PUSHES: u8 = 5 + 2;
        let selector = selector(&mut self.dice);
        match self.dice.below(2) {
            0 => {
                let target = self.target();
                self.code.load(R11, target);
            }
            // lea r11, [rip + what is between]
            _ => self
                .code
                .bytes(&[0x4c, 0x8d, 0x1d, PUSHES + 1 + prefixes as u8, 0, 0, 0]),
        }
        self.push(selector.into());
        // push r11
        self.code.bytes(&[0x41, 0x53]);
    }

    /// IRET of 64 or 16 bits, which is not in the batch itself: see [`crate::arch::code`].
    pub fn interrupt_return(&mut self) {
        const JUMP_TO_R11: [u8; 3] = [0x41, 0xff, 0xe3];
        /// Four pushes of a frame, one of a register and one of RSP or another; a load of 32 bits.
        const BETWEEN: u8 = 3 * 5 + 3 + 6 + JUMP_TO_R11.len() as u8;
        if self.dice.one_in(4) {
            let target = self.target();
            self.code.load(R11, target);
        } else {
            // lea r11, [rip + what is between]: behind this item.
            self.code.bytes(&[0x4c, 0x8d, 0x1d, BETWEEN, 0, 0, 0]);
        }
        let (stack_selector, code_selector) = match self.dice.below(3) {
            0 => (selector(&mut self.dice), selector(&mut self.dice)),
            _ => (0x33, 0x2b),
        };
        self.push(stack_selector.into());
        // push rsp, or rcx
        let stack = if self.dice.one_in(8) { 0x51 } else { 0x54 };
        self.code.bytes(&[stack]);
        let mut flags = self.dice.word() & 0x3f_7fff;
        if !self.dice.one_in(6) {
            flags &= !0x100;
        }
        self.push(flags);
        self.push(code_selector.into());
        // push r11
        self.code.bytes(&[0x41, 0x53]);
        // That of 16 bits finds other words in the frame.
        let instruction = match self.dice.below(5) {
            0 => interrupt_return_16(),
            _ => interrupt_return_64(),
        };
        self.code.load_verbatim(R11, instruction);
        self.code.bytes(&JUMP_TO_R11);
    }

    pub fn segment_register(&mut self) {
        let selector = selector(&mut self.dice);
        let register = self.dice.below(8) as u8;
        match self.dice.below(8) {
            // mov eax, selector; mov segment, eax
            0..4 => {
                self.code.load(RAX, selector.into());
                self.code.bytes(&[0x8e, 0xc0 | register << 3]);
            }
            // push selector; pop fs, pop gs
            4 => {
                self.push(selector.into());
                let pop = self.dice.choose([0xa1, 0xa9]);
                self.code.bytes(&[0x0f, pop]);
            }
            // lss, lfs, lgs rcx, [pointer]
            5 => {
                let (address, word) = self.scratch(16);
                let offset = self.dice.word();
                let size = self.dice.choose(SIZES);
                let pointer = match size {
                    [0x66] => [offset & 0xffff | u64::from(selector) << 16, 0],
                    [0x48] => [offset, selector.into()],
                    _ => [offset & 0xffff_ffff | u64::from(selector) << 32, 0],
                };
                self.write_scratch(word, pointer[0]);
                self.write_scratch(word + 1, pointer[1]);
                let opcode = self.dice.choose([0xb2, 0xb4, 0xb5]);
                self.code.bytes(size);
                self.code.bytes(&[0x0f, opcode]);
                self.operand(RCX, address);
            }
            // Through a segment: mov rax, fs:[rcx] and its kin.
            6 => {
                let prefix = self.dice.choose([0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65]);
                self.code.bytes(&[prefix, 0x48, 0x8b, 0x01]);
            }
            // mov ecx, segment
            _ => self.code.bytes(&[0x8c, 0xc1 | register << 3]),
        }
    }

    pub fn descriptor_table(&mut self) {
        let selector = selector(&mut self.dice);
        let address = self.address();
        match self.dice.below(8) {
            // lar, lsl ecx, eax
            0 | 1 => {
                self.code.load(RAX, selector.into());
                let opcode = self.dice.choose([0x02, 0x03]);
                self.code.bytes(&[0x0f, opcode, 0xc8]);
            }
            // sldt, str, lldt, ltr, verr, verw eax, and two that are none
            2..5 => {
                let operation = self.dice.below(8) as u8;
                self.code.load(RAX, selector.into());
                self.code.bytes(&[0x0f, 0x00, 0xc0 | operation << 3]);
            }
            // sgdt, sidt, lgdt, lidt, smsw, lmsw, invlpg [rax]
            5 | 6 => {
                let operation = self.dice.below(8) as u8;
                self.code.load(RAX, address);
                self.code.bytes(&[0x0f, 0x01, operation << 3]);
            }
            // smsw, lmsw rcx
            _ => {
                let operation = self.dice.choose([4, 6]);
                self.code.bytes(&[0x48, 0x0f, 0x01, 0xc1 | operation << 3]);
            }
        }
    }

    /// mov [table], descriptor: at address 0, or in the page at the edge.
    pub fn descriptor(&mut self) {
        let first = match self.dice.below(4) {
            0 => HIGHEST_PAGE + 16 * self.dice.below(64),
            _ => LOW_ADDRESS + 16 * self.dice.below(low::TABLE_WORDS as u64 / 2),
        };
        self.code.load(R11, first);
        for (offset, word) in [0, 8].into_iter().zip(low::pair_of_words(&mut self.dice)) {
            self.code.load(RAX, word);
            // mov [r11 + offset], rax
            self.code.bytes(&[0x49, 0x89, 0x43, offset]);
        }
    }

    /// A load of SS, and what traps in its shadow.
    pub fn stack_shadow(&mut self) {
        const FOLLOWERS: [&[u8]; 10] = [
            &[0x0f, 0x05],
            &[0xcc],
            &[0xcd, 0x03],
            &[0xcd, 0x80],
            &[0xf4],
            &[0x0f, 0x0b],
            &[0x0f, 0x34],
            &[0x90],
            &[0x8e, 0xd0],
            &[0xfa],
        ];
        const STACK: u64 = 0x33;
        if self.dice.one_in(3) {
            // Single step, which the load holds off.
            self.push(0x302);
            self.code.bytes(&[0x9d]);
        }
        let selector = match self.dice.below(4) {
            0 => selector(&mut self.dice).into(),
            1 => 3,
            _ => STACK,
        };
        self.code.load(RAX, selector);
        self.code.bytes(&[0x8e, 0xd0]);
        let follower = self.dice.choose(FOLLOWERS);
        self.code.bytes(follower);
    }
}
