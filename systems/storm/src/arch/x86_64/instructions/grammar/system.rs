//! What asks the kernel, or is the kernel's alone.

use sandglass::abi::syscall::Syscall;

use super::{Composer, RAX, RCX, RDI, RDX, RSI};

impl Composer<'_> {
    /// int3, int1, into, and int n.
    pub fn software_interrupt(&mut self) {
        match self.dice.below(8) {
            0 => self.code.bytes(&[0xcc]),
            1 => self.code.bytes(&[0xce]),
            2 => self.code.bytes(&[0xcd, 0x03]),
            _ => {
                let vector = self.dice.word() as u8;
                self.code.bytes(&[0xcd, vector]);
            }
        }
    }

    /// SYSCALL, SYSENTER, SYSRET, SYSEXIT; flags and registers are anything.
    pub fn system_call(&mut self) {
        if self.dice.one_in(2) {
            self.odd_flags();
        }
        let enter = self.dice.choose([0x05, 0x05, 0x05, 0x05, 0x34, 0x07, 0x35]);
        let number = self.number();
        self.code.load(RDX, number);
        let capability = match self.dice.below(4) {
            0 => self.dice.wild(),
            _ => self.dice.below(64),
        };
        self.code.load(RDI, capability);
        let info = match self.dice.below(2) {
            0 => self.dice.wild(),
            _ => self.dice.below(1 << 16),
        };
        self.code.load(RSI, info);
        if self.dice.one_in(8) {
            // Only with a REX prefix: SYSRET to 64-bit code.
            self.code.bytes(&[0x48]);
        }
        self.code.bytes(&[0x0f, enter]);
        // No such number is left for what follows.
        self.code.bytes(&[0x31, 0xd2]);
    }

    /// A number of a system call that does not wait, or of none. Those of the debug kernel are the
    /// storm of calls' business.
    fn number(&mut self) -> u64 {
        let call = match self.dice.below(16) {
            0..3 => Syscall::NBSend,
            3..5 => Syscall::NBRecv,
            5..7 => Syscall::NBWait,
            7 => Syscall::Call,
            8 => Syscall::SetTLSBase,
            9 if self.dice.one_in(8) => Syscall::Yield,
            9 if self.dice.one_in(8) => Syscall::Wait,
            10..14 => return self.dice.word() >> 1,
            _ => return (34 + self.dice.below(1 << 20)).wrapping_neg(),
        };
        call.raw()
    }

    /// in, out, ins and outs, of all sizes.
    pub fn port(&mut self) {
        let prefix: &[u8] = self
            .dice
            .choose([&[], &[], &[0x66], &[0xf3], &[0xf2, 0x66]]);
        let port = self.dice.choose([0x3f8, 0x70, 0xcf8, 0xf4, 0x64, 0x20]);
        if self.dice.one_in(2) {
            self.code.load(RDX, port);
        }
        self.code.bytes(prefix);
        match self.dice.below(3) {
            0 => {
                let opcode = 0xe4 | self.dice.below(4) as u8;
                self.code.bytes(&[opcode, port as u8]);
            }
            1 => {
                let opcode = 0xec | self.dice.below(4) as u8;
                self.code.bytes(&[opcode]);
            }
            _ => {
                let opcode = 0x6c | self.dice.below(4) as u8;
                self.code.bytes(&[opcode]);
            }
        }
    }

    /// Moves from and to control, debug, extended-control and model-specific registers, clts, lmsw,
    /// rdpmc, invd, wbinvd, invlpg, invpcid, rsm.
    pub fn control_register(&mut self) {
        const MSRS: [u64; 14] = [
            0xc000_0080,
            0xc000_0081,
            0xc000_0082,
            0xc000_0083,
            0xc000_0084,
            0xc000_0100,
            0xc000_0101,
            0xc000_0102,
            0x174,
            0x176,
            0x1b,
            0x10,
            0x1a0,
            0x277,
        ];
        const OTHERS: [&[u8]; 10] = [
            &[0x0f, 0x06],
            &[0x0f, 0x08],
            &[0x0f, 0x09],
            &[0x0f, 0x33],
            &[0x0f, 0x01, 0x38],
            &[0x0f, 0x01, 0xd0],
            &[0x0f, 0x01, 0xd1],
            &[0x66, 0x0f, 0x38, 0x82, 0x00],
            &[0x0f, 0xaa],
            &[0x0f, 0x01, 0xf0],
        ];
        let register = self.dice.below(8) as u8;
        match self.dice.below(4) {
            // mov from and to cr and dr, and the test registers of old
            0 | 1 => {
                let rex: &[u8] = self.dice.choose([&[], &[], &[0x44], &[0x45]]);
                let opcode = self.dice.choose([0x20, 0x22, 0x21, 0x23, 0x24, 0x26]);
                let general = self.dice.below(8) as u8;
                self.code.bytes(rex);
                self.code
                    .bytes(&[0x0f, opcode, 0xc0 | register << 3 | general]);
            }
            // rdmsr, wrmsr
            2 => {
                let number = match self.dice.below(4) {
                    0 => self.dice.word() & 0xffff_ffff,
                    _ => self.dice.choose(MSRS),
                };
                self.code.load(RCX, number);
                let opcode = self.dice.choose([0x30, 0x32]);
                self.code.bytes(&[0x0f, opcode]);
            }
            _ => {
                let other = self.dice.choose(OTHERS);
                self.code.bytes(other);
            }
        }
    }

    /// swapgs; rdfsbase, rdgsbase, wrfsbase, wrgsbase rax, of both sizes.
    pub fn segment_base(&mut self) {
        if self.dice.one_in(4) {
            return self.code.bytes(&[0x0f, 0x01, 0xf8]);
        }
        let value = self.address();
        self.code.load(RAX, value);
        let operation = self.dice.below(4) as u8;
        self.code.bytes(&[0xf3]);
        if self.dice.one_in(2) {
            self.code.bytes(&[0x48]);
        }
        self.code.bytes(&[0x0f, 0xae, 0xc0 | operation << 3]);
    }

    /// hlt, cli, sti, monitor, mwait, pause, prefetches, flushes, fences, long no-operations, and those
    /// of virtual machines.
    pub fn waiting(&mut self) {
        const ALL: [&[u8]; 28] = [
            &[0xf4],
            &[0xfa],
            &[0xfb],
            &[0x0f, 0x01, 0xc8],
            &[0x0f, 0x01, 0xc9],
            &[0xf3, 0x90],
            &[0x0f, 0x18, 0x00],
            &[0x0f, 0x18, 0x08],
            &[0x0f, 0x0d, 0x00],
            &[0x0f, 0x0d, 0x08],
            &[0x0f, 0xae, 0x38],
            &[0x66, 0x0f, 0xae, 0x38],
            &[0x0f, 0xae, 0xe8],
            &[0x0f, 0xae, 0xf0],
            &[0x0f, 0xae, 0xf8],
            &[0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0],
            &[0x0f, 0x1f, 0x00],
            &[0xf3, 0x0f, 0x1e, 0xfa],
            &[0x0f, 0x01, 0xc1],
            &[0x0f, 0x01, 0xd8],
            &[0x0f, 0x01, 0xd9],
            &[0x0f, 0x01, 0xdc],
            &[0x0f, 0x01, 0xdd],
            &[0x0f, 0x01, 0xf9],
            &[0x0f, 0xa2],
            &[0x0f, 0x31],
            &[0x0f, 0x1c, 0x00],
            &[0xc7, 0xf8, 0, 0, 0, 0],
        ];
        let address = self.address();
        self.code.load(RAX, address);
        let one = self.dice.choose(ALL);
        self.code.bytes(one);
    }
}
