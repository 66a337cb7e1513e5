//! Code for aarch64.

mod memory;
mod registers;

use yaxpeax_arch::{Decoder as _, U8Reader};
use yaxpeax_arm::armv8::a64::{
    InstDecoder, Instruction as Decoded, Opcode, Operand, ShiftStyle, SizeCode,
};

use super::{Change, Changes, Decoder, Flow, Instruction, Register};
use memory::accesses;
use registers::{at_most, changes};

/// Bytes of an instruction.
const BYTES: u64 = 4;

/// The number of the zero register, or of the stack pointer where that can be meant.
const LAST_REGISTER: u16 = 31;

/// The register with the third argument of a function.
const THIRD_ARGUMENT: u16 = 2;

/// Numbers of registers, in the order of debugging information (*DWARF for the Arm 64-bit Architecture*, 4.1): their own.
pub(super) const DEBUGGER_ORDER: &[Register] = &[
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
    26, 27, 28, 29, 30, 31,
];

pub(super) const STACK_POINTER: Register = LAST_REGISTER as Register;

/// The hint that waits for an interrupt.
const WAIT: u32 = 3;

/// What an assembler puts between functions: an instruction without effect, or zeros, which are never executed.
const PADDING: [u32; 2] = [0xd503_201f, 0];

/// The decoder.
#[derive(Debug, Clone, Copy)]
pub struct Aarch64;

impl Decoder for Aarch64 {
    fn decode(&self, code: &[u8], address: u64) -> Vec<Instruction> {
        let words = code.chunks(BYTES as usize);
        let addresses = (address..).step_by(BYTES as usize);
        let mut before = None;
        let mut word_before = 0;
        words
            .zip(addresses)
            .map(|(bytes, address)| {
                let decoded = decoded(bytes);
                let word = word_of(bytes);
                let mut instruction = instruction(decoded, word, address, bytes.len() as u8);
                instruction.at_most = at_most(std::mem::replace(&mut word_before, word), word);
                instruction.flow_behind = before
                    .zip(decoded)
                    .and_then(|(before, decoded)| settled(&before, &decoded, instruction.flow));
                before = decoded;
                instruction
            })
            .collect()
    }

    fn text(&self, code: &[u8], address: u64) -> String {
        let Some(decoded) = decoded(code) else {
            return String::from("(no instruction)");
        };
        match target(&decoded, address) {
            // The decoder writes how far away it is.
            Some(target) if flow(&decoded, address) != Flow::Next => {
                let text = decoded.to_string();
                let without = text.rsplit_once('$').map_or(&*text, |(before, _)| before);
                format!("{without}{target:#x}")
            }
            _ => decoded.to_string(),
        }
    }

    fn is_padding(&self, code: &[u8]) -> bool {
        let mut words = code.chunks(BYTES as usize);
        words.all(|word| {
            let is_it = |padding: &u32| padding.to_le_bytes().starts_with(word);
            PADDING.iter().any(is_it)
        })
    }
}

/// The first instruction of `code`.
fn decoded(code: &[u8]) -> Option<Decoded> {
    let word = code.get(..BYTES as usize)?;
    InstDecoder::default()
        .decode(&mut U8Reader::new(word))
        .ok()
        .filter(|decoded| decoded.opcode != Opcode::Invalid)
}

/// The instruction as a number; 0, which is none, if there are too few bytes.
fn word_of(code: &[u8]) -> u32 {
    let word = code.first_chunk().map(|&bytes| u32::from_le_bytes(bytes));
    word.unwrap_or_default()
}

fn instruction(decoded: Option<Decoded>, word: u32, address: u64, length: u8) -> Instruction {
    let mut instruction = Instruction {
        address,
        length,
        flow: Flow::Invalid,
        flow_behind: None,
        repeats: false,
        bytes_each: 0,
        third_argument: Change::Unknown,
        count: Change::None,
        accesses: [None; 2],
        more_accesses: 0,
        changes: Changes {
            lost: u32::MAX,
            ..Changes::default()
        },
        at_most: None,
    };
    let Some(decoded) = decoded else {
        return instruction;
    };
    instruction.flow = match flow(&decoded, address) {
        Flow::Next if is_unknown(word) => Flow::Invalid,
        flow => flow,
    };
    instruction.third_argument = third_argument(&decoded);
    instruction.accesses = accesses(&decoded, word, address);
    instruction.changes = changes(word, address);
    instruction
}

/// Whether the decoder knows what is not followed here: loads and stores of structures of vectors, and branches of which [`flow`] says
/// nothing. To their group belong exceptions and what is of the system, too.
fn is_unknown(word: u32) -> bool {
    let is_structure = word & 0xbe00_0000 == 0x0c00_0000;
    let is_branch = word & 0x1c00_0000 == 0x1400_0000 && !matches!(word >> 24, 0xd4 | 0xd5);
    is_structure || is_branch
}

/// The address that an instruction names relative to itself.
fn target(decoded: &Decoded, address: u64) -> Option<u64> {
    decoded.operands.iter().find_map(|operand| match operand {
        Operand::PCOffset(offset) => Some(address.wrapping_add_signed(*offset)),
        _ => None,
    })
}

fn flow(decoded: &Decoded, address: u64) -> Flow {
    let to = |flow: fn(u64) -> Flow| target(decoded, address).map_or(Flow::Invalid, flow);
    match decoded.opcode {
        Opcode::B => to(Flow::Jump),
        Opcode::Bcc(_) | Opcode::CBZ | Opcode::CBNZ | Opcode::TBZ | Opcode::TBNZ => {
            to(Flow::Branch)
        }
        Opcode::BL => to(Flow::Call),
        Opcode::RET | Opcode::RETAA | Opcode::RETAB => Flow::Return,
        Opcode::ERET | Opcode::ERETAA | Opcode::ERETAB => Flow::Leave,
        Opcode::UDF | Opcode::BRK => Flow::Trap,
        Opcode::HINT if waits(decoded) => Flow::Wait,
        Opcode::BR
        | Opcode::BRAA
        | Opcode::BRAAZ
        | Opcode::BRAB
        | Opcode::BRABZ
        | Opcode::BLR
        | Opcode::BLRAA
        | Opcode::BLRAAZ
        | Opcode::BLRAB
        | Opcode::BLRABZ
        | Opcode::DRPS
        | Opcode::SVC => Flow::Indirect,
        _ => Flow::Next,
    }
}

fn waits(decoded: &Decoded) -> bool {
    decoded.operands[..2] == [Operand::ControlReg(0), Operand::Immediate(WAIT)]
}

/// Where a branch on a register leads behind an instruction that makes a number of this register.
fn settled(before: &Decoded, branch: &Decoded, flow: Flow) -> Option<Flow> {
    let Flow::Branch(target) = flow else {
        return None;
    };
    let (to, number) = constant(before)?;
    let [Operand::Register(size, register), bit, ..] = branch.operands else {
        return None;
    };
    let number = match size {
        SizeCode::W => number & u64::from(u32::MAX),
        SizeCode::X => number,
    };
    let bit = match bit {
        Operand::Imm16(bit) => Some(number >> bit & 1),
        _ => None,
    };
    let is_taken = match (branch.opcode, bit) {
        (Opcode::CBZ, _) => number == 0,
        (Opcode::CBNZ, _) => number != 0,
        (Opcode::TBZ, Some(bit)) => bit == 0,
        (Opcode::TBNZ, Some(bit)) => bit != 0,
        _ => return None,
    };
    let next = if is_taken {
        Flow::Jump(target)
    } else {
        Flow::Next
    };
    (to == register).then_some(next)
}

/// The register that an instruction makes a number of, and the number.
fn constant(decoded: &Decoded) -> Option<(u16, u64)> {
    let (Operand::Register(_, to) | Operand::RegisterOrSP(_, to)) = decoded.operands[0] else {
        return None;
    };
    let number = match (decoded.opcode, decoded.operands) {
        (Opcode::MOVZ, [_, number, ..]) => number_of(number)?,
        (Opcode::ORR, [_, Operand::Register(_, LAST_REGISTER), number, _]) => number_of(number)?,
        _ => return None,
    };
    (to != LAST_REGISTER).then_some((to, number))
}

/// What an instruction does to the register with the third argument of a function; calls may change any.
fn third_argument(decoded: &Decoded) -> Change {
    let is_it = |operand: &Operand| {
        matches!(
            operand,
            Operand::Register(_, THIRD_ARGUMENT) | Operand::RegisterOrSP(_, THIRD_ARGUMENT)
        )
    };
    // An address that is written back; or registers in pairs, which the kernel does not use.
    let is_changed_besides = |operand: &Operand| {
        matches!(
            operand,
            Operand::RegPreIndex(THIRD_ARGUMENT, _, true)
                | Operand::RegPostIndex(THIRD_ARGUMENT, _)
                | Operand::RegPostIndexReg(THIRD_ARGUMENT, _)
                | Operand::RegisterPair(..)
        )
    };
    match decoded.opcode {
        Opcode::BL | Opcode::BLR | Opcode::HVC | Opcode::SMC => Change::Unknown,
        _ if decoded.operands.iter().any(is_changed_besides) => Change::Unknown,
        // The first operand of a store or of a comparison is only read; that it counts as changed loses nothing but a
        // bound, which is missed aloud.
        _ if decoded.operands.iter().take(2).any(is_it) => match constant(decoded) {
            Some((THIRD_ARGUMENT, number)) => Change::Number(number),
            _ => Change::Unknown,
        },
        _ => Change::None,
    }
}

fn number_of(operand: Operand) -> Option<u64> {
    match operand {
        Operand::Immediate(number) => Some(number.into()),
        Operand::Imm16(number) => Some(number.into()),
        Operand::Imm64(number) => Some(number),
        Operand::ImmShift(number, shift) if shift < 64 => Some(u64::from(number) << shift),
        // The register that is always zero.
        Operand::RegShift(ShiftStyle::LSL, 0, _, LAST_REGISTER) => Some(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0xffff_ff80_4010_0000;

    fn one(word: u32) -> Instruction {
        Aarch64.decode(&word.to_le_bytes(), AT)[0]
    }

    #[test]
    fn execution_goes_on_where_the_instruction_says() {
        for (word, expected) in [
            // b .-4; bl .+4; b.eq .+8; cbz x0, .+8; tbz w0, #0, .+8
            (0x17ff_ffff, Flow::Jump(AT - 4)),
            (0x9400_0001, Flow::Call(AT + 4)),
            (0x5400_0040, Flow::Branch(AT + 8)),
            (0xb400_0040, Flow::Branch(AT + 8)),
            (0x3600_0040, Flow::Branch(AT + 8)),
            // ret; eret; br x16; blr x8; svc #0
            (0xd65f_03c0, Flow::Return),
            (0xd69f_03e0, Flow::Leave),
            (0xd61f_0200, Flow::Indirect),
            (0xd63f_0100, Flow::Indirect),
            (0xd400_0001, Flow::Indirect),
            // wfi; nop; brk #0; udf #0; adr x0, .+8; mrs x0, tpidr_el1
            (0xd503_207f, Flow::Wait),
            (0xd503_201f, Flow::Next),
            (0xd420_0000, Flow::Trap),
            (0x0000_0000, Flow::Trap),
            (0x1000_0040, Flow::Next),
            (0xd538_d080, Flow::Next),
            (0xffff_ffff, Flow::Invalid),
        ] {
            assert_eq!(one(word).flow, expected, "{word:08x}");
        }
    }

    #[test]
    fn a_branch_on_a_number_leads_one_way() {
        let behind = |before: u32, branch: u32| {
            let code = [before.to_le_bytes(), branch.to_le_bytes()].concat();
            Aarch64.decode(&code, AT - 4)[1].flow_behind
        };
        let taken = Some(Flow::Jump(AT + 8));
        let next = Some(Flow::Next);
        // mov x0, xzr; mov w0, wzr; mov x0, #1; mov x1, xzr; add x0, x0, #1
        let (zero, short_zero, one, other, unknown) = (
            0xaa1f_03e0,
            0x2a1f_03e0,
            0xd280_0020,
            0xaa1f_03e1,
            0x9100_0400,
        );
        // cbz x0; cbnz x0; tbz w0, #0; tbnz w0, #0; b.eq, each to .+8
        let (cbz, cbnz, tbz, tbnz, equal) = (
            0xb400_0040,
            0xb500_0040,
            0x3600_0040,
            0x3700_0040,
            0x5400_0040,
        );
        for (before, branch, expected) in [
            (zero, cbz, taken),
            (short_zero, tbz, taken),
            (zero, cbnz, next),
            (one, cbz, next),
            (one, tbz, next),
            (one, tbnz, taken),
            (other, cbz, None),
            (unknown, cbz, None),
            (zero, equal, None),
            // mov x0, #1 << 32; cbz w0 and cbz x0
            (0xd2c0_0020, 0x3400_0040, taken),
            (0xd2c0_0020, cbz, next),
        ] {
            assert_eq!(
                behind(before, branch),
                expected,
                "{before:08x} {branch:08x}"
            );
        }
    }

    #[test]
    fn a_third_argument_is_known_where_it_is_a_number() {
        for (word, expected) in [
            // mov x2, #2; mov w2, #2 as a bit pattern; movk x2, #1; mov x2, x3; bl .+4
            (0xd280_0042, Change::Number(2)),
            (0x321f_03e2, Change::Number(2)),
            (0xf280_0022, Change::Unknown),
            (0xaa03_03e2, Change::Unknown),
            (0x9400_0001, Change::Unknown),
            // mov x1, x2; ldp x1, x2, [x0]
            (0xaa02_03e1, Change::None),
            (0xa940_0801, Change::Unknown),
            // ldr x0, [x2], #8; ldr x0, [x2, #8]!; ldr x0, [x2, #8]; smc #0
            (0xf840_8440, Change::Unknown),
            (0xf840_8c40, Change::Unknown),
            (0xf940_0440, Change::None),
            (0xd400_0003, Change::Unknown),
        ] {
            assert_eq!(one(word).third_argument, expected, "{word:08x}");
        }
    }

    #[test]
    fn the_text_names_addresses() {
        let text = |word: u32| Aarch64.text(&word.to_le_bytes(), AT);
        assert_eq!(text(0x9400_0001), format!("bl {:#x}", AT + 4));
        assert_eq!(text(0x3600_0040), format!("tbz w0, #0x0, {:#x}", AT + 8));
        assert_eq!(text(0xd65f_03c0), "ret");
    }

    #[test]
    fn padding_has_no_effect_or_is_never_executed() {
        let bytes = |words: &[u32]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        assert!(Aarch64.is_padding(&bytes(&[0xd503_201f, 0])));
        assert!(Aarch64.is_padding(&[0, 0]));
        assert!(!Aarch64.is_padding(&bytes(&[0xd503_201f, 0xd65f_03c0])));
    }

    #[test]
    fn what_is_not_followed_is_unknown() {
        // bc.eq .+8; bc.ne .+8; retaasppcr x16; ld2 {v26.d, v27.d}[1], [x7], x23; ld4 {v0.16b - v3.16b}, [x0]
        for word in [
            0x5400_0050,
            0x5400_0051,
            0xd65f_0bf0,
            0x4df7_84fa,
            0x4c40_0000,
        ] {
            assert_eq!(one(word).flow, Flow::Invalid, "{word:08x}");
        }
    }
}
