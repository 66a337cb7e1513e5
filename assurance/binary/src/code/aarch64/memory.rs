//! What instructions of aarch64 do to memory.

use yaxpeax_arm::armv8::a64::{Instruction as Decoded, Opcode, Operand, SIMDSizeCode, SizeCode};

use super::registers::{is_pair, place, stored};
use crate::code::{Access, WORD};

/// Read-modify-write operations, by the beginnings of their names.
const ATOMIC: &[&str] = &[
    "cas", "swp", "ldadd", "ldclr", "ldeor", "ldset", "ldsmax", "ldsmin", "ldumax", "ldumin",
];

/// Where an instruction reads or writes. Maintenance of caches is not counted: models have none.
pub(super) fn accesses(decoded: &Decoded, word: u32, address: u64) -> [Option<Access>; 2] {
    let name = decoded.opcode.to_string();
    let Some((reads, writes)) = directions(&name) else {
        return [None; 2];
    };
    let bytes = bytes(decoded, &name);
    let is_words = bytes == if is_pair(word) { 16 } else { 8 };
    let access = Access {
        place: place(word, address),
        bytes,
        at_once: match is_pair(word) {
            true => (bytes / 2).min(WORD),
            false => WORD,
        },
        sure: bytes,
        reads,
        writes,
        stored: match is_words && !reads {
            true => stored(word),
            false => [None; 2],
        },
    };
    [Some(access), None]
}

/// Whether an instruction with that name reads and writes memory.
fn directions(name: &str) -> Option<(bool, bool)> {
    if ATOMIC.iter().any(|atomic| name.starts_with(atomic)) {
        Some((true, true))
    } else if name.starts_with("ld") {
        Some((true, false))
    } else if name.starts_with("st") {
        Some((false, true))
    } else {
        None
    }
}

/// How much is read or written: what the name says of bytes, half words and words, else what the registers have room for.
fn bytes(decoded: &Decoded, name: &str) -> u16 {
    let is_exclusive_store = name.starts_with("stx") || name.starts_with("stlx");
    // The first operand of those says whether they stored.
    let mut values = decoded.operands.iter().skip(is_exclusive_store.into());
    let register = match values.next() {
        Some(Operand::Register(SizeCode::W, _)) => 4,
        Some(Operand::SIMDRegister(size, _)) => match size {
            SIMDSizeCode::B => 1,
            SIMDSizeCode::H => 2,
            SIMDSizeCode::S => 4,
            SIMDSizeCode::D => 8,
            SIMDSizeCode::Q => 16,
        },
        Some(Operand::SIMDRegisterGroup(_, _, _, registers)) => 16 * u16::from(*registers),
        _ => 8,
    };
    let width = match name {
        name if name.ends_with("sw") => 4,
        name if name.ends_with('b') => 1,
        name if name.ends_with('h') => 2,
        _ => register,
    };
    let is_pair = matches!(
        decoded.opcode,
        Opcode::LDP
            | Opcode::LDPSW
            | Opcode::LDNP
            | Opcode::LDXP
            | Opcode::LDAXP
            | Opcode::STP
            | Opcode::STNP
            | Opcode::STXP
            | Opcode::STLXP
            | Opcode::CASP(_)
    );
    let width = if decoded.opcode == Opcode::LDPSW {
        4
    } else {
        width
    };
    width * if is_pair { 2 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::super::{decoded, STACK_POINTER};
    use super::*;
    use crate::code::Sum;

    const AT: u64 = 0xffff_ff80_4010_0000;

    fn of(word: u32) -> Decoded {
        decoded(&word.to_le_bytes()).expect("an instruction")
    }

    #[test]
    fn accesses_are_those_of_the_processor() {
        let stack = |by| Some(Sum::from(STACK_POINTER, by));
        let at = |register| Some(Sum::register(register));
        for (word, place, bytes, reads, writes) in [
            // ldr x0, .+8; ldr x0, [sp, #24]; ldrb w0, [x1]; ldrsw x0, [x1]; ldr w0, [x1]
            (0x5800_0040, Some(Sum::number(AT + 8)), 8, true, false),
            (0xf940_0fe0, stack(24), 8, true, false),
            (0x3940_0020, at(1), 1, true, false),
            (0xb980_0020, at(1), 4, true, false),
            (0xb940_0020, at(1), 4, true, false),
            // stp x29, x30, [sp, #-16]!; ldp x29, x30, [sp], #16; str q0, [x1]
            (0xa9bf_7bfd, stack(-16), 16, false, true),
            (0xa8c1_7bfd, stack(0), 16, true, false),
            (0x3d80_0020, at(1), 16, false, true),
            // ldaxr x0, [x1]; stlxr w2, x0, [x1]; ldadda x0, x1, [x2]
            (0xc85f_fc20, at(1), 8, true, false),
            (0xc802_fc20, at(1), 8, false, true),
            (0xf8a0_0041, at(2), 8, true, true),
        ] {
            let expected = Access {
                place,
                bytes,
                at_once: WORD,
                sure: bytes,
                reads,
                writes,
                stored: [None; 2],
            };
            let [Some(found), None] = accesses(&of(word), word, AT) else {
                panic!("{word:08x} accesses memory once");
            };
            let found = Access {
                stored: [None; 2],
                ..found
            };
            assert_eq!(found, expected, "{word:08x}");
        }
        // ldp x29, x30, [sp], #16; ldr w0, [x1]; stp q0, q1, [x8]; str q0, [x1]
        for (word, times) in [
            (0xa8c1_7bfd, 2),
            (0xb940_0020, 1),
            (0xad00_0500, 4),
            (0x3d80_0020, 2),
        ] {
            let [Some(access), None] = accesses(&of(word), word, AT) else {
                panic!("{word:08x} accesses memory once");
            };
            assert_eq!(access.times(), times, "{word:08x}: word by word");
        }
        // str x1, [x0]; str w1, [x0]; stp x1, x2, [x0]; stp w1, w2, [x0], which are one word
        let register = |register| Some(Sum::register(register));
        for (word, stored) in [
            (0xf900_0001, [register(1), None]),
            (0xb900_0001, [None; 2]),
            (0xa900_0801, [register(1), register(2)]),
            (0x2900_0801, [None; 2]),
        ] {
            let [Some(access), None] = accesses(&of(word), word, AT) else {
                panic!("{word:08x} accesses memory once");
            };
            assert_eq!(access.stored, stored, "{word:08x}");
        }
        // add x0, x0, #1; dsb sy; prfm pldl1keep, [x0]
        for word in [0x9100_0400, 0xd503_3f9f, 0xf980_0000] {
            assert_eq!(accesses(&of(word), word, AT), [None; 2], "{word:08x}");
        }
    }

    /// QEMU 7.2 tells a plugin of two accesses of four bytes each.
    #[test]
    fn pairs_of_halves_are_accessed_one_after_the_other() {
        // stp w9, w1, [sp, #16]; stp w8, wzr, [sp, #4]; stp w0, w1, [x8]: all three are in the kernel; ldp w0, w1, [x2];
        // ldpsw x0, x1, [x2]; stp s0, s1, [x2]
        for word in [
            0x2902_07e9,
            0x2900_ffe8,
            0x2900_0500,
            0x2940_0440,
            0x6940_0440,
            0x2d00_0440,
        ] {
            let [Some(access), None] = accesses(&of(word), word, AT) else {
                panic!("{word:08x} accesses memory once");
            };
            assert_eq!(access.times(), 2, "{word:08x}: {}", of(word));
        }
    }
}
