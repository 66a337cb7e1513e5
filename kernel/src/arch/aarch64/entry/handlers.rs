//! The way into the kernel and the way out of it.
//!
//! Every entry stores the user's registers in the [`Context`] of the thread that ran, switches to the kernel's stack,
//! and calls a Rust function that ends in [`leave`]; the exit loads the registers from the context of the thread that is
//! to run. Nothing of the kernel's stack survives from one event to the next.

use core::arch::asm;
use core::cell::UnsafeCell;

use sandglass_lock as lock;

use super::code::exit;
use super::fatal;
use crate::arch::aarch64::machine::cpu;
use crate::arch::aarch64::machine::gic::{Acknowledged, GIC};
use crate::arch::aarch64::machine::platform::{LOOK, REMOTE_CALL};
use crate::arch::abi::context::Context;
use crate::arch::abi::{irq, Exception};
use crate::arch::requests;
use crate::arch::turn::KernelGuard;
use crate::cores::{CoreId, CORES};
use crate::event::{self, Next, Trap};
use crate::fast::{self, Line, Outcome, Request};
use crate::mem::Ref;
use crate::object::{SchedContext, Tcb};
use crate::time::account;

/// Bytes of the kernel's stack. The boot needs most; events less than a tenth of it. The debug kernel formats what it
/// prints: its boot needs more.
const STACK_SIZE: usize = if cfg!(feature = "debug") {
    0x1_0000
} else {
    28 * 1024
};

/// A core's stack in the kernel; every entry starts at its end.
#[repr(C, align(4096))]
pub struct KernelStack(UnsafeCell<[u8; STACK_SIZE]>);

// SAFETY: Rust code does not access it as a static; each is the stack of one core.
unsafe impl Sync for KernelStack {}

pub static KERNEL_STACKS: [KernelStack; CORES] =
    [const { KernelStack(UnsafeCell::new([0; STACK_SIZE])) }; CORES];

/// Number of the virtual timer's interrupt.
pub const TIMER: u32 = sandglass_abi::vspace::aarch64::IRQ_TIMER as u32;

/// Lets the interrupts arrive at `core`, which executes this, that the kernel keeps for itself: its timer's, and those by
/// which cores call each other.
pub fn start_interrupts(core: CoreId) {
    cpu::start_timer();
    GIC.set_masked(core, TIMER, false);
    if CORES > 1 {
        GIC.set_masked(core, REMOTE_CALL.into(), false);
        GIC.set_masked(core, LOOK.into(), false);
    }
}

/// The core whose entry code called with `number`. On a kernel for one core it sets no number.
#[inline(always)]
fn entered(number: CoreId) -> CoreId {
    if CORES > 1 {
        number
    } else {
        CoreId::BOOT
    }
}

/// A Call; the context is stored. Capability and message are still in the registers that carry them.
pub extern "C" fn on_call(cptr: u64, info: u64, core: CoreId) -> ! {
    straight::<fast::Call>(Request { cptr, info }, core)
}

/// A ReplyRecv; as for [`on_call`].
pub extern "C" fn on_reply_recv(cptr: u64, info: u64, core: CoreId) -> ! {
    straight::<fast::ReplyRecv>(Request { cptr, info }, core)
}

/// A Send; as for [`on_call`].
pub extern "C" fn on_send(cptr: u64, info: u64, core: CoreId) -> ! {
    straight::<fast::Send>(Request { cptr, info }, core)
}

/// A Recv; as for [`on_call`].
pub extern "C" fn on_recv(cptr: u64, info: u64, core: CoreId) -> ! {
    straight::<fast::Recv>(Request { cptr, info }, core)
}

/// A Wait; as for [`on_call`].
pub extern "C" fn on_wait(cptr: u64, info: u64, core: CoreId) -> ! {
    straight::<fast::Wait>(Request { cptr, info }, core)
}

/// A system call for which there is a line. Each has a function of its own, with the registers to itself.
#[inline(always)]
fn straight<L: Line>(request: Request, core: CoreId) -> ! {
    // SAFETY: called by the entry code of the core, once.
    let guard = unsafe { KernelGuard::enter(entered(core)) };
    let core = guard.k.core();
    account::update_time(guard.k, core);
    match event::straight::<L>(guard.k, core, guard.turn, request) {
        Some((caller, Outcome::Stays)) => {
            let next = event::stay(guard.k, caller);
            leave(guard, next)
        }
        Some((_, Outcome::HandsOver(next))) => {
            let next = event::hand_over(guard.k, next);
            leave(guard, next)
        }
        Some((_, Outcome::Switches(next, own))) => hand_over_to(guard.inside, next, own),
        None => in_general(guard.inside),
    }
}

/// Ends an event after which `next` runs on `own`. Once for all lines.
#[inline(never)]
fn hand_over_to(inside: Option<lock::Turn>, next: Ref<Tcb>, own: Ref<SchedContext>) -> ! {
    // SAFETY: the one that the caller gave up.
    let guard = unsafe { KernelGuard::inside(inside) };
    let next = event::hand_over_to(guard.k, next, own);
    leave(guard, next)
}

/// Another system call; the context is stored.
pub extern "C" fn on_system_call(cptr: u64, info: u64, core: CoreId) -> ! {
    // SAFETY: called by the entry code of the core, once.
    let guard = unsafe { KernelGuard::enter(entered(core)) };
    account::update_time(guard.k, guard.k.core());
    in_general(guard.inside)
}

/// A system call for which there is no line, or none that can take it.
#[inline(never)]
fn in_general(inside: Option<lock::Turn>) -> ! {
    // SAFETY: the one that the caller gave up.
    let guard = unsafe { KernelGuard::inside(inside) };
    let next = event::in_general(guard.k, guard.turn);
    leave(guard, next)
}

/// Instead of a syndrome, whose upper half is 0: it is an interrupt.
pub const INTERRUPT: u64 = u64::MAX;
/// Likewise: the core has just started, and looks for something to do.
const START: u64 = u64::MAX - 1;

/// Another synchronous exception at user level, with what ESR and FAR say of it, or an [`INTERRUPT`]; the context is stored.
/// Without a context, the core idled, or starts. One function for all: so what they come to is there once, and takes the
/// event from registers.
pub extern "C" fn on_trap(
    core: CoreId,
    context: Option<&Context>,
    syndrome: u64,
    address: u64,
) -> ! {
    let core = entered(core);
    let event = match syndrome {
        INTERRUPT => interrupt(core),
        START => Some((Trap::Look, None)),
        _ => Some((Trap::Exception(exception(syndrome, address)), None)),
    };
    match (event, context) {
        (Some((trap, taken)), _) => act(core, trap, taken),
        // SAFETY: the thread that was interrupted, which nobody touched.
        (None, Some(context)) => unsafe { exit(context) },
        (None, None) => idle(),
    }
}

/// Lets a core that has just started, which executes this, look for something to do.
pub fn start(core: CoreId) -> ! {
    on_trap(core, None, START, 0)
}

/// What ESR and FAR say.
#[inline(always)]
fn exception(syndrome: u64, address: u64) -> Exception {
    const INSTRUCTION_ABORT: u64 = 0x20;
    const DATA_ABORT: u64 = 0x24;
    let status = syndrome as u32;
    match syndrome >> 26 & 0x3f {
        DATA_ABORT => Exception::DataAbort { address, status },
        INSTRUCTION_ABORT => Exception::InstructionAbort { status },
        _ => Exception::Other { status },
    }
}

/// The event of an interrupt at `core`, and what is to be ended when it has been handled; `None` if there is nothing to
/// do, any more.
#[inline(always)]
fn interrupt(core: CoreId) -> Option<(Trap, Option<Acknowledged>)> {
    let taken = GIC.acknowledge();
    let number = taken.number()?;
    if number == TIMER {
        // Its interrupt is level-triggered: it would come again.
        cpu::set_timer(u64::MAX);
        return Some((Trap::Timer, Some(taken)));
    }
    if is(number, REMOTE_CALL) {
        GIC.end(taken);
        return requests::serve(core).then_some((Trap::Look, None));
    }
    if is(number, LOOK) {
        // Whoever asks again asks while this core waits for its turn, at the latest.
        GIC.end(taken);
        return Some((Trap::Look, None));
    }
    match irq::number(core, number.into()) {
        Some(irq) => Some((Trap::Interrupt { irq }, Some(taken))),
        None => {
            // None that user level can name; it was never unmasked.
            GIC.set_masked(core, number, true);
            GIC.end(taken);
            None
        }
    }
}

/// Whether `number` is one by which cores interrupt each other.
const fn is(number: u32, of_cores: u8) -> bool {
    CORES > 1 && number == of_cores as u32
}

/// An exception inside the kernel.
pub extern "C" fn on_kernel_exception() -> ! {
    fatal::exception(cpu::syndrome(), cpu::exception_link(), cpu::fault_address())
}

/// An exception that must not be: a fast interrupt, a system error in the kernel, one of code of 32 bits, or with a stack
/// pointer that the kernel does not use. `vector` is which of the table.
pub extern "C" fn on_unexpected(_core: CoreId, vector: u64) -> ! {
    fatal::unexpected(vector, cpu::syndrome(), cpu::exception_link())
}

/// Handles an event of `core`, which executes this, and goes on. The end of an interrupt is signalled after it was
/// handled, when the line of a level-triggered one is masked: before, it would come again at once.
#[inline(always)]
fn act(core: CoreId, trap: Trap, taken: Option<Acknowledged>) -> ! {
    // SAFETY: the one use in the function that assembly calls and that ends here.
    let guard = unsafe { KernelGuard::enter(core) };
    let next = event::trap(guard.k, guard.turn, trap);
    if let Some(taken) = taken {
        GIC.end(taken);
    }
    leave(guard, next)
}

/// Ends an event: continues with the thread, or the idling, that it decided on.
#[inline(always)]
fn leave(guard: KernelGuard, next: Next) -> ! {
    match next {
        Next::Thread(thread) => {
            let context: *const Context = thread.at(guard.k).context();
            guard.leave();
            // SAFETY: the context is that of the thread that the kernel knows to run here, which nobody touches or
            // removes before this core was stalled.
            unsafe { exit(context) }
        }
        Next::Idle => {
            guard.leave();
            idle()
        }
    }
}

/// Waits for an interrupt, on the kernel's stack, of which nothing is kept.
pub fn idle() -> ! {
    // SAFETY: an interrupt does not come back here. DSB: what this core has stored is seen by others while it waits.
    unsafe {
        asm!(
            "dsb sy",
            "msr daifclr, #2",
            "2: wfi",
            "b 2b",
            options(noreturn, nostack)
        );
    }
}
