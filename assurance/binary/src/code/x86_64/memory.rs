//! What instructions of x86_64 do to memory and to the stack pointer.

use iced_x86::{
    Instruction as Decoded, InstructionInfoFactory, MemorySize, Mnemonic, OpAccess, OpKind,
    Register, UsedMemory,
};

use crate::code::{Access, Place, StackChange};

/// Words of segment descriptors that `iret` reads, besides what it pops.
const DESCRIPTORS: u8 = 4;

/// Where an instruction reads or writes, and how often besides.
pub(super) fn accesses(
    info: &mut InstructionInfoFactory,
    decoded: &Decoded,
) -> ([Option<Access>; 2], u8) {
    let mut known = [None; 2];
    let mut more = match decoded.mnemonic() {
        Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq => DESCRIPTORS,
        _ => 0,
    };
    for memory in info.info(decoded).used_memory() {
        let Some((reads, writes)) = directions(memory.access()) else {
            continue;
        };
        // Of what repeats itself, the decoder says no size: it means all together.
        let bytes = match memory.memory_size() {
            MemorySize::Unknown => decoded.memory_size(),
            size => size,
        };
        let access = Access {
            place: place(decoded, memory),
            bytes: bytes.size() as u16,
            reads,
            writes,
        };
        match known.iter_mut().find(|each| each.is_none()) {
            Some(free) => *free = Some(access),
            None => more += access.times() as u8,
        }
    }
    (known, more)
}

/// Whether memory is read and written.
fn directions(access: OpAccess) -> Option<(bool, bool)> {
    match access {
        OpAccess::None | OpAccess::NoMemAccess => None,
        OpAccess::Read | OpAccess::CondRead => Some((true, false)),
        OpAccess::Write | OpAccess::CondWrite => Some((false, true)),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => Some((true, true)),
    }
}

fn place(decoded: &Decoded, memory: &UsedMemory) -> Place {
    let is_shifted = matches!(memory.segment(), Register::FS | Register::GS);
    // A bit's number, or the stack pointer after what is popped, changes the address.
    let is_changed = match decoded.mnemonic() {
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc => {
            decoded.op1_kind() == OpKind::Register
        }
        Mnemonic::Pop => decoded.op0_kind() == OpKind::Memory,
        _ => false,
    };
    if is_shifted || is_changed || memory.index() != Register::None {
        return Place::Unknown;
    }
    match memory.base() {
        Register::None | Register::RIP => Place::Fixed(memory.displacement()),
        Register::RSP => Place::Stack(memory.displacement() as i64),
        _ => Place::Unknown,
    }
}

/// What an instruction does to the stack pointer.
pub(super) fn stack(info: &mut InstructionInfoFactory, decoded: &Decoded) -> StackChange {
    let used = info.info(decoded).used_registers().iter();
    let is_read = |access| matches!(access, OpAccess::Read | OpAccess::CondRead);
    let is_changed = used
        .into_iter()
        .any(|used| used.register().full_register() == Register::RSP && !is_read(used.access()));
    if !is_changed {
        return StackChange::By(0);
    }
    let is_pointer =
        decoded.op0_kind() == OpKind::Register && decoded.op0_register() == Register::RSP;
    let number = match decoded.op1_kind() {
        OpKind::Immediate8to64 | OpKind::Immediate32to64 | OpKind::Immediate64 => {
            Some(decoded.immediate(1))
        }
        _ => None,
    };
    let lea = decoded.memory_index() == Register::None;
    match (decoded.mnemonic(), number) {
        (
            Mnemonic::Push | Mnemonic::Call | Mnemonic::Ret | Mnemonic::Pushfq | Mnemonic::Popfq,
            _,
        ) => StackChange::By(decoded.stack_pointer_increment().into()),
        (Mnemonic::Pop, _) if !is_pointer => {
            StackChange::By(decoded.stack_pointer_increment().into())
        }
        (Mnemonic::Sub, Some(number)) if is_pointer => StackChange::By(-(number as i64)),
        (Mnemonic::Add, Some(number)) if is_pointer => StackChange::By(number as i64),
        (Mnemonic::Mov, Some(number)) if is_pointer => StackChange::To(number),
        (Mnemonic::Lea, _) if is_pointer && lea => match decoded.memory_base() {
            Register::RIP | Register::None => StackChange::To(decoded.memory_displacement64()),
            Register::RSP => StackChange::By(decoded.memory_displacement64() as i64),
            _ => StackChange::Unknown,
        },
        _ => StackChange::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    const AT: u64 = 0xffff_ffff_8010_0000;

    fn decoded(bytes: &[u8]) -> Decoded {
        Decoder::with_ip(64, bytes, AT, DecoderOptions::NONE).decode()
    }

    fn access(place: Place, bytes: u16, reads: bool, writes: bool) -> Option<Access> {
        Some(Access {
            place,
            bytes,
            reads,
            writes,
        })
    }

    #[test]
    fn accesses_are_those_of_the_processor() {
        let one = |bytes: &[u8]| accesses(&mut InstructionInfoFactory::new(), &decoded(bytes));
        let of = |first| ([first, None], 0);
        let unknown = Place::Unknown;
        for (bytes, expected) in [
            // nop [rax]; lea rax, [rax]
            (&[0x0f, 0x1f, 0x00][..], of(None)),
            (&[0x48, 0x8d, 0x00], of(None)),
            // push rax; pop rax; call; ret
            (&[0x50], of(access(Place::Stack(-8), 8, false, true))),
            (&[0x58], of(access(Place::Stack(0), 8, true, false))),
            (
                &[0xe8, 0, 0, 0, 0],
                of(access(Place::Stack(-8), 8, false, true)),
            ),
            (&[0xc3], of(access(Place::Stack(0), 8, true, false))),
            // mov rax, [rsp+16]; add [rax], ecx; mov rax, [rip+9]
            (
                &[0x48, 0x8b, 0x44, 0x24, 16],
                of(access(Place::Stack(16), 8, true, false)),
            ),
            (&[0x01, 0x08], of(access(unknown, 4, true, true))),
            (
                &[0x48, 0x8b, 0x05, 9, 0, 0, 0],
                of(access(Place::Fixed(AT + 16), 8, true, false)),
            ),
            // mov rax, gs:[8]; bt [rsp], rax
            (
                &[0x65, 0x48, 0x8b, 0x04, 0x25, 8, 0, 0, 0],
                of(access(unknown, 8, true, false)),
            ),
            (
                &[0x48, 0x0f, 0xa3, 0x04, 0x24],
                of(access(unknown, 8, true, false)),
            ),
            // fxsave64 [rax]
            (
                &[0x48, 0x0f, 0xae, 0x00],
                of(access(unknown, 512, false, true)),
            ),
        ] {
            assert_eq!(one(bytes), expected, "{bytes:02x?}");
        }
        let (known, more) = one(&[0x48, 0xcf]);
        let popped: u64 = known.iter().flatten().map(Access::times).sum();
        assert_eq!(popped + u64::from(more), 5 + 4, "iretq");
        let (known, more) = one(&[0xf3, 0x48, 0xa5]);
        let sizes: Vec<u16> = known.iter().flatten().map(|each| each.bytes).collect();
        assert_eq!((&sizes[..], more), (&[8, 8][..], 0), "rep movsq");
    }

    #[test]
    fn the_stack_pointer_is_followed_as_far_as_it_is_known() {
        let one = |bytes: &[u8]| stack(&mut InstructionInfoFactory::new(), &decoded(bytes));
        for (bytes, expected) in [
            (&[0x50][..], StackChange::By(-8)),
            (&[0x58], StackChange::By(8)),
            (&[0xe8, 0, 0, 0, 0], StackChange::By(-8)),
            (&[0xc3], StackChange::By(8)),
            // sub rsp, 24; add rsp, 0x120; lea rsp, [rip+1]; mov rsp, rdi; pop rsp; mov rdi, rsp
            (&[0x48, 0x83, 0xec, 24], StackChange::By(-24)),
            (&[0x48, 0x81, 0xc4, 0x20, 1, 0, 0], StackChange::By(0x120)),
            (&[0x48, 0x8d, 0x25, 1, 0, 0, 0], StackChange::To(AT + 8)),
            (&[0x48, 0x89, 0xfc], StackChange::Unknown),
            (&[0x5c], StackChange::Unknown),
            (&[0x48, 0x89, 0xe7], StackChange::By(0)),
        ] {
            assert_eq!(one(bytes), expected, "{bytes:02x?}");
        }
    }
}
