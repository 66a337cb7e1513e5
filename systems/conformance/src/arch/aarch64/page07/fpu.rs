//! The state of the FPU, and machine code that loads and saves it.

use conformance_kit::arch::order::{RAX, RBP, RBX, RDI, RSI};
use conformance_kit::arch::{code, USE_FPU};

use crate::prelude::*;

/// All registers of a state that only this seed gives, to load and to save: V0 to V31, FPCR, FPSR.
pub struct Image {
    pub loaded: Buffer,
    pub saved: Buffer,
}

/// Words of an image that are all the thread's, of 64-bit registers.
pub const STATE: core::ops::Range<usize> = 0..64;
/// Words of the control and the status register. The latter is saved last.
const FPCR: usize = 64;
pub const LAST: usize = 65;
/// Another rounding, flushing, and default NaNs; and all flags of the status.
const CONTROL: u64 = 0x03c0_0000;
const STATUS: u64 = 0x0800_009f;

impl Image {
    pub fn new(f: &mut Fixture, seed: u64) -> Result<Self, Failure> {
        let (loaded, saved) = (f.buffer()?, f.buffer()?);
        for word in STATE {
            loaded.write(word, (seed << 32) | word as u64);
        }
        loaded.write(FPCR, CONTROL);
        loaded.write(LAST, STATUS);
        Ok(Self { loaded, saved })
    }

    pub fn registers(&self) -> UserContext {
        registers(&[(RDI, self.loaded.address), (RSI, self.saved.address)])
    }

    /// Fails unless what was saved is what was loaded.
    pub fn expect_saved(&self) -> TestResult {
        for word in 0..=LAST {
            ensure_eq!(
                (word, self.saved.read(word)),
                (word, self.loaded.read(word))
            );
        }
        Ok(())
    }
}

/// LDP or STP of all pairs of V registers, with this register as the base.
fn pairs(opcode: u32, base: u32) -> impl Iterator<Item = u32> {
    (0..16).map(move |pair| {
        let (first, second) = (2 * pair, 2 * pair + 1);
        opcode | (2 * pair) << 15 | second << 10 | base << 5 | first
    })
}

const LDP: u32 = 0xad40_0000;
const STP: u32 = 0xad00_0000;
/// LDR and STR of X11 at 512 and 520 bytes behind the base.
const LDR: [u32; 2] = [0xf941_000b, 0xf941_040b];
const STR: [u32; 2] = [0xf901_000b, 0xf901_040b];
const MSR_FPCR: u32 = 0xd51b_440b;
const MSR_FPSR: u32 = 0xd51b_442b;
const MRS_FPCR: u32 = 0xd53b_440b;
const MRS_FPSR: u32 = 0xd53b_442b;
/// Instructions that save a state, and that load one.
const INSTRUCTIONS: u32 = 20;

fn restore_from(base: u32) -> Vec<u32> {
    let at = LDR.map(|load| load | base << 5);
    let control = [at[0], MSR_FPCR, at[1], MSR_FPSR];
    pairs(LDP, base).chain(control).collect()
}

fn save_to(base: u32) -> Vec<u32> {
    let at = STR.map(|store| store | base << 5);
    let control = [MRS_FPCR, at[0], MRS_FPSR, at[1]];
    pairs(STP, base).chain(control).collect()
}

/// A jump over so many instructions backwards.
const fn back(instructions: u32) -> u32 {
    0x1400_0000 | (0x0400_0000 - instructions)
}

/// Loads the state at X0.
pub fn restore() -> Vec<u8> {
    code(&restore_from(0))
}

/// Saves the state at X1.
pub fn save() -> Vec<u8> {
    code(&save_to(1))
}

/// BRK #5.
pub const BREAK: [u8; 4] = [0xa0, 0x00, 0x20, 0xd4];

/// `mov x12, #200000; sub x12, x12, #1; cbnz` to the one before: 400 µs.
pub const DELAY: [u8; 16] = [
    0x0c, 0xa8, 0x81, 0xd2, 0x6c, 0x00, 0xa0, 0xf2, 0x8c, 0x05, 0x00, 0xd1, 0xec, 0xff, 0xff, 0xb5,
];

/// Behind what saves the state: back to its beginning, `yield; b`.
pub const AGAIN: [u8; 8] = {
    let [a, b, c, d] = back(INSTRUCTIONS + 1).to_le_bytes();
    [0x3f, 0x20, 0x03, 0xd5, a, b, c, d]
};

/// Instructions that use the FPU: of both kinds of registers, and of the control register.
pub fn uses() -> [Vec<u8>; 4] {
    let store = code(&[STP | 1 << 10]);
    [
        USE_FPU.to_vec(),
        store,
        code(&[MRS_FPCR]),
        code(&[MSR_FPSR]),
    ]
}

/// A server: loads from X10; then for good receives from X12 with an empty answer, saves to X9, and loads from X10.
pub fn server() -> Vec<u8> {
    const MOV_X0_X12: u32 = 0xaa0c_03e0;
    const MOV_X1_0: u32 = 0xd280_0001;
    const SVC: u32 = 0xd400_0001;
    let receive = [MOV_X0_X12, MOV_X1_0, SVC];
    let again = [back(3 + 2 * INSTRUCTIONS)];
    let parts = [
        &restore_from(10)[..],
        &receive,
        &save_to(9),
        &restore_from(10),
        &again,
    ];
    code(&parts.concat())
}

/// Registers of the server: where its state is loaded from and saved to, and what it receives from.
pub const SERVER: [usize; 3] = [RBX, RAX, RBP];
