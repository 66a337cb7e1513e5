//! What any program may execute, in ways that programs do not.

use super::{Composer, R11, RAX, RCX, RDI, RSI, RSP};

/// Ordinary instructions with memory at [rax], or without.
const ORDINARY: [&[u8]; 15] = [
    &[0x01, 0x08],
    &[0x48, 0x01, 0x08],
    &[0x0f, 0xc1, 0x08],
    &[0x0f, 0xb1, 0x08],
    &[0x48, 0x0f, 0xc7, 0x08],
    &[0x0f, 0xc7, 0x08],
    &[0x87, 0x08],
    &[0x0f, 0xab, 0x08],
    &[0xf7, 0x10],
    &[0x8b, 0x08],
    &[0x90],
    &[0xa4],
    &[0xab],
    &[0xa6],
    &[0xff, 0x00],
];

impl Composer<'_> {
    /// One to fifteen prefixes, sometimes more than an instruction may have, and an instruction.
    pub fn prefix(&mut self) {
        const PREFIXES: [u8; 12] = [
            0xf0, 0xf0, 0xf2, 0xf3, 0x66, 0x67, 0x2e, 0x36, 0x26, 0x64, 0x65, 0x48,
        ];
        let address = self.address();
        self.code.load(RAX, address);
        let count = self.dice.below(3);
        // rep with RCX: few rounds.
        let rounds = self.dice.below(64);
        self.code.load(RCX, rounds);
        for _ in 0..1 + self.dice.below(1 + (7 * count)) {
            let prefix = self.dice.choose(PREFIXES);
            self.code.bytes(&[prefix]);
        }
        let instruction = self.dice.choose(ORDINARY);
        self.code.bytes(instruction);
    }

    /// mov byte [next instruction + n], anything; then that instruction.
    pub fn self_modifying(&mut self) {
        let instruction = self.dice.choose(ORDINARY);
        let at = self.dice.index(instruction.len() + 2) as u8;
        let byte = self.dice.word() as u8;
        let address = self.address();
        self.code.load(RAX, address);
        self.code.bytes(&[0xc6, 0x05, at, 0, 0, 0, byte]);
        self.code.bytes(instruction);
        // For what the instruction has become: so that it does not take much of the next item.
        self.code.bytes(&[0x90, 0x90]);
    }

    pub fn stack_and_flags(&mut self) {
        match self.dice.below(8) {
            // mov rsp, anywhere; push rax, and others that need it
            0 | 1 => {
                const USERS: [&[u8]; 6] = [
                    &[0x50],
                    &[0x9c],
                    &[0x9d],
                    &[0xe8, 0, 0, 0, 0],
                    &[0xc8, 0x40, 0x00, 0x1f],
                    &[0xc9],
                ];
                let stack = self.address();
                self.code.load(RSP, stack);
                let user = self.dice.choose(USERS);
                self.code.bytes(user);
            }
            2..5 => self.odd_flags(),
            // pushfq; pop rax, cld, std, clc, cmc, lahf, sahf
            5 => {
                const FLAGS: [&[u8]; 7] = [
                    &[0x9c, 0x58],
                    &[0xfc],
                    &[0xfd],
                    &[0xf8],
                    &[0xf5],
                    &[0x9f],
                    &[0x9e],
                ];
                let flags = self.dice.choose(FLAGS);
                self.code.bytes(flags);
            }
            // Back to a stack.
            6 => {
                let stack = self.stack();
                self.code.load(RSP, stack);
            }
            // div ecx, idiv rcx by nothing; aam and its kin are none in 64-bit code
            _ => {
                const DIVISIONS: [&[u8]; 4] = [
                    &[0x31, 0xc9, 0xf7, 0xf1],
                    &[0x31, 0xc9, 0x48, 0xf7, 0xf9],
                    &[0xd4, 0x00],
                    &[0x62],
                ];
                let division = self.dice.choose(DIVISIONS);
                self.code.bytes(division);
            }
        }
    }

    /// Loads and stores at any address, also repeated, locked, of 16 bytes.
    pub fn memory(&mut self) {
        const ACCESSES: [&[u8]; 12] = [
            &[0x8a, 0x00],
            &[0x88, 0x00],
            &[0x48, 0x8b, 0x00],
            &[0x48, 0x89, 0x00],
            &[0x0f, 0x28, 0x00],
            &[0x0f, 0x29, 0x00],
            &[0xf0, 0x48, 0x0f, 0xc7, 0x08],
            &[0xf0, 0x48, 0xff, 0x00],
            &[0x8f, 0x00],
            &[0xff, 0x30],
            &[0xf3, 0xa4],
            &[0xf3, 0x48, 0xab],
        ];
        let address = match self.dice.below(2) {
            0 => self.dice.wild(),
            _ => self.address(),
        };
        self.code.load(RAX, address);
        let access = self.dice.choose(ACCESSES);
        if let [0xf3, ..] = access {
            let (to, from) = (self.address(), self.address());
            let rounds = self.dice.below(256);
            self.code.load(RDI, to);
            self.code.load(RSI, from);
            self.code.load(RCX, rounds);
        }
        self.code.bytes(access);
    }

    /// Near jumps, calls and returns: anywhere, and a little further.
    pub fn jump(&mut self) {
        let target = self.target();
        match self.dice.below(5) {
            // jmp r11, call r11
            0 | 1 => {
                self.code.load(R11, target);
                let operation = self.dice.choose([0xe3, 0xd3]);
                self.code.bytes(&[0x41, 0xff, operation]);
            }
            // push r11; ret
            2 => {
                self.code.load(R11, target);
                self.code.bytes(&[0x41, 0x53, 0xc3]);
            }
            // jcc, jmp short
            3 => {
                let condition = self.dice.below(16) as u8;
                let distance = self.dice.below(12) as u8;
                self.code.bytes(&[0x70 | condition, distance]);
            }
            _ => {
                let distance = self.dice.below(12) as u8;
                self.code.bytes(&[0xeb, distance]);
            }
        }
    }

    /// fxrstor, fldenv, frstor, ldmxcsr, fldcw, xrstor of noise or of an odd image.
    pub fn fpu_image(&mut self) {
        const IMAGE_BYTES: usize = 512;
        const IMAGE_WORDS: usize = IMAGE_BYTES / 8;
        const MXCSR_WORD: usize = 3;
        const LOADS: [&[u8]; 12] = [
            &[0x0f, 0xae, 0x08],
            &[0x48, 0x0f, 0xae, 0x08],
            &[0x0f, 0xae, 0x00],
            &[0x48, 0x0f, 0xae, 0x00],
            &[0xd9, 0x20],
            &[0xdd, 0x20],
            &[0xd9, 0x28],
            &[0x0f, 0xae, 0x10],
            &[0x0f, 0xae, 0x28],
            &[0x0f, 0xae, 0x20],
            &[0xdd, 0x30],
            &[0x0f, 0xc7, 0x18],
        ];
        let (address, word) = self.scratch(IMAGE_BYTES);
        if self.dice.one_in(4) {
            for i in 0..IMAGE_WORDS {
                let value = self.dice.word();
                self.write_scratch(word + i, value);
            }
        }
        // Mostly without the reserved bits of MXCSR, with which nothing is loaded.
        if !self.dice.one_in(4) {
            let control = self.dice.word() & 0xffff_0000_ffff;
            self.write_scratch(word + MXCSR_WORD, control);
        }
        let address = match self.dice.below(8) {
            0 => self.address(),
            1 => address + 8,
            _ => address,
        };
        self.code.load(RAX, address);
        let load = self.dice.choose(LOADS);
        self.code.bytes(load);
        if self.dice.one_in(4) {
            // fwait: exceptions that the image says are pending.
            self.code.bytes(&[0x9b]);
        }
    }

    /// Any of x87, and some of MMX, SSE and AVX.
    pub fn fpu_operation(&mut self) {
        let address = self.scratch(16).0;
        self.code.load(RAX, address);
        let operand = match self.dice.below(2) {
            0 => 0xc0 | self.dice.below(64) as u8,
            _ => (self.dice.below(8) as u8) << 3,
        };
        match self.dice.below(4) {
            0 | 1 => {
                let opcode = 0xd8 | self.dice.below(8) as u8;
                self.code.bytes(&[opcode, operand]);
            }
            2 => {
                let prefix: &[u8] = self.dice.choose([&[], &[0x66], &[0xf3], &[0xf2]]);
                let opcode = 0x50 | self.dice.below(48) as u8;
                self.code.bytes(prefix);
                self.code.bytes(&[0x0f, opcode, operand]);
            }
            _ => {
                let others: [&[u8]; 5] = [
                    &[0xc5, 0xf8, 0x77],
                    &[0xc5, 0xfc, 0x28, 0x00],
                    &[0x0f, 0x77],
                    &[0x9b, 0xdb, 0xe3],
                    &[0x66, 0x0f, 0x38, 0x00, 0xc1],
                ];
                let other = self.dice.choose(others);
                self.code.bytes(other);
            }
        }
    }

    /// Any opcode of one or two bytes with any operands, or any bytes, but for those of returns and
    /// of jumps through registers: they would lead to data, where a 32-bit IRET may stand.
    pub fn noise(&mut self) {
        const NOP: u8 = 0x90;
        let without_ways_to_data = |byte| match byte {
            0xc2 | 0xc3 | 0xca | 0xcb | 0xff => NOP,
            byte => byte,
        };
        let [word, other] = [(); 2].map(|()| {
            let bytes = self.dice.word().to_le_bytes();
            bytes.map(without_ways_to_data)
        });
        match self.dice.below(3) {
            0 => self.code.bytes(&word[..3]),
            1 => {
                self.code.bytes(&[0x0f]);
                self.code.bytes(&word[..3]);
            }
            _ => {
                self.code.bytes(&word);
                self.code.bytes(&other);
            }
        }
        // What the last bytes begin ends here.
        self.code.bytes(&[0x90; 4]);
    }

    /// What may be the last instruction of user memory.
    pub fn edge(&mut self) {
        const LAST: [&[u8]; 10] = [
            &[0x0f, 0x05],
            &[0xcd, 0x80],
            &[0xcc],
            &[0x90],
            &[0x0f, 0x0b],
            &[0xeb, 0x00],
            &[0xe8, 0, 0, 0, 0],
            &[0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0xf4],
            &[0xff, 0x1c, 0x25, 0, 0, 0, 0],
        ];
        let last = self.dice.choose(LAST);
        self.code.bytes(last);
    }
}
