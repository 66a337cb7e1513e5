//! Turns in the kernel: the one door to its state, and what the core inside asks of the others.
//!
//! On a kernel for one core the door is always open and nobody is asked.
//!
//! A core outside has user code running, or idles, with interrupts on; or it waits for its turn or
//! is about to go outside, with interrupts off. It does what it is asked for at the interrupt that
//! comes with the request, or while it waits; one that goes outside takes the interrupt there.

use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use sandglass_lock::{Lock, Requests, Ticket, Turn};

use super::core_data::CoreData;
use super::cpu;
use super::layout::{KERNEL_BASE, WINDOW_BASE};
use super::platform::Machine;
use crate::arch::abi::context::FpuState;
use crate::cores::{CoreId, Cores, CORES};
use crate::object::sched_context::offset;
use crate::object::tcb::{self, Place};
use crate::time::account;
use crate::Kernel;

/// Vector of the interrupt that comes with a request (04, section 15).
pub const REMOTE_CALL: u8 = 158;

/// To forget every user translation and every cached paging structure, which the entry does.
pub const FLUSH: Requests = Requests(1 << 0);
/// To store the FPU's registers where [`prepare_fpu_save`] said.
pub const SAVE_FPU: Requests = Requests(1 << 1);
/// To store the registers of the thread that runs, and to enter the kernel next.
pub const STALL: Requests = Requests(1 << 2);

static LOCK: Lock<AtomicU32, CORES> = Lock::new();

/// What [`SAVE_FPU`] is about. Nobody is asked for two things at a time. Relaxed accesses: the
/// mailbox orders them, as it is written after this (Release) and read before it (Acquire).
static FPU_STATE: AtomicPtr<FpuState> = AtomicPtr::new(core::ptr::null_mut());

/// When the core that was asked for [`STALL`] left user code, in ticks. Accesses are relaxed as above.
static LEFT_AT: AtomicU64 = AtomicU64::new(0);

struct KernelCell(UnsafeCell<Kernel>);

// SAFETY: see `Inside::enter`.
unsafe impl Sync for KernelCell {}

static KERNEL: KernelCell = KernelCell(UnsafeCell::new(Kernel::new(Machine::new())));

// Where the oracle for time finds what it needs to know who executes on whose time (docs, "An oracle for
// time"): numbers in the symbol table, of which nothing is loaded. Each address is told where it is defined, since a
// symbol can be set to another one of the same object file only.
global_asm!(
    ".macro sandglass_tell name:req, value:req",
    ".globl sandglass_watch_\\name",
    ".set sandglass_watch_\\name, \\value",
    ".endm",
    "sandglass_tell clock, ({kernel} + {clock})",
    "sandglass_tell window_base, {window_base}",
    "sandglass_tell image_base, {image_base}",
    "sandglass_tell thread_registers, {thread_registers}",
    "sandglass_tell thread_context, {thread_context}",
    "sandglass_tell thread_place, {thread_place}",
    "sandglass_tell waits_for_budget, {waits_for_budget}",
    "sandglass_tell period, {period}",
    "sandglass_tell consumed, {consumed}",
    "sandglass_tell user, {user}",
    "sandglass_tell head_amount, {head_amount}",
    "sandglass_tell head_time, {head_time}",
    "sandglass_tell first, {first}",
    "sandglass_tell queued, {queued}",
    "sandglass_tell max_refills, {max_refills}",
    "sandglass_tell capacity, {capacity}",
    "sandglass_tell sporadic, {sporadic}",
    "sandglass_tell refills, {refills}",
    ".purgem sandglass_tell",
    kernel = sym KERNEL,
    clock = const Kernel::CLOCK,
    window_base = const WINDOW_BASE,
    image_base = const KERNEL_BASE,
    thread_registers = const tcb::offset::REGISTERS,
    thread_context = const tcb::offset::SCHED_CONTEXT,
    thread_place = const tcb::offset::PLACE,
    waits_for_budget = const Place::Release as usize,
    period = const offset::PERIOD,
    consumed = const offset::CONSUMED,
    user = const offset::THREAD,
    head_amount = const offset::HEAD_AMOUNT,
    head_time = const offset::HEAD_TIME,
    first = const offset::FIRST,
    queued = const offset::QUEUED,
    max_refills = const offset::MAX_REFILLS,
    capacity = const offset::CAPACITY,
    sporadic = const offset::SPORADIC,
    refills = const offset::REFILLS,
);

/// The kernel's state, for one event.
#[must_use]
pub struct Inside {
    pub k: &'static mut Kernel,
    turn: Option<Turn>,
}

impl Inside {
    /// Waits for the turn of `core`, which executes this.
    ///
    /// # Safety
    /// Called once in each of the functions that assembly calls, which do not return: nothing borrows
    /// from an earlier event. Interrupts are off until the turn ends.
    #[inline(always)]
    pub unsafe fn enter(core: CoreId) -> Inside {
        let (turn, waited) = if CORES > 1 {
            match LOCK.arrive() {
                Ok(turn) => (Some(turn), None),
                Err(ticket) => wait(core, ticket),
            }
        } else {
            (None, None)
        };
        // SAFETY: the core is alone inside, and the caller's; the static is initialised. What the
        // others did inside is seen: they left with Release, and this core entered with Acquire.
        let k = unsafe { &mut *KERNEL.0.get() };
        k.execute_on(core);
        if let Some(since) = waited {
            account::waited(k, since);
        }
        Inside { k, turn }
    }

    /// Ends the turn.
    #[inline(always)]
    pub fn leave(self) {
        if let Some(turn) = self.turn {
            LOCK.leave(turn);
        }
    }
}

/// Waits for the turn of `core`, which executes this and has just arrived. Also tells when that was, in
/// ticks.
#[cold]
#[inline(never)]
fn wait(core: CoreId, ticket: Ticket) -> (Option<Turn>, Option<u64>) {
    let since = cpu::time_stamp();
    let turn = LOCK.wait(core.index(), ticket, |asked| answer(core, asked, since));
    (Some(turn), Some(since))
}

/// Whether another core waits for its turn; asked by the one inside.
pub fn others_wait() -> bool {
    LOCK.others_wait()
}

/// Does what `core`, which executes this outside of the kernel, is asked for, if anything. Returns
/// whether it must enter the kernel.
#[must_use]
pub fn serve(core: CoreId) -> bool {
    let mut stalled = false;
    LOCK.serve(core.index(), |asked| {
        answer(core, asked, cpu::time_stamp());
        stalled = has(asked, STALL);
    });
    stalled
}

/// What is not done here has been done by the entry code: the registers of the thread that ran are
/// stored, and the root is the kernel's, whose loading forgot the user's translations. The core left user
/// code at the tick `left`.
#[cold]
fn answer(core: CoreId, asked: Requests, left: u64) {
    if has(asked, STALL) {
        LEFT_AT.store(left, Ordering::Relaxed);
    }
    if has(asked, SAVE_FPU) {
        let state = FPU_STATE.load(Ordering::Relaxed);
        // SAFETY: from the reference of the core inside, which waits until this is answered.
        CoreData::of(core).save_fpu(unsafe { &*state });
    }
}

const fn has(asked: Requests, what: Requests) -> bool {
    asked.0 & what.0 != 0
}

/// Asks other cores, which run, for `what`, and returns when they have done it. `interrupt` raises
/// [`REMOTE_CALL`] at a core.
///
/// Called by the core inside.
pub fn ask(cores: Cores, what: Requests, mut interrupt: impl FnMut(CoreId)) {
    LOCK.request(cores.bits(), what, |core| {
        if let Some(core) = CoreId::new(core as u64) {
            interrupt(core);
        }
    });
}

/// When the core that was last asked for [`STALL`], and has answered, left user code, in ticks.
pub fn left_user_code_at() -> u64 {
    LEFT_AT.load(Ordering::Relaxed)
}

/// Says where the core that is asked for [`SAVE_FPU`] next is to store the registers. The caller does
/// not use `state` until that is done.
pub fn prepare_fpu_save(state: &FpuState) {
    FPU_STATE.store(core::ptr::from_ref(state).cast_mut(), Ordering::Relaxed);
}
