//! What any program may execute, in ways that programs do not.

use super::{Composer, BRANCH, DATA, MOVE_TO_SP, OTHER, STACK, TARGET};
use crate::arch::code::without_the_host;

/// Ordinary instructions, with memory at [x9] or without: of `x10`, of vectors.
const ORDINARY: [u32; 12] = [
    0xf940_012a,
    0xf900_012a,
    0x3940_012a,
    0x7900_012a,
    0xa940_2d2a,
    0xa900_2d2a,
    0x3dc0_0120,
    0x3d80_0120,
    0x8b0a_012a,
    0x9b0a_7d2a,
    0xd503_201f,
    0x9ac9_094a,
];
const RETURN: u32 = 0xd65f_03c0;

impl Composer<'_> {
    /// Loads and stores at any address, also of vectors and as an unprivileged program's.
    pub fn memory(&mut self) {
        // ldr, str, ldrb, strb, ldp, stp, ldr q, str q, ldtr, sttr, ldur, prfm, ldr x10 from near, ld1 of four, ldnp
        const ACCESSES: [u32; 16] = [
            0xf940_012a,
            0xf900_012a,
            0x3940_012a,
            0x3900_012a,
            0xa940_2d2a,
            0xa900_2d2a,
            0x3dc0_0120,
            0x3d80_0120,
            0xf840_092a,
            0xf800_092a,
            0xf840_712a,
            0xf980_0120,
            0x5800_004a,
            0x4c40_2120,
            0x4c00_2120,
            0xa840_2d2a,
        ];
        let address = match self.dice.below(2) {
            0 => self.dice.wild(),
            _ => self.address(),
        };
        self.code.load(DATA, address);
        let access = self.dice.choose(ACCESSES);
        self.code.push(access);
        // Behind the load from near, which finds this.
        self.code.push(0xd503_201f);
    }

    /// ldxr, stxr, ldxp, stxp, ldar, stlr, ldapr, cas, casp, ldadd, swp, clrex: with a beginning or without.
    pub fn exclusive(&mut self) {
        const ACCESSES: [u32; 14] = [
            0xc85f_7d2a,
            0xc808_7d2a,
            0xc85f_fd2a,
            0xc87f_2d2a,
            0xc828_2d2a,
            0xc8df_fd2a,
            0xc89f_fd2a,
            0xf8bf_c12a,
            0xc8a8_7d2a,
            0x4820_7d2a,
            0xf828_012a,
            0xf828_812a,
            0xd503_3f5f,
            0x085f_7d2a,
        ];
        let mut address = self.address();
        if self.dice.one_in(3) {
            address |= 1 + self.dice.below(15);
        }
        self.code.load(DATA, address);
        for _ in 0..1 + self.dice.below(2) {
            let access = self.dice.choose(ACCESSES);
            self.code.push(access);
        }
    }

    /// Jumps, calls and returns: anywhere, and a little further.
    pub fn jump(&mut self) {
        // br, blr, ret
        const WAYS: [u32; 3] = [BRANCH, 0xd63f_0000, 0xd65f_0000];
        let target = self.target();
        match self.dice.below(4) {
            0..2 => {
                self.code.load(TARGET, target);
                let way = self.dice.choose(WAYS);
                self.code.push(way | TARGET << 5);
            }
            // b.cond, cbz, tbz: over what follows.
            2 => {
                let distance = 1 + self.dice.below(3) as u32;
                let condition = self.dice.below(16) as u32;
                let way = self
                    .dice
                    .choose([0x5400_0000 | condition, 0xb400_000a, 0x3618_000a]);
                self.code.push(way | distance << 5);
            }
            // b and bl: far.
            _ => {
                let distance = match self.dice.below(2) {
                    0 => 1 + self.dice.below(3) as u32,
                    _ => self.dice.below(1 << 26) as u32,
                };
                let way = self.dice.choose([0x1400_0000, 0x9400_0000]);
                self.code.push(way | distance);
            }
        }
    }

    /// A stack pointer of anything, and a push, a pop or a load that needs it; or one that is good again.
    pub fn stack_pointer(&mut self) {
        const USERS: [u32; 5] = [
            0xa9bf_7bfd,
            0xa8c1_7bfd,
            0xf81f_0fe0,
            0xf940_03e0,
            0x3d80_03e0,
        ];
        if self.dice.one_in(4) {
            let stack = self.stack();
            return self.load_stack(stack);
        }
        let stack = self.address() | self.dice.below(16);
        self.code.load(STACK, stack);
        self.code.push(MOVE_TO_SP | STACK << 5);
        let user = self.dice.choose(USERS);
        self.code.push(user);
    }

    /// Writes an instruction to memory and goes there, mostly with what makes processors see it; that returns here, or goes
    /// on to what was there before.
    pub fn self_modifying(&mut self) {
        // The batch itself is not written, whose end leads back: the scratch memory is.
        let (address, word) = self.scratch(16);
        let first = match self.dice.below(2) {
            0 => self.dice.choose(ORDINARY),
            _ => self.any(),
        };
        self.write_scratch(word, 0);
        self.write_scratch(word + 1, u64::from(RETURN));
        self.code.load(DATA, address);
        self.code.load(
            OTHER,
            u64::from(RETURN) << 32 | u64::from(without_the_host(first)),
        );
        // str x10, [x9]
        self.code.push(0xf900_012a);
        if !self.dice.one_in(3) {
            // dc cvau, x9; dsb ish; ic ivau, x9; dsb ish; isb
            self.code.extend(&[
                0xd50b_7b29,
                0xd503_3b9f,
                0xd50b_7529,
                0xd503_3b9f,
                0xd503_3fdf,
            ]);
        }
        // blr x9
        self.code.push(0xd63f_0000 | DATA << 5);
    }

    /// Control and status of the FPU: any bits, and reads.
    pub fn fpu_control(&mut self) {
        let value = match self.dice.below(2) {
            0 => self.dice.word(),
            _ => self.dice.below(1 << 32),
        };
        self.code.load(DATA, value);
        // msr and mrs of fpcr and fpsr
        let access = self
            .dice
            .choose([0xd51b_4400, 0xd51b_4420, 0xd53b_4400, 0xd53b_4420]);
        self.code.push(access | DATA);
        // fdiv s0, s1, s2; fcvtzs x10, d3; fsqrt d4, d5
        let operation = self.dice.choose([0x1e22_1820, 0x9e78_006a, 0x1e61_c0a4]);
        self.code.push(operation);
    }

    /// Any of the encodings of the FPU and of vectors, and of SVE and SME.
    pub fn fpu_operation(&mut self) {
        const GROUP: u32 = 0x0e00_0000;
        let any = self.any();
        let instruction = match self.dice.below(8) {
            // SVE, SME
            0 => any & !(0xf << 25) | 0b0010 << 25,
            1 => any & 0x7fff_ffff & !(0xf << 25) | 1 << 31,
            _ => any & !(0x7 << 25) | GROUP,
        };
        self.code.push(instruction);
    }

    /// pacia and its kin, which are hints and operations; braa, blraa, retaa, ldraa; bti.
    pub fn pointer_authentication(&mut self) {
        const ALL: [u32; 10] = [
            0xdac1_0149,
            0xdac1_1149,
            0xdac1_43e9,
            0xd503_233f,
            0xd503_23bf,
            0xd71f_092a,
            0xd73f_092a,
            0xd65f_0bff,
            0xf820_0529,
            0xd503_245f,
        ];
        let target = self.target();
        self.code.load(DATA, target);
        let one = self.dice.choose(ALL);
        self.code.push(one);
    }

    /// Encodings of the groups that are none, and udf.
    pub fn unallocated(&mut self) {
        let any = self.any();
        let instruction = match self.dice.below(4) {
            0 => any & 0xffff,
            1 => any & !(0xf << 25),
            2 => any & !(0xf << 25) | 0b0001 << 25,
            _ => any & !(0xf << 25) | 0b0011 << 25,
        };
        self.code.push(instruction);
    }

    /// Any word; what it may be that jumps comes from elsewhere, too.
    pub fn noise(&mut self) {
        for _ in 0..1 + self.dice.below(3) {
            let instruction = self.any();
            self.code.push(instruction);
        }
    }

    /// What may be the last instruction of user memory.
    pub fn edge(&mut self) {
        // svc, brk, nop, udf, b to the next, bl to the next, ldr from behind, wfi, adrp
        const LAST: [u32; 9] = [
            0xd400_0001,
            0xd420_0000,
            0xd503_201f,
            0,
            0x1400_0001,
            0x9400_0001,
            0x5800_002a,
            0xd503_207f,
            0xb000_0009,
        ];
        let last = self.dice.choose(LAST);
        self.code.push(last);
    }
}
