//! What instructions of x86_64 do to memory.

use iced_x86::{
    Instruction as Decoded, InstructionInfoFactory, MemorySize, Mnemonic, OpAccess, OpKind,
    Register, UsedMemory,
};

use super::registers::{number, stored};
use crate::code::{Access, Sum, WORD};

/// Halves of a segment's descriptor, which are read one after the other.
const DESCRIPTOR: u8 = 2;

/// Bytes of what `fxsave` has room for that it writes.
const FXSAVE: u16 = 416;

/// Bytes of what `xsave` writes, at most: with the components that a profile of the kernel has, which are x87, SSE and AVX.
const XSAVE: u16 = 512 + 64 + 256;

/// Where an instruction reads or writes, and how often besides.
pub(super) fn accesses(
    info: &mut InstructionInfoFactory,
    decoded: &Decoded,
) -> ([Option<Access>; 2], u8) {
    let mut known = [None; 2];
    let mut more = match decoded.mnemonic() {
        // Of code and stack.
        Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq => 2 * DESCRIPTOR,
        Mnemonic::Verr | Mnemonic::Verw | Mnemonic::Lar | Mnemonic::Lsl => DESCRIPTOR,
        Mnemonic::Ltr | Mnemonic::Lldt | Mnemonic::Retf => DESCRIPTOR,
        Mnemonic::Mov | Mnemonic::Pop if decoded.op0_register().is_segment_register() => DESCRIPTOR,
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
        let (bytes, sure) = match bytes {
            // Components that are as at the beginning are left out.
            MemorySize::Xsave | MemorySize::Xsave64 => (XSAVE, 0),
            MemorySize::Fxsave_512Byte | MemorySize::Fxsave64_512Byte => {
                (bytes.size() as u16, FXSAVE)
            }
            bytes => (bytes.size() as u16, bytes.size() as u16),
        };
        let access = Access {
            place: place(decoded, memory),
            bytes,
            at_once: WORD,
            sure,
            reads,
            writes,
            stored: [stored(decoded).filter(|_| bytes == 8 && !reads), None],
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

/// Its address.
fn place(decoded: &Decoded, memory: &UsedMemory) -> Option<Sum> {
    let is_shifted = matches!(memory.segment(), Register::FS | Register::GS);
    // A bit's number, or the stack pointer after what is popped, changes the address.
    let is_changed = match decoded.mnemonic() {
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc => {
            decoded.op1_kind() == OpKind::Register
        }
        Mnemonic::Pop => decoded.op0_kind() == OpKind::Memory,
        _ => false,
    };
    if is_shifted || is_changed {
        return None;
    }
    let base = match memory.base() {
        // The displacement is the address then.
        Register::None | Register::RIP => None,
        base => Some(number(base)?),
    };
    let index = match memory.index() {
        Register::None => None,
        index => Some((number(index)?, memory.scale().trailing_zeros() as u8)),
    };
    Some(Sum {
        base,
        index,
        plus: memory.displacement(),
        ..Sum::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::STACK_POINTER;
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    const RAX: u8 = 0;
    const AT: u64 = 0xffff_ffff_8010_0000;

    fn decoded(bytes: &[u8]) -> Decoded {
        Decoder::with_ip(64, bytes, AT, DecoderOptions::NONE).decode()
    }

    fn access(place: Option<Sum>, bytes: u16, reads: bool, writes: bool) -> Option<Access> {
        Some(Access {
            place,
            bytes,
            at_once: WORD,
            sure: bytes,
            reads,
            writes,
            stored: [None; 2],
        })
    }

    #[test]
    fn accesses_are_those_of_the_processor() {
        let one = |bytes: &[u8]| {
            let (mut known, more) = accesses(&mut InstructionInfoFactory::new(), &decoded(bytes));
            known
                .iter_mut()
                .flatten()
                .for_each(|it| it.stored = [None; 2]);
            (known, more)
        };
        let stack = |by| Some(Sum::from(STACK_POINTER, by));
        let at = |register| Some(Sum::register(register));
        let of = |first| ([first, None], 0);
        for (bytes, expected) in [
            // nop [rax]; lea rax, [rax]
            (&[0x0f, 0x1f, 0x00][..], of(None)),
            (&[0x48, 0x8d, 0x00], of(None)),
            // push rax; pop rax; call; ret
            (&[0x50], of(access(stack(-8), 8, false, true))),
            (&[0x58], of(access(stack(0), 8, true, false))),
            (&[0xe8, 0, 0, 0, 0], of(access(stack(-8), 8, false, true))),
            (&[0xc3], of(access(stack(0), 8, true, false))),
            // mov rax, [rsp+16]; add [rax], ecx; mov rax, [rip+9]
            (
                &[0x48, 0x8b, 0x44, 0x24, 16],
                of(access(stack(16), 8, true, false)),
            ),
            (&[0x01, 0x08], of(access(at(RAX), 4, true, true))),
            (
                &[0x48, 0x8b, 0x05, 9, 0, 0, 0],
                of(access(Some(Sum::number(AT + 16)), 8, true, false)),
            ),
            // mov rax, gs:[8]; bt [rsp], rax
            (
                &[0x65, 0x48, 0x8b, 0x04, 0x25, 8, 0, 0, 0],
                of(access(None, 8, true, false)),
            ),
            (
                &[0x48, 0x0f, 0xa3, 0x04, 0x24],
                of(access(None, 8, true, false)),
            ),
            // fxsave64 [rax]
            (
                &[0x48, 0x0f, 0xae, 0x00],
                of(access(at(RAX), 512, false, true).map(|it| Access { sure: FXSAVE, ..it })),
            ),
            // xsave64 [rax]
            (
                &[0x48, 0x0f, 0xae, 0x20],
                of(access(at(RAX), XSAVE, true, true).map(|it| Access { sure: 0, ..it })),
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

    fn times(bytes: &[u8]) -> u64 {
        let (known, more) = accesses(&mut InstructionInfoFactory::new(), &decoded(bytes));
        known.iter().flatten().map(Access::times).sum::<u64>() + u64::from(more)
    }

    /// As `iretq` does: QEMU 7.2 tells a plugin of two reads for each descriptor.
    #[test]
    fn who_looks_at_a_segment_reads_its_descriptor() {
        // verw word [rip + 9], which a kernel with `speculation-verw` executes whenever it leaves
        assert_eq!(times(&[0x0f, 0x00, 0x2d, 9, 0, 0, 0]), 1 + 2, "verw");
        // verw ax; verr ax; lar ebx, eax; lsl ebx, eax; mov ss, eax; ltr ax
        for bytes in [
            &[0x0f, 0x00, 0xe8][..],
            &[0x0f, 0x00, 0xe0],
            &[0x0f, 0x02, 0xd8],
            &[0x0f, 0x03, 0xd8],
            &[0x8e, 0xd0],
            &[0x0f, 0x00, 0xd8],
        ] {
            assert_eq!(times(bytes), 2, "{bytes:02x?}");
        }
    }

    /// What a processor writes of 512 bytes, by itself.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn fxsave_writes_for_sure_what_it_does_write() {
        #[repr(align(64))]
        struct Image([u8; 512]);
        let written = |filled: u8| {
            let mut image = Image([filled; 512]);
            // SAFETY: 512 bytes, aligned.
            unsafe { std::arch::asm!("fxsave64 [{}]", in(reg) image.0.as_mut_ptr()) };
            image.0.map(|byte| byte != filled)
        };
        let (one, other) = (written(0x55), written(0xaa));
        let last = (0..512).rev().find(|&at| one[at] || other[at]);
        let end = last.map_or(0, |last| last as u16 + 1).next_multiple_of(8);
        let (known, _) = accesses(
            &mut InstructionInfoFactory::new(),
            &decoded(&[0x48, 0x0f, 0xae, 0x07]),
        );
        let sure = known[0].map(|access| access.sure);
        assert_eq!(sure, Some(end), "fxsave64 [rdi]");
    }
}
