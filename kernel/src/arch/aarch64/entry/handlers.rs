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
use crate::arch::aarch64::machine::gic::{Acknowledged, GIC};
use crate::arch::aarch64::machine::platform::{FIRST_FREE, LOOK, REMOTE_CALL};
use crate::arch::aarch64::machine::{cpu, paging};
use crate::arch::abi::context::Context;
use crate::arch::abi::{irq, Exception, Irq};
use crate::arch::align_stack;
use crate::arch::calls;
use crate::arch::requests;
use crate::arch::turn::{entered, KernelGuard};
use crate::cores::{CoreId, CORES};
use crate::event::{self, Next, Trap};
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

/// Ends the boot, on the core that boots: the code that ran until here is not executed any more, and the root task's memory.
#[inline(never)]
pub fn leave_boot(guard: KernelGuard) -> ! {
    paging::unmap_init_text();
    // Another core may be the first inside.
    guard.turn.end(guard.k);
    guard.leave();
    look(CoreId::BOOT)
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

/// Another synchronous exception at user level, with what ESR and FAR say of it; the context is stored. A function for each
/// kind of event: so each has the registers to itself.
pub extern "C" fn act_on_exception(core: CoreId, syndrome: u64, address: u64) -> ! {
    act(
        entered(core),
        || Trap::Exception(exception(syndrome, address)),
        None,
    )
}

/// An interrupt; the context is stored. Without a context, the core idled.
pub extern "C" fn on_interrupt(core: CoreId, context: Option<&Context>) -> ! {
    let core = entered(core);
    let taken = GIC.acknowledge();
    let Some(number) = taken.number() else {
        go_back(context)
    };
    if number == TIMER {
        // Its interrupt is level-triggered: it would come again.
        cpu::set_timer(u64::MAX);
        act_on_timer(core, taken)
    }
    if CORES > 1 && number < FIRST_FREE {
        GIC.end(taken);
        on_core_interrupt(core, number, context)
    }
    match irq::number(core, number.into()) {
        Some(irq) => act_on_interrupt(core, irq, taken),
        None => {
            // None that user level can name; it was never unmasked.
            GIC.set_masked(core, number, true);
            GIC.end(taken);
            go_back(context)
        }
    }
}

/// The interrupt `number`, which has ended, by which another core calls `core`.
#[cold]
#[inline(never)]
fn on_core_interrupt(core: CoreId, number: u32, context: Option<&Context>) -> ! {
    // Whoever asks again for a look asks while this core waits for its turn, at the latest.
    if number == LOOK.into() || requests::serve(core) {
        look(core)
    }
    go_back(context)
}

/// Goes on where an interrupt came of which nothing is left to do.
fn go_back(context: Option<&Context>) -> ! {
    match context {
        // SAFETY: the thread that was interrupted, which nobody touched.
        Some(context) => unsafe { exit(context) },
        None => idle(),
    }
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

/// Handles the interrupt `irq`.
#[inline(never)]
fn act_on_interrupt(core: CoreId, irq: Irq, taken: Acknowledged) -> ! {
    act(core, || Trap::Interrupt { irq }, Some(taken))
}

/// Handles the interrupt of the kernel's timer.
#[inline(never)]
fn act_on_timer(core: CoreId, taken: Acknowledged) -> ! {
    act(core, || Trap::Timer, Some(taken))
}

/// Lets `core`, which executes this, look at its queues.
#[inline(never)]
pub fn look(core: CoreId) -> ! {
    // SAFETY: as in `act`.
    let guard = unsafe { KernelGuard::enter(core) };
    account::update_time(guard.k, guard.k.core());
    to_general(guard.inside, Trap::Look, None)
}

/// Handles an event of `core`, which executes this, and goes on. The end of an interrupt is signalled after it was
/// handled, when the line of a level-triggered one is masked: before, it would come again at once. What the event is, is told
/// twice: a line has it in registers, and in general it is in memory.
#[inline(always)]
fn act(core: CoreId, trap: impl Fn() -> Trap, taken: Option<Acknowledged>) -> ! {
    // SAFETY: the one use in the function that assembly calls and that ends here.
    let guard = unsafe { KernelGuard::enter(core) };
    let here = guard.k.core();
    account::update_time(guard.k, here);
    if let Some(line) = event::straight_trap(guard.k, here, trap()) {
        if let Some(taken) = taken {
            GIC.end(taken);
        }
        let ending = event::conclude(guard.k, here, Some(line));
        calls::end(guard, ending)
    }
    to_general(guard.inside, trap(), taken)
}

/// Handles an event that no line took, and goes on.
#[inline(never)]
fn to_general(inside: Option<lock::Turn>, trap: Trap, taken: Option<Acknowledged>) -> ! {
    align_stack();
    act_in_general(inside, trap, taken)
}

/// The same, wherever it was called from.
#[inline(never)]
fn act_in_general(inside: Option<lock::Turn>, trap: Trap, taken: Option<Acknowledged>) -> ! {
    // SAFETY: the one that the caller gave up.
    let guard = unsafe { KernelGuard::inside(inside) };
    let next = event::trap(guard.k, guard.turn, trap);
    if let Some(taken) = taken {
        GIC.end(taken);
    }
    leave(guard, next)
}

/// Ends an event: continues with the thread, or the idling, that it decided on.
#[inline(always)]
pub fn leave(guard: KernelGuard, next: Next) -> ! {
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
