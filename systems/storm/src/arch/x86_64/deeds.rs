//! Instructions that fault, trap, or change what the kernel has to save.

use super::code::Code;
use super::gate::execute;
use crate::actor::Dice;
use crate::area::{CodePages, EDGE_ADDRESS};

/// Bytes of the longest of these pieces of code.
const MOST_BYTES: usize = 60;
const RAX: u8 = 0;

/// Executes something that is no ordinary system call.
pub fn perform(dice: &mut Dice, pages: &CodePages) {
    let mut code = Code::<MOST_BYTES>::new();
    match dice.below(18) {
        0 => code.bytes(&[0x0f, 0x0b]),
        1 => code.bytes(&[0xcc]),
        // int n
        2 => code.bytes(&[0xcd, dice.word() as u8]),
        // int3 and into's neighbours: hlt, cli, sti, in, out, clts, invd, wbinvd.
        3 => {
            let privileged: [&[u8]; 9] = [
                &[0xf4],
                &[0xfa],
                &[0xfb],
                &[0xec],
                &[0xee],
                &[0x0f, 0x06],
                &[0x0f, 0x08],
                &[0x0f, 0x30],
                &[0x0f, 0x20, 0xd8],
            ];
            code.bytes(dice.choose(privileged));
        }
        // mov rax, wild; mov [rax], al, or mov al, [rax]
        4 | 5 => {
            code.load(RAX, dice.wild());
            code.bytes(if dice.one_in(2) {
                &[0x88, 0x00]
            } else {
                &[0x8a, 0x00]
            });
        }
        // jmp rax
        6 => {
            code.load(RAX, dice.wild());
            code.bytes(&[0xff, 0xe0]);
        }
        // xor edx, edx; xor ecx, ecx; div ecx
        7 => code.bytes(&[0x31, 0xd2, 0x31, 0xc9, 0xf7, 0xf1]),
        // popfq of noise; it stays for what follows.
        8 => {
            code.bytes(&[0x68]);
            code.bytes(&((dice.word() as u32) & 0x7f_ffff).to_le_bytes());
            code.bytes(&[0x9d]);
        }
        // fninit; fld1; fldz; fdivp; fwait, with all exceptions unmasked by fldcw.
        9 => code.bytes(&[
            0xdb, 0xe3, 0x6a, 0x00, 0xd9, 0x2c, 0x24, 0x58, 0xd9, 0xe8, 0xd9, 0xee, 0xde, 0xf9,
            0x9b,
        ]),
        // push; ldmxcsr [rsp]; pop, then a division by zero: xorps, divps.
        10 => {
            code.bytes(&[0x68]);
            code.bytes(&((dice.word() as u32) & 0x1_ffff).to_le_bytes());
            code.bytes(&[0x0f, 0xae, 0x14, 0x24, 0x58]);
            code.bytes(&[0x0f, 0x57, 0xc0, 0x0f, 0x5e, 0xc0]);
        }
        // movq to some XMM registers: what the canary must not see.
        11 | 12 => {
            code.load(RAX, dice.word());
            for register in 0..4 {
                code.bytes(&[0x66, 0x48, 0x0f, 0x6e, 0xc0 | register << 3]);
                code.bytes(&[0x66, 0x4c, 0x0f, 0x6e, 0xc0 | register << 3]);
            }
        }
        // Segment registers: mov ds, es, fs, gs or ss from ax.
        13 => {
            code.load(RAX, dice.below(0x60));
            let segment = dice.choose([0xc0u8, 0xd8, 0xe0, 0xe8, 0xd0]);
            code.bytes(&[0x8e, segment]);
        }
        // A system call at the very end of user memory.
        14 => {
            code.load(RAX, EDGE_ADDRESS + 0xffe);
            code.bytes(&[0xff, 0xe0]);
        }
        // A lost stack, then a push.
        15 => {
            code.load(RAX, dice.wild());
            code.bytes(&[0x48, 0x89, 0xc4, 0x50]);
        }
        // sysenter, sysret, rdmsr, swapgs.
        16 => {
            let others: [&[u8]; 4] = [
                &[0x0f, 0x34],
                &[0x0f, 0x07],
                &[0x0f, 0x32],
                &[0x0f, 0x01, 0xf8],
            ];
            code.bytes(dice.choose(others));
        }
        _ => {
            for _ in 0..2 {
                code.bytes(&dice.word().to_le_bytes());
            }
        }
    }
    execute(pages, code.as_bytes());
}
