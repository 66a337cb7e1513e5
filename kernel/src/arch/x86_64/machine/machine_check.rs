//! Machine checks: what the processor says of defects of the machine (Intel's manual, volume 3, chapter
//! "Machine-check architecture"; AMD's volume 2 likewise).

use super::cpu::{
    read_msr, read_numbered_msr, takes_machine_checks, write_msr, write_numbered_msr, Msr,
};
use crate::arch::bounds::turns;

/// Registers of a bank, from its first one: the banks' are four apart.
const CONTROL: u32 = 0x400;
const STATUS: u32 = 0x401;
const ADDRESS: u32 = 0x402;
const APART: u32 = 4;
/// Most banks whose registers are there; newer processors have more elsewhere, besides.
const MOST_BANKS: u32 = 32;

/// Capabilities: there is a register that has all banks report.
const HAS_CONTROL: u64 = 1 << 8;
/// Status of the processor: a machine check was raised, and has not been dealt with.
const IN_PROGRESS: u64 = 1 << 2;
/// Status of a bank: it has an error; the error has an address.
const VALID: u64 = 1 << 63;
const HAS_ADDRESS: u64 = 1 << 58;

/// What a bank of registers says of an error.
pub struct Error {
    pub bank: u32,
    /// As the processor's manual explains it.
    pub status: u64,
}

impl Error {
    /// Where it is, if the bank says so: a physical address, most often.
    pub fn address(&self) -> Option<u64> {
        // SAFETY: the register is there where the status says that it has something.
        (self.status & HAS_ADDRESS != 0).then(|| unsafe { read(self.bank, ADDRESS) })
    }
}

/// Forgets errors of the time before the kernel, and has every bank report those to come.
///
/// # Safety
/// The processor has machine checks, with their registers.
pub unsafe fn init() {
    // SAFETY: the caller's. All ones are what the manuals ask for: each bank takes what it has.
    unsafe {
        if read_msr(Msr::MachineCheckCapabilities) & HAS_CONTROL != 0 {
            write_msr(Msr::MachineCheckControl, u64::MAX);
        }
        write_msr(Msr::MachineCheckStatus, 0);
        for bank in banks() {
            write_numbered_msr(number(bank, CONTROL), u64::MAX);
            write_numbered_msr(number(bank, STATUS), 0);
        }
    }
}

/// Whether exception 18, which is being handled, is a machine check, and not an interrupt of a device that was told this
/// vector.
pub fn is_one() -> bool {
    // SAFETY: the kernel lets only processors raise machine checks that have the registers.
    takes_machine_checks() && unsafe { read_msr(Msr::MachineCheckStatus) } & IN_PROGRESS != 0
}

/// The error of the first bank that has one, while a machine check is being handled.
pub fn first_error() -> Option<Error> {
    banks()
        .map(|bank| Error {
            bank,
            // SAFETY: every bank has the register.
            status: unsafe { read(bank, STATUS) },
        })
        .find(|error| error.status & VALID != 0)
}

/// The number of a bank's register.
const fn number(bank: u32, register: u32) -> u32 {
    register.wrapping_add(bank.wrapping_mul(APART))
}

/// # Safety
/// The processor has the register.
unsafe fn read(bank: u32, register: u32) -> u64 {
    // SAFETY: the caller's.
    unsafe { read_numbered_msr(number(bank, register)) }
}

/// The banks of this processor, which has machine checks.
fn banks() -> impl Iterator<Item = u32> {
    // SAFETY: as above.
    let capabilities = unsafe { read_msr(Msr::MachineCheckCapabilities) };
    turns::<{ MOST_BANKS as u64 }, _>(0..(capabilities as u32 & 0xff).min(MOST_BANKS))
}
