//! Machine code in the making: instructions of four bytes.

/// What stands behind code in its last word: with others of its kind, an instruction that there will never be.
pub const PADDING: u8 = 0;
/// Bytes by which code at the edge of user memory may be cut off, at most: none, since no instruction crosses the edge.
pub const MOST_CUT: usize = 0;

const NOP: u32 = 0xd503_201f;
const INSTRUCTION_BYTES: usize = 4;

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

    /// An instruction.
    pub fn push(&mut self, instruction: u32) {
        let end = self.length + INSTRUCTION_BYTES;
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(&instruction.to_le_bytes());
            self.length = end;
        }
    }

    /// Several.
    pub fn extend(&mut self, instructions: &[u32]) {
        instructions.iter().for_each(|&it| self.push(it));
    }

    /// `value` into register `register`, 0 for x0 to 30 for x30: MOVZ or MOVN, then MOVK as far as needed.
    pub fn load(&mut self, register: u32, value: u64) {
        const MOVZ: u32 = 0xd280_0000;
        const MOVN: u32 = 0x9280_0000;
        const MOVK: u32 = 0xf280_0000;
        let part = |value: u64, i: u32| (value >> (16 * i)) as u16;
        let count = |it: u16| (0..4).filter(|&i| part(value, i) == it).count();
        let inverted = count(u16::MAX) > count(0);
        let rest = if inverted { u16::MAX } else { 0 };
        let mut is_first = true;
        for i in 0..4 {
            let bits = part(value, i);
            if bits == rest && !(i == 3 && is_first) {
                continue;
            }
            let (opcode, bits) = match (is_first, inverted) {
                (true, false) => (MOVZ, bits),
                (true, true) => (MOVN, !bits),
                (false, _) => (MOVK, bits),
            };
            self.push(opcode | i << 21 | u32::from(bits) << 5 | register);
            is_first = false;
        }
    }

    pub const fn len(&self) -> usize {
        self.length
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// So many bytes of instructions that do nothing; whole ones.
pub fn nops(bytes: usize) -> impl Iterator<Item = u8> {
    core::iter::repeat_n(NOP.to_le_bytes(), bytes / INSTRUCTION_BYTES).flatten()
}

/// This instruction, if it is not the one by which a debugger's host is asked: the machine is run without that for user
/// level, but should it ever be run otherwise, the host is none of the storm's business.
pub fn without_the_host(instruction: u32) -> u32 {
    const HLT_F000: u32 = 0xd45e_0000;
    const UDF: u32 = 0;
    match instruction {
        HLT_F000 => UDF,
        other => other,
    }
}
