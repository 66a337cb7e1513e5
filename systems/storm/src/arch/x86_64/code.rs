//! Machine code in the making.

/// IRET, which is never written: a 32-bit one, of a 64-bit program, makes QEMU
/// 7.2 enter virtual-8086 mode if the flags that it pops say so. Processors ignore that flag there.
/// What comes next arrives in the kernel with a code segment that looks like the kernel's.
const IRET: u8 = 0xcf;
const NOP: u8 = 0x90;
/// What stands behind code in its last word: INT3.
pub const PADDING: u8 = 0xcc;
/// Bytes by which code at the edge of user memory may be cut off, at most.
pub const MOST_CUT: usize = 2;

/// At most `MOST` bytes of machine code; what does not fit is dropped.
pub struct Code<const MOST: usize> {
    bytes: [u8; MOST],
    length: usize,
}

impl<const MOST: usize> Code<MOST> {
    pub const fn new() -> Self {
        Self {
            bytes: [0; MOST],
            length: 0,
        }
    }

    /// These bytes; those that could be executed as a 32-bit IRET are no-operations instead.
    pub fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.verbatim(&[without_iret(byte)]);
        }
    }

    /// These bytes as they are.
    pub fn verbatim(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if let Some(next) = self.bytes.get_mut(self.length) {
                *next = byte;
                self.length += 1;
            }
        }
    }

    pub fn word16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn word32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    /// `mov register, value`, in the shortest way; `register` is 0 for RAX to 15 for R15.
    pub fn load(&mut self, register: u8, value: u64) {
        self.load_verbatim(register, word_without_iret(value));
    }

    /// As [`Self::load`], of a value that must not change.
    pub fn load_verbatim(&mut self, register: u8, value: u64) {
        let (extension, opcode) = (register >> 3 & 1, 0xb8 | register & 7);
        match u32::try_from(value) {
            Ok(value) => {
                self.verbatim(&[0x40 | extension, opcode]);
                self.verbatim(&value.to_le_bytes());
            }
            Err(_) => {
                self.verbatim(&[0x48 | extension, opcode]);
                self.verbatim(&value.to_le_bytes());
            }
        }
    }

    pub const fn len(&self) -> usize {
        self.length
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A word in whose place no such IRET can be executed, should the word be.
pub fn word_without_iret(word: u64) -> u64 {
    u64::from_le_bytes(word.to_le_bytes().map(without_iret))
}

const fn without_iret(byte: u8) -> u8 {
    match byte {
        IRET => NOP,
        byte => byte,
    }
}

/// So many bytes of instructions that do nothing.
pub fn nops(bytes: usize) -> impl Iterator<Item = u8> {
    core::iter::repeat_n(NOP, bytes)
}
