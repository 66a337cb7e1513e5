//! Turns in the kernel: the one door to its state, and what the core inside asks of the others.
//!
//! On a kernel for one core the door is always open and nobody is asked.
//!
//! A core outside has user code running, or idles, with interrupts on; or it waits for its turn or
//! is about to go outside, with interrupts off. It does what it is asked for at the interrupt that
//! comes with the request, or while it waits; one that goes outside takes the interrupt there.

use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::mem::transmute;
use core::ptr::from_ref;

use sandglass_lock as lock;

use super::isa::machine::aside::{call, keep};
use super::isa::machine::layout::{KERNEL_BASE, WINDOW_BASE};
use super::requests::{wait, LOCK};
use super::Machine;
use crate::cores::{CoreId, CORES};
use crate::object::sched_context::offset;
use crate::object::{tcb, Core, Place};
use crate::time::{account, Turn};
use crate::Kernel;

/// What is behind the door: the kernel's state, and the turn of the core that is or was last inside. As
/// the turn is here, its address is known when the kernel is linked, and to pass it on costs nothing.
#[repr(C)]
struct State {
    kernel: Kernel,
    turn: Turn,
}

struct KernelCell(UnsafeCell<State>);

// SAFETY: see `KernelGuard::enter`.
unsafe impl Sync for KernelCell {}

static KERNEL: KernelCell = KernelCell(UnsafeCell::new(State {
    kernel: Kernel::new(Machine::new()),
    turn: Turn::new(),
}));

// Where entry and exit code find the state of the first core, which the others follow.
global_asm!(
    ".globl sandglass_core",
    ".set sandglass_core, {kernel} + {cores}",
    kernel = sym KERNEL,
    cores = const Kernel::CORES,
);

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
    "sandglass_tell end, {end}",
    "sandglass_tell first, {first}",
    "sandglass_tell queued, {queued}",
    "sandglass_tell max_refills, {max_refills}",
    "sandglass_tell sporadic, {sporadic}",
    "sandglass_tell refills, {refills}",
    ".purgem sandglass_tell",
    kernel = sym KERNEL,
    clock = const Kernel::CORES + Core::CLOCK,
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
    end = const offset::END,
    first = const offset::FIRST,
    queued = const offset::QUEUED,
    max_refills = const offset::MAX_REFILLS,
    sporadic = const offset::SPORADIC,
    refills = const offset::REFILLS,
);

/// The core whose entry code called with `number`. On a kernel for one core it sets no number.
#[inline(always)]
pub fn entered(number: CoreId) -> CoreId {
    if CORES > 1 {
        number
    } else {
        CoreId::BOOT
    }
}

/// The kernel's state and the turn of the core that is inside, for one event.
#[must_use]
pub struct KernelGuard {
    pub k: &'static mut Kernel,
    pub turn: &'static Turn,
    /// The turn at the lock, where there are several cores.
    pub inside: Option<lock::Turn>,
}

impl KernelGuard {
    /// Waits for the turn of `core`, which executes this.
    ///
    /// # Safety
    /// Called once in each of the functions that assembly calls, which do not return: nothing borrows
    /// from an earlier event. Interrupts are off until the turn ends.
    #[inline(always)]
    pub unsafe fn enter(core: CoreId) -> KernelGuard {
        let state = KERNEL.0.get();
        let inside = (CORES > 1).then(|| match LOCK.arrive() {
            Ok(inside) => {
                // SAFETY: as below; this borrow ends before.
                let k = unsafe { &(*state).kernel };
                if k.core_id() != core {
                    take_over_aside(k, core);
                }
                inside
            }
            Err(ticket) => enter_late_aside(core, ticket),
        });
        // SAFETY: the core is alone inside, and the caller's. What the others did inside is seen: they left with Release,
        // and this core entered with Acquire.
        unsafe { KernelGuard::inside(inside) }
    }

    /// That of the core that is inside.
    ///
    /// # Safety
    /// As for [`enter`](Self::enter), or what that returned is in use no more, but for the turn at the lock.
    #[inline(always)]
    pub unsafe fn inside(inside: Option<lock::Turn>) -> KernelGuard {
        // SAFETY: the caller's; the static is initialised.
        let State { kernel: k, turn } = unsafe { &mut *KERNEL.0.get() };
        KernelGuard { k, turn, inside }
    }

    /// Ends the turn.
    #[inline(always)]
    pub fn leave(self) {
        if let Some(inside) = self.inside {
            LOCK.leave(inside);
        }
    }
}

keep!("sandglass_aside_enter_late", enter_late);
keep!("sandglass_aside_take_over", take_over);

/// [`enter_late`], so that who enters has to keep no registers for it.
#[inline(always)]
fn enter_late_aside(core: CoreId, ticket: lock::Ticket) -> lock::Turn {
    let core = u64::from(core.number());
    // SAFETY: a ticket and a turn are words of 32 bits; the arguments and the result are the function's.
    unsafe {
        let ticket = u64::from(transmute::<lock::Ticket, u32>(ticket));
        transmute(call!("sandglass_aside_enter_late", core, ticket) as u32)
    }
}

/// [`take_over`], likewise.
#[inline(always)]
fn take_over_aside(k: &Kernel, core: CoreId) {
    let core = u64::from(core.number());
    // SAFETY: the arguments are the function's: a core is its number.
    unsafe { call!("sandglass_aside_take_over", from_ref(k), core) };
}

/// Waits for the turn of `core`, which executes this and has just arrived, and begins it.
#[cold]
#[inline(never)]
extern "C" fn enter_late(core: CoreId, ticket: lock::Ticket) -> lock::Turn {
    let (inside, since) = wait(core, ticket);
    // SAFETY: as for `KernelGuard::enter`; this borrow ends before that of the event.
    let k = unsafe { &(*KERNEL.0.get()).kernel };
    k.execute_on(core);
    account::waited(k, since);
    inside
}

/// Another core was inside before `core`.
#[cold]
#[inline(never)]
extern "C" fn take_over(k: &Kernel, core: CoreId) {
    k.execute_on(core);
}
