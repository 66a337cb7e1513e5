//! The state of the FPU, and machine code that loads and saves it.

use conformance_kit::arch::order::{RAX, RBP, RBX, RDI, RSI};

use crate::prelude::*;

/// `fxrstor64 [rdi]` and `fxsave64 [rsi]`.
const RESTORE: [u8; 4] = [0x48, 0x0f, 0xae, 0x0f];
const SAVE: [u8; 4] = [0x48, 0x0f, 0xae, 0x06];
/// `mov ecx, 200000; dec ecx; jnz`: 400 µs.
pub const DELAY: [u8; 9] = [0xb9, 0x40, 0x0d, 0x03, 0x00, 0xff, 0xc9, 0x75, 0xfc];

/// An image as FXSAVE makes it, of a state that only this seed gives; to load and to save.
pub struct Image {
    pub loaded: Buffer,
    pub saved: Buffer,
}

impl Image {
    pub fn new(f: &mut Fixture, seed: u64) -> Result<Self, Failure> {
        let (loaded, saved) = (f.buffer()?, f.buffer()?);
        // FCW with another precision, all registers in use; MXCSR with another rounding.
        loaded.write(0, 0xff_0000_027f);
        loaded.write(3, 0x3f80);
        for register in 0..8 {
            loaded.write(4 + 2 * register, (1 << 63) | (seed << 8) | register as u64);
            loaded.write(5 + 2 * register, 0x3fff);
        }
        for word in 20..52 {
            loaded.write(word, (seed << 32) | word as u64);
        }
        Ok(Self { loaded, saved })
    }

    pub fn registers(&self) -> UserContext {
        registers(&[(RDI, self.loaded.address), (RSI, self.saved.address)])
    }

    /// Fails unless what was saved is what was loaded.
    pub fn expect_saved(&self) -> TestResult {
        // The words of the last instruction are of no account, nor is what is reserved.
        ensure_eq!(self.saved.read(0) & 0xff_ffff_ffff, 0xff_0000_027f);
        ensure_eq!(self.saved.read(3) & 0xffff_ffff, 0x3f80);
        for register in 0..8 {
            let low = 4 + 2 * register;
            ensure_eq!(self.saved.read(low), self.loaded.read(low));
            ensure_eq!(self.saved.read(low + 1) & 0xffff, 0x3fff);
        }
        for word in 20..52 {
            ensure_eq!(self.saved.read(word), self.loaded.read(word));
        }
        Ok(())
    }
}

/// Words of an image that are all the thread's, of 64-bit registers.
pub const STATE: core::ops::Range<usize> = 20..52;
/// The word that is saved last.
pub const LAST: usize = 51;

/// Loads the state at RDI.
pub fn restore() -> Vec<u8> {
    RESTORE.to_vec()
}

/// Saves the state at RSI.
pub fn save() -> Vec<u8> {
    SAVE.to_vec()
}

/// INT3.
pub const BREAK: [u8; 1] = [0xcc];

/// Behind what saves the state: back to its beginning, `pause; jmp`.
pub const AGAIN: [u8; 4] = [0xf3, 0x90, 0xeb, 0xf8];

/// Instructions that use the FPU: `fninit; fld1; movaps xmm0, xmm0; fxsave64 [rsi]`.
pub fn uses() -> [Vec<u8>; 4] {
    let uses: [&[u8]; 4] = [&[0xdb, 0xe3], &[0xd9, 0xe8], &[0x0f, 0x28, 0xc0], &SAVE];
    uses.map(<[u8]>::to_vec)
}

/// A server: `fxrstor64 [rbx]`; then for good `mov rdi, rbp; xor esi, esi; syscall; fxsave64 [rax]; fxrstor64 [rbx]`.
pub fn server() -> Vec<u8> {
    vec![
        0x48, 0x0f, 0xae, 0x0b, 0x48, 0x89, 0xef, 0x31, 0xf6, 0x0f, 0x05, 0x48, 0x0f, 0xae, 0x00,
        0x48, 0x0f, 0xae, 0x0b, 0xeb, 0xef,
    ]
}

/// Registers of the server: where its state is loaded from and saved to, and what it receives from.
pub const SERVER: [usize; 3] = [RBX, RAX, RBP];
