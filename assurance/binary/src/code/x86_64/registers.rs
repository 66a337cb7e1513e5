//! What instructions of x86_64 make of general registers.

use iced_x86::{
    Instruction as Decoded, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register as Name,
};

use super::STACK_POINTER;
use crate::code::{AtMost, Changes, Compared, Register, Sum, Taken, Value};

/// The number of a register, of all of its 64 bits.
pub(super) fn number(name: Name) -> Option<Register> {
    name.is_gpr64().then(|| name.number() as Register)
}

/// The operand with that number, as a sum: a register or a number.
fn operand(decoded: &Decoded, at: u32) -> Option<Sum> {
    match decoded.op_kind(at) {
        OpKind::Register => number(decoded.op_register(at)).map(Sum::register),
        _ => immediate(decoded, at).map(Sum::number),
    }
}

/// The operand, if it is a number, as wide as the instruction makes it.
fn immediate(decoded: &Decoded, at: u32) -> Option<u64> {
    decoded.try_immediate(at).ok()
}

/// What an instruction writes to memory that writes a word.
pub(super) fn stored(decoded: &Decoded) -> Option<Sum> {
    match decoded.mnemonic() {
        Mnemonic::Push => operand(decoded, 0),
        Mnemonic::Mov => operand(decoded, 1),
        _ => None,
    }
}

/// What becomes of registers; a call leaves all but the stack pointer to whom it calls.
pub(super) fn changes(info: &mut InstructionInfoFactory, decoded: &Decoded) -> Changes {
    let mut changes = Changes::default();
    let by = i64::from(decoded.stack_pointer_increment());
    let is_popped_to =
        decoded.mnemonic() == Mnemonic::Pop && decoded.op0_register().full_register() == Name::RSP;
    if by != 0 && decoded.mnemonic() != Mnemonic::Leave && !is_popped_to {
        changes.add(STACK_POINTER, Value::Sum(Sum::from(STACK_POINTER, by)));
    }
    let used = info.info(decoded).used_registers().iter();
    for used in used {
        let register = used.register().full_register();
        let Some(number) = number(register) else {
            continue;
        };
        if matches!(used.access(), OpAccess::Read | OpAccess::CondRead) {
            continue;
        }
        let mut known = changes.known.iter().flatten();
        if known.any(|known| known.register == number) {
            continue;
        }
        let is_whole = match used.access() {
            OpAccess::Write | OpAccess::ReadWrite => true,
            _ => is_choice(decoded),
        };
        match writes(decoded, register) && is_whole {
            true => changes.add_half(number, result(decoded), decoded.op0_register().size() == 4),
            false => changes.add(number, Value::Unknown),
        }
    }
    changes
}

/// Whether the first operand is this register, or its lower half, which clears the upper one.
fn writes(decoded: &Decoded, register: Name) -> bool {
    let first = decoded.op0_register();
    decoded.op0_kind() == OpKind::Register && first.size() >= 4 && first.full_register() == register
}

/// What an instruction makes of its first operand, a register: of a half of one, if it is that, of halves.
fn result(decoded: &Decoded) -> Value {
    let own = decoded.op0_register();
    let full = own.full_register().number() as Register;
    let second = decoded.op1_kind();
    let other = || -> Option<Register> {
        let register = decoded.op1_register();
        let is_alike = second == OpKind::Register && register.size() == own.size();
        is_alike.then(|| number(register.full_register()))?
    };
    let by = immediate(decoded, 1);
    // Of the lower half, five bits of the number count.
    let bits = if own.size() == 8 { 63 } else { 31 };
    let shift = by.map(|by| (by & bits) as u8);
    let sum = |sum: Option<Sum>| sum.map_or(Value::Unknown, Value::Sum);
    match decoded.mnemonic() {
        Mnemonic::Mov | Mnemonic::Pop if second == OpKind::Memory || decoded.op_count() == 1 => {
            match own.size() {
                8 => Value::Loaded(0),
                _ => Value::Narrow(32),
            }
        }
        Mnemonic::Mov => sum(by.map(Sum::number).or_else(|| other().map(Sum::register))),
        Mnemonic::Movzx => {
            let register = decoded.op1_register();
            let is_high = matches!(register, Name::AH | Name::BH | Name::CH | Name::DH);
            let bits = match second {
                OpKind::Memory => 8 * decoded.memory_size().size() as u8,
                _ => 8 * register.size() as u8,
            };
            match number(register.full_register()) {
                Some(from) if second == OpKind::Register && !is_high => {
                    Value::Masked(from, (1 << bits) - 1)
                }
                _ => Value::Narrow(bits),
            }
        }
        Mnemonic::Lea => sum(address(decoded)),
        Mnemonic::Add => match (by, other()) {
            (Some(by), _) => sum(Some(Sum::from(full, by as i64))),
            (None, other) => sum(other.map(|other| Sum {
                base: Some(full),
                index: Some((other, 0)),
                plus: 0,
                ..Sum::default()
            })),
        },
        Mnemonic::Xor | Mnemonic::Sub if other() == Some(full) => sum(Some(Sum::number(0))),
        Mnemonic::Sub => sum(by.map(|by| Sum::from(full, (by as i64).wrapping_neg()))),
        Mnemonic::Inc => sum(Some(Sum::from(full, 1))),
        Mnemonic::Dec => sum(Some(Sum::from(full, -1))),
        Mnemonic::And => by.map_or(Value::Part(full), |mask| Value::Masked(full, mask)),
        Mnemonic::Or => by.map_or(Value::Unknown, |bits| Value::Set(full, bits)),
        Mnemonic::Shl => sum(shift.map(|by| Sum {
            index: Some((full, by)),
            ..Sum::default()
        })),
        _ if is_choice(decoded) => match other() {
            Some(other) => Value::Either(full, other),
            None => Value::Unknown,
        },
        Mnemonic::Shr => shift.map_or(Value::Unknown, |by| Value::ShiftedRight(full, by)),
        _ => Value::Unknown,
    }
}

/// Whether it moves the second operand to the first if something holds.
fn is_choice(decoded: &Decoded) -> bool {
    matches!(
        decoded.mnemonic(),
        Mnemonic::Cmova
            | Mnemonic::Cmovae
            | Mnemonic::Cmovb
            | Mnemonic::Cmovbe
            | Mnemonic::Cmove
            | Mnemonic::Cmovg
            | Mnemonic::Cmovge
            | Mnemonic::Cmovl
            | Mnemonic::Cmovle
            | Mnemonic::Cmovne
            | Mnemonic::Cmovno
            | Mnemonic::Cmovnp
            | Mnemonic::Cmovns
            | Mnemonic::Cmovo
            | Mnemonic::Cmovp
            | Mnemonic::Cmovs
    )
}

/// The address that `lea` makes.
fn address(decoded: &Decoded) -> Option<Sum> {
    let base = match decoded.memory_base() {
        Name::None | Name::RIP => None,
        base => Some(number(base)?),
    };
    let index = match decoded.memory_index() {
        Name::None => None,
        index => Some((
            number(index)?,
            decoded.memory_index_scale().trailing_zeros() as u8,
        )),
    };
    Some(Sum {
        base,
        index,
        plus: decoded.memory_displacement64(),
        ..Sum::default()
    })
}

/// What a branch says of a register that the instruction `before` it compares with something.
pub(super) fn at_most(before: &Decoded, branch: &Decoded) -> Option<AtMost> {
    if before.mnemonic() != Mnemonic::Cmp || before.op0_kind() != OpKind::Register {
        return None;
    }
    let register = number(before.op0_register())?;
    let compared = match before.op1_kind() {
        OpKind::Register => Compared::Register(number(before.op1_register())?),
        _ => Compared::Number(immediate(before, 1)?),
    };
    let taken = match branch.mnemonic() {
        Mnemonic::Je => Taken::Equal,
        Mnemonic::Jne => Taken::NotEqual,
        Mnemonic::Ja => Taken::Above,
        Mnemonic::Jbe => Taken::NotAbove,
        Mnemonic::Jb => Taken::Below,
        Mnemonic::Jae => Taken::NotBelow,
        _ => return None,
    };
    Some(AtMost::of(register, compared, taken))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Made;
    use iced_x86::{Decoder, DecoderOptions};

    const AT: u64 = 0xffff_ffff_8010_0000;
    const RAX: Register = 0;
    const RCX: Register = 1;
    const RDI: Register = 7;

    fn decoded(bytes: &[u8]) -> Decoded {
        Decoder::with_ip(64, bytes, AT, DecoderOptions::NONE).decode()
    }

    fn of(bytes: &[u8]) -> Changes {
        changes(&mut InstructionInfoFactory::new(), &decoded(bytes))
    }

    #[test]
    fn the_stack_pointer_is_followed_as_far_as_it_is_known() {
        for (bytes, expected) in [
            (&[0x50][..], Some(-8)),
            (&[0x58], Some(8)),
            (&[0xe8, 0, 0, 0, 0], Some(-8)),
            (&[0xc3], Some(8)),
            // sub rsp, 24; add rsp, 0x120; mov rsp, rdi; pop rsp; mov rdi, rsp
            (&[0x48, 0x83, 0xec, 24], Some(-24)),
            (&[0x48, 0x81, 0xc4, 0x20, 1, 0, 0], Some(0x120)),
            (&[0x48, 0x89, 0xfc], None),
            (&[0x5c], None),
            (&[0x48, 0x89, 0xe7], Some(0)),
        ] {
            assert_eq!(of(bytes).moved(STACK_POINTER), expected, "{bytes:02x?}");
        }
    }

    #[test]
    fn registers_become_what_the_processor_makes_of_them() {
        let sum = |sum: Sum| Value::Sum(sum);
        let number = |number: u64| sum(Sum::number(number));
        for (bytes, register, value, is_half) in [
            // mov rax, rdi; mov eax, ecx; mov eax, -1; mov rax, -1
            (&[0x48, 0x89, 0xf8][..], RAX, sum(Sum::register(RDI)), false),
            (&[0x89, 0xc8], RAX, sum(Sum::register(RCX)), true),
            (
                &[0xb8, 0xff, 0xff, 0xff, 0xff],
                RAX,
                number(0xffff_ffff),
                true,
            ),
            (
                &[0x48, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff],
                RAX,
                number(u64::MAX),
                false,
            ),
            // mov rax, [rdi]; mov eax, [rdi]; movzx eax, byte [rdi]; movzx eax, cl; movzx eax, ch
            (&[0x48, 0x8b, 0x07], RAX, Value::Loaded(0), false),
            (&[0x8b, 0x07], RAX, Value::Narrow(32), true),
            (&[0x0f, 0xb6, 0x07], RAX, Value::Narrow(8), true),
            (&[0x0f, 0xb6, 0xc1], RAX, Value::Masked(RCX, 0xff), true),
            (&[0x0f, 0xb6, 0xc5], RAX, Value::Narrow(8), true),
            // lea rax, [rdi + rcx*8 + 16]; lea rax, [rip + 9]
            (
                &[0x48, 0x8d, 0x44, 0xcf, 16],
                RAX,
                sum(Sum {
                    base: Some(RDI),
                    index: Some((RCX, 3)),
                    plus: 16,
                    ..Sum::default()
                }),
                false,
            ),
            (&[0x48, 0x8d, 0x05, 9, 0, 0, 0], RAX, number(AT + 16), false),
            // add rax, rcx; sub rax, 8; inc rax; xor eax, eax; shl rax, 5; shr rax, 5; shl eax, 5
            (
                &[0x48, 0x01, 0xc8],
                RAX,
                sum(Sum {
                    base: Some(RAX),
                    index: Some((RCX, 0)),
                    ..Sum::default()
                }),
                false,
            ),
            (&[0x48, 0x83, 0xe8, 8], RAX, sum(Sum::from(RAX, -8)), false),
            (&[0x48, 0xff, 0xc0], RAX, sum(Sum::from(RAX, 1)), false),
            (&[0x31, 0xc0], RAX, number(0), true),
            (
                &[0x48, 0xc1, 0xe0, 5],
                RAX,
                sum(Sum {
                    index: Some((RAX, 5)),
                    ..Sum::default()
                }),
                false,
            ),
            (
                &[0x48, 0xc1, 0xe8, 5],
                RAX,
                Value::ShiftedRight(RAX, 5),
                false,
            ),
            (&[0xc1, 0xe8, 5], RAX, Value::ShiftedRight(RAX, 5), true),
            // and rax, -16; and eax, 16; and rax, rcx; or rax, 16; cmove rax, rcx
            (
                &[0x48, 0x83, 0xe0, 0xf0],
                RAX,
                Value::Masked(RAX, !15),
                false,
            ),
            (&[0x83, 0xe0, 0x10], RAX, Value::Masked(RAX, 16), true),
            (&[0x48, 0x21, 0xc8], RAX, Value::Part(RAX), false),
            (&[0x48, 0x83, 0xc8, 0x10], RAX, Value::Set(RAX, 16), false),
            (
                &[0x48, 0x0f, 0x44, 0xc1],
                RAX,
                Value::Either(RAX, RCX),
                false,
            ),
        ] {
            let mut expected = Changes::default();
            expected.add_half(register, value, is_half);
            assert_eq!(of(bytes), expected, "{bytes:02x?}");
        }
        // mov al, cl; imul rax, rcx; mul rcx; cpuid; xchg rax, rcx; mov rax, cr3
        for (bytes, lost) in [
            (&[0x88, 0xc8][..], 0b1),
            (&[0x48, 0x0f, 0xaf, 0xc1], 0b1),
            (&[0x48, 0xf7, 0xe1], 0b101),
            (&[0x0f, 0xa2], 0b1111),
            (&[0x48, 0x91], 0b11),
            (&[0x0f, 0x20, 0xd8], 0b1),
        ] {
            let changes = of(bytes);
            assert_eq!(
                (changes.known, changes.lost),
                ([None; 3], lost),
                "{bytes:02x?}"
            );
        }
        // rep movsq: three registers; push and pop of memory: the stack pointer alone
        assert_eq!(of(&[0xf3, 0x48, 0xa5]).lost, 0b1100_0010);
        let popped = of(&[0x8f, 0x00]);
        assert!(matches!(
            popped.known,
            [
                Some(Made {
                    register: STACK_POINTER,
                    ..
                }),
                None,
                None
            ]
        ));
    }

    #[test]
    fn a_branch_behind_a_comparison_says_how_much_a_register_is() {
        // cmp rcx, 1; ja, jbe, jae, jb, je, jl
        let compare = decoded(&[0x48, 0x83, 0xf9, 1]);
        // cmp rcx, rdi
        let with_register = decoded(&[0x48, 0x39, 0xf9]);
        for (opcode, is_less, if_taken) in [
            (0x77, false, false),
            (0x76, false, true),
            (0x73, true, false),
            (0x72, true, true),
            (0x74, false, true),
        ] {
            let branch = decoded(&[opcode, 0]);
            let said = |compared| {
                Some(AtMost {
                    register: RCX,
                    compared,
                    is_less,
                    if_taken,
                })
            };
            let number = Compared::Number(1);
            assert_eq!(at_most(&compare, &branch), said(number), "{opcode:02x}");
            let register = Compared::Register(RDI);
            let found = at_most(&with_register, &branch);
            assert_eq!(found, said(register), "{opcode:02x}");
        }
        assert_eq!(at_most(&compare, &decoded(&[0x7c, 0])), None);
        // cmp ecx, 1; cmp ecx, edi: of halves
        for halves in [&[0x83, 0xf9, 1][..], &[0x39, 0xf9]] {
            assert_eq!(at_most(&decoded(halves), &decoded(&[0x77, 0])), None);
        }
    }

    /// Of a half, only the lower five bits of a count count.
    #[test]
    fn a_half_is_shifted_by_less_than_its_bits() {
        // shr r15d, 0x33; shl edi, 0x3a
        for (bytes, register, wrong) in [
            (
                &[0x41, 0xc1, 0xef, 0x33][..],
                15,
                Value::ShiftedRight(15, 0x33),
            ),
            (
                &[0xc1, 0xe7, 0x3a],
                RDI,
                Value::Sum(Sum {
                    index: Some((RDI, 0x3a)),
                    ..Sum::default()
                }),
            ),
        ] {
            let changes = of(bytes);
            let made = changes
                .known
                .iter()
                .flatten()
                .find(|made| made.register == register);
            assert_ne!(made.map(|made| made.value), Some(wrong), "{bytes:02x?}");
        }
    }

    #[test]
    fn what_is_popped_to_a_part_of_the_stack_pointer_changes_it() {
        // pop sp
        assert_eq!(of(&[0x66, 0x5c]).moved(STACK_POINTER), None);
    }
}
