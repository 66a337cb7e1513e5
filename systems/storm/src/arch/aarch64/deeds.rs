//! Instructions that fault, trap, or change what the kernel has to save.

use super::code::{without_the_host, Code};
use super::gate::execute;
use crate::actor::Dice;
use crate::area::{CodePages, EDGE_ADDRESS};

/// Bytes of the longest of these pieces of code.
const MOST_BYTES: usize = 120;
/// A register that functions need not preserve.
const SCRATCH: u32 = 9;

/// Executes something that is no ordinary system call.
pub fn perform(dice: &mut Dice, pages: &CodePages) {
    let mut code = Code::<MOST_BYTES>::new();
    match dice.below(15) {
        // udf
        0 => code.push(dice.below(1 << 16) as u32),
        // brk, svc, hvc, smc, hlt with any number
        1 => {
            let exception = dice.choose([
                0xd420_0000,
                0xd400_0001,
                0xd400_0002,
                0xd400_0003,
                0xd440_0000,
            ]);
            code.push(without_the_host(
                exception | (dice.below(1 << 16) as u32) << 5,
            ));
        }
        // msr daifset, wfi, wfe, eret, msr sctlr_el1, tlbi, mrs currentel, sys and hint with anything
        2 => {
            let privileged = [
                0xd503_4fdf,
                0xd503_207f,
                0xd503_205f,
                0xd69f_03e0,
                0xd518_1009,
                0xd508_831f,
                0xd538_4249,
                0xd53b_e029,
            ];
            code.push(dice.choose(privileged));
        }
        // A load or a store, of a byte or of a pair.
        3 | 4 => {
            code.load(SCRATCH, dice.wild());
            code.push(dice.choose([0x3940_012a, 0x3900_012a, 0xa940_2d2a, 0xa900_2d2a]));
        }
        // br x9
        5 => {
            code.load(SCRATCH, dice.wild());
            code.push(0xd61f_0120);
        }
        // Division by nothing, which is none: udiv x9, x9, xzr
        6 => code.push(0x9adf_0929),
        // msr nzcv, x9
        7 => {
            code.load(SCRATCH, dice.word());
            code.push(0xd51b_4209);
        }
        // msr fpcr, x9; then fdiv s0, s1, s2; it stays for what follows.
        8 => {
            code.load(SCRATCH, dice.below(1 << 32));
            code.extend(&[0xd51b_4409, 0x1e22_1820]);
        }
        // msr fpsr, x9
        9 => {
            code.load(SCRATCH, dice.below(1 << 32));
            code.push(0xd51b_4429);
        }
        // fmov to some registers: what the canary must not see.
        10 => {
            code.load(SCRATCH, dice.word());
            for register in 16..24 {
                code.push(0x9eaf_0120 | register);
                code.push(0x9e67_0120 | (register - 16));
            }
        }
        // msr cntp_tval_el0, x9; msr cntp_ctl_el0, x10: the physical timer, now or soon, whose interrupt the storm may have.
        11 => {
            code.load(SCRATCH, dice.below(1 << 14));
            code.load(SCRATCH + 1, 1);
            code.extend(&[0xd51b_e209, 0xd51b_e22a]);
        }
        // A system call at the very end of user memory.
        12 => {
            code.load(SCRATCH, EDGE_ADDRESS + 0xffc);
            code.push(0xd61f_0120);
        }
        // A lost stack, then a push.
        13 => {
            code.load(SCRATCH, dice.wild());
            code.extend(&[0x9100_013f, 0xf81f_0fe0]);
        }
        _ => {
            for _ in 0..2 {
                code.push(without_the_host(dice.word() as u32));
            }
        }
    }
    execute(pages, code.as_bytes());
}
