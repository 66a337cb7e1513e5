//! Starts the other cores, by firmware (PSCI).
//!
//! The core that boots has firmware start one after the other, until there are as many as the kernel is built for. Those that
//! run already were started by the reference's loader (06, section 7), and wait in the entry code until they are released. Each
//! waits for its turn in the kernel, which comes when the boot has ended. In its first turn it brings itself into the
//! kernel's state, and looks for something to run.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

use super::{code, handlers};
use crate::arch::aarch64::machine::firmware::{self, Answer};
use crate::arch::aarch64::machine::gic::GIC;
use crate::arch::aarch64::machine::layout::physical;
use crate::arch::aarch64::machine::platform::Machine;
use crate::arch::aarch64::machine::{cache, cpu, paging, tlb};
use crate::arch::abi::devices::Maintenance;
use crate::arch::device_tree::board::{Board, Processor};
use crate::arch::spaces;
use crate::arch::turn::KernelGuard;
use crate::arch::Platform;
use crate::boot::Refusal;
use crate::cores::CoreId;

/// The number of the core that has begun last. Release and Acquire: whoever begins sees what the core that boots has done, and the other
/// way round.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// The affinity of the core that may begin of those that wait in the entry code, and its number. They read it past the
/// caches, and it is not among the zeroes that the core that boots clears meanwhile.
#[repr(C, align(64))]
pub struct Released {
    affinity: AtomicU64,
    number: AtomicU64,
}

/// No core's: a reserved bit of MPIDR_EL1 is set.
const NOBODY: u64 = u64::MAX;
#[unsafe(link_section = ".data")]
pub static RELEASED: Released = Released {
    affinity: AtomicU64::new(NOBODY),
    number: AtomicU64::new(0),
};

/// Releases the core of this `affinity`, as number `number`.
fn release(affinity: u64, number: u64) {
    let there = || {
        let paddr = physical(&raw const RELEASED);
        cache::maintain(Maintenance::Clean, paddr, size_of::<Released>() as u64);
    };
    RELEASED.number.store(number, Ordering::Relaxed);
    // The number is in memory before the affinity.
    there();
    RELEASED.affinity.store(affinity, Ordering::Relaxed);
    there();
    // SAFETY: an event for cores that wait for one.
    unsafe { asm!("sev", options(nostack, preserves_flags)) }
}

/// Time after which a core that firmware has started and that has not begun is taken to have stopped, in units of 1 ms.
/// It begins at once, but an emulator on a busy host may not let it for long.
const PATIENCE_MS: u64 = 10_000;

unsafe extern "C" {
    static sandglass_core_start: u8;
}

/// Starts other cores of the board, as many as the kernel is built for. With `is_by_loader`, those that run already wait in
/// the entry code.
///
/// # Errors
/// One that firmware has started does not begin.
pub fn start(machine: &Machine, board: &Board, is_by_loader: bool) -> Result<(), Refusal> {
    let own = cpu::affinity();
    let entry = physical(&raw const sandglass_core_start);
    let is_other = |processor: &&Processor| processor.by_psci && processor.affinity != own;
    let mut others = board.cores.iter().filter(is_other);
    let mut cores = CoreId::all().skip(1);
    let mut next = cores.next();
    while let (Some(core), Some(other)) = (next, others.next()) {
        let number = core.index() as u64;
        // SAFETY: the entry code of further cores, which takes the number.
        match unsafe { firmware::start_core(other.affinity, entry, number) } {
            Answer::Starts => {}
            Answer::Runs if is_by_loader => release(other.affinity, number),
            Answer::Runs | Answer::Refuses => continue,
        }
        if !has_begun(machine, number) {
            return Err(Refusal::Machine(
                "a core that firmware or the loader has started does not begin",
            ));
        }
        machine.add_core();
        next = cores.next();
    }
    Ok(())
}

/// Waits until core `number` has begun. Whether it has.
fn has_begun(machine: &Machine, number: u64) -> bool {
    let patience = PATIENCE_MS.wrapping_mul(machine.ticks_per_unit());
    let end = machine.now().wrapping_add(patience);
    while machine.now() < end {
        if BEGUN.load(Ordering::Acquire) == number {
            return true;
        }
        cpu::pause();
    }
    false
}

/// Brings `core`, which executes this, into the kernel's state, and leaves the tables that it started with.
pub fn init(core: CoreId) {
    cpu::init(code::identity(core));
    // SAFETY: the entry code; and tables that map nothing, where nothing is executed or stored any more.
    unsafe {
        cpu::set_vectors(code::vectors());
        cpu::set_user_root(paging::empty_root());
    }
    // The registers count before the translations by the former tables are forgotten.
    cpu::synchronise();
    tlb::forget_all();
}

/// Called by the entry code of further cores, on the kernel's stack of `core`, which executes it, with everything masked.
pub extern "C" fn begin(core: CoreId) -> ! {
    init(core);
    if GIC.init_core(core).is_err() {
        // Nobody waits for it for long.
        cpu::stop();
    }
    handlers::start_interrupts(core);
    BEGUN.store(core.index() as u64, Ordering::Release);
    // SAFETY: called by assembly, once on each core; nothing is borrowed when the turn ends.
    let guard = unsafe { KernelGuard::enter(core) };
    spaces::leave(guard.k);
    guard.leave();
    // Others may have left threads here already, and could not reach this core.
    handlers::look(core)
}
