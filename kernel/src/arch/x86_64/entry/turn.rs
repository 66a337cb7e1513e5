//! Turns in the kernel: the one door to its state, and what the core inside asks of the others.
//!
//! On a kernel for one core the door is always open and nobody is asked.
//!
//! A core outside has user code running, or idles, with interrupts on; or it waits for its turn or
//! is about to go outside, with interrupts off. It does what it is asked for at the interrupt that
//! comes with the request, or while it waits; one that goes outside takes the interrupt there.

use core::arch::global_asm;
use core::cell::UnsafeCell;

use sandglass_lock::Turn;

use crate::arch::x86_64::machine::layout::{KERNEL_BASE, WINDOW_BASE};
use crate::arch::x86_64::machine::platform::Machine;
use crate::arch::x86_64::machine::requests::{wait, LOCK};
use crate::cores::{CoreId, CORES};
use crate::object::sched_context::offset;
use crate::object::tcb::{self, Place};
use crate::time::account;
use crate::Kernel;

struct KernelCell(UnsafeCell<Kernel>);

// SAFETY: see `KernelGuard::enter`.
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
pub struct KernelGuard {
    pub k: &'static mut Kernel,
    turn: Option<Turn>,
}

impl KernelGuard {
    /// Waits for the turn of `core`, which executes this.
    ///
    /// # Safety
    /// Called once in each of the functions that assembly calls, which do not return: nothing borrows
    /// from an earlier event. Interrupts are off until the turn ends.
    #[inline(always)]
    pub unsafe fn enter(core: CoreId) -> KernelGuard {
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
        KernelGuard { k, turn }
    }

    /// Ends the turn.
    #[inline(always)]
    pub fn leave(self) {
        if let Some(turn) = self.turn {
            LOCK.leave(turn);
        }
    }
}
