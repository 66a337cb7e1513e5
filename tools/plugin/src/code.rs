//! Instructions that measurements know, of x86_64 and of aarch64: with these bytes, an instruction of one is none of the other.

use crate::watch::Last;

/// That wait for an interrupt: HLT, WFI.
const WAITS: [&[u8]; 2] = [&[0xf4], &[0x7f, 0x20, 0x03, 0xd5]];
/// The latter, with which user code may wait, too.
const WFI: &[u8] = WAITS[1];
/// With which the kernel lets interrupts arrive before it waits for one, if none has by then: MSR DAIFClr. On x86_64 none arrives
/// in between.
const OPENS: &[u8] = &[0xff, 0x42, 0x03, 0xd5];
/// With which a core that waits for another gives way: PAUSE, YIELD.
const PAUSES: [&[u8]; 2] = [&[0xf3, 0x90], &[0x3f, 0x20, 0x03, 0xd5]];

/// The instruction that reads the processor's counter: RDTSC; MRS of CNTVCT_EL0, into any register.
fn reads_counter(bytes: &[u8]) -> bool {
    const RDTSC: [u8; 2] = [0x0f, 0x31];
    const MRS: u32 = 0xd53b_e040;
    const REGISTER: u32 = 0x1f;
    let is_mrs = |word: &[u8; 4]| u32::from_le_bytes(*word) & !REGISTER == MRS;
    bytes == RDTSC || bytes.try_into().is_ok_and(is_mrs)
}

/// That return to user code: IRETQ, SYSRETQ, ERET.
const RETURNS: [&[u8]; 3] = [
    &[0x48, 0xcf],
    &[0x48, 0x0f, 0x07],
    &[0xe0, 0x03, 0x9f, 0xd6],
];

/// What instruction a block ends with that ends with these `bytes`.
pub fn last(bytes: &[u8], is_kernel: bool) -> Last {
    match bytes {
        _ if reads_counter(bytes) => Last::ReadsCounter,
        _ if returns(bytes) => Last::Returns,
        _ if bytes == WFI && !is_kernel => Last::Waits,
        _ if bytes == OPENS => Last::Opens,
        _ => Last::Other,
    }
}

/// Whether it returns to user code.
pub fn returns(bytes: &[u8]) -> bool {
    RETURNS.contains(&bytes)
}

/// Whether the processor waits for an interrupt with it.
pub fn halts(bytes: &[u8]) -> bool {
    WAITS.contains(&bytes)
}

/// Whether a core that waits for another gives way with it.
pub fn pauses(bytes: &[u8]) -> bool {
    PAUSES.contains(&bytes)
}
