//! The way into the kernel and the way out of it.
//!
//! Every entry stores the user's registers in the context of the thread that ran, switches to
//! the kernel's address space and stack, and calls a Rust function that ends in [`leave`]; the
//! exit loads the registers from the context of the thread that is to run. Nothing of the kernel's
//! stack survives from one event to the next.
//!
//! System calls (01, section 4.1) leave RSP, RCX and R11 of the context alone, and return by
//! SYSRET; interrupts and exceptions store and restore everything, and return by IRET. Both
//! happen in the trampoline, which is mapped at the same addresses in both address spaces.
//!
//! IRET and SYSRET fail inside the kernel when the instruction pointer is not canonical. None is:
//! what users write is checked (`context`), and no instruction can lie in the last page below
//! the non-canonical addresses, because nothing can be mapped there (03, section 8.3).

use core::cell::UnsafeCell;

use sandglass_lock as lock;

use super::code::exit;
#[cfg(feature = "hardware-debug")]
use super::debugging;
use super::descriptors::FIRST_SOFTWARE;
use super::fatal;
use crate::arch::abi::context::Register;
use crate::arch::abi::{Exception, Irq};
use crate::arch::align_stack;
use crate::arch::calls;
use crate::arch::requests;
use crate::arch::turn::{entered, KernelGuard};
use crate::arch::x86_64::machine::apic::LOCAL_APIC;
use crate::arch::x86_64::machine::vectors::*;
use crate::arch::x86_64::machine::{cpu, machine_check, paging};
use crate::cores::{CoreId, CORES};
use crate::event::{self, Next, Trap};
use crate::object::Tcb;
use crate::time::account;

/// Bytes of the kernel's stack. The boot needs most; events less than a tenth of it. The debug
/// kernel formats what it prints: its boot needs more.
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

/// Offset of the stack pointer at the start of a function: 8 bytes off a multiple of 16, as after
/// a call.
pub const STACK_START: usize = STACK_SIZE - 8;

#[cfg(feature = "hardware-debug")]
const DEBUG: u64 = 1;
#[cfg(feature = "hardware-debug")]
const BREAKPOINT: u64 = 3;
const PAGE_FAULT: u64 = 14;
/// Virtual-8086 mode: its segments' values look like the kernel's.
const FLAG_VIRTUAL_8086: u64 = 1 << 17;
/// Whether `vector` is one by which cores interrupt each other.
const fn is(vector: u64, of_cores: u8) -> bool {
    CORES > 1 && vector == of_cores as u64
}

/// Ends the interrupt `vector`, of those of exceptions and of software interrupts, if a device raised it:
/// one that was told a vector which the kernel has given to nobody. Whether it was so, or the vector is
/// that of the spurious interrupt. Nobody has anything to do with it. Whoever programs devices can do
/// that, and no more by it.
fn end_stray(vector: u64) -> bool {
    let stray = LOCAL_APIC.is_in_service(vector as u8);
    if stray {
        LOCAL_APIC.end_interrupt();
    }
    stray || vector == SPURIOUS
}

/// Whether the machine says by `vector` that something is wrong with it.
fn is_of_machine(vector: u64) -> bool {
    vector == NON_MASKABLE || vector == MACHINE_CHECK && machine_check::is_one()
}

/// A vector of which the local APIC or the processor says who has raised it: one that the thread can raise and a device, too, if it was told one which the kernel has given to nobody; the
/// context is stored. It never comes back to [`on_vector`], which so has no registers to save.
#[cold]
#[inline(never)]
fn on_doubtful_vector(core: CoreId, thread: &Tcb, vector: u64, code: u64) -> ! {
    if is_of_machine(vector) {
        fatal::of_machine(vector, core, true, thread.context().fault_ip());
    }
    if end_stray(vector) {
        // SAFETY: the thread that was interrupted, which nobody touched.
        unsafe { exit(core, thread) }
    }
    let exception = if vector < FIRST_INTERRUPT {
        Exception::Other {
            number: vector as u32,
            code: code as u32,
        }
    } else {
        back_to_software_interrupt(thread);
        Exception::SoftwareInterrupt {
            vector: vector as u8,
        }
    };
    act(core, Trap::Exception(exception))
}

/// An interrupt or exception at user level, while `thread` ran; its context is stored. Nobody else is at that before this core
/// waits for its turn, or serves another one.
pub extern "C" fn on_vector(vector: u64, code: u64, core: CoreId, thread: &Tcb) -> ! {
    let core = entered(core);
    if thread.context().get(Register::Rflags) & FLAG_VIRTUAL_8086 != 0 {
        fatal::virtual_8086(vector, thread.context().fault_ip());
    }
    let trap = match vector {
        PAGE_FAULT => Trap::Exception(Exception::PageFault {
            address: cpu::fault_address(),
            code: cpu::page_fault_code(code as u32),
        }),
        #[cfg(feature = "hardware-debug")]
        DEBUG | BREAKPOINT => debugging::on_exception(core, thread, vector),
        0..FIRST_LEGAL => {
            // In here, so that interrupts need not be told from it.
            if vector == NON_MASKABLE {
                on_doubtful_vector(core, thread, vector, code);
            }
            Trap::Exception(Exception::Other {
                number: vector as u32,
                code: code as u32,
            })
        }
        _ if vector < FIRST_INTERRUPT || vector >= FIRST_SOFTWARE as u64 => {
            on_doubtful_vector(core, thread, vector, code)
        }
        _ if is(vector, REMOTE_CALL) => {
            LOCAL_APIC.end_interrupt();
            if !requests::serve(core) {
                // SAFETY: the thread that was interrupted, which nobody touched.
                unsafe { exit(core, thread) }
            }
            Trap::Look
        }
        _ => interrupt(vector),
    };
    act(core, trap)
}

/// An interrupt or exception inside the kernel, at `ip` with these `flags`: interrupts only while it idles,
/// exceptions never, but those by which the machine says that something is wrong with it.
pub extern "C" fn on_kernel_vector(vector: u64, code: u64, ip: u64, flags: u64, core: CoreId) -> ! {
    let core = entered(core);
    if flags & FLAG_VIRTUAL_8086 != 0 {
        fatal::virtual_8086(vector, ip);
    }
    if !(FIRST_INTERRUPT..FIRST_SOFTWARE as u64).contains(&vector) {
        if is_of_machine(vector) {
            fatal::of_machine(vector, core, false, ip);
        }
        if vector >= FIRST_LEGAL && end_stray(vector) {
            cpu::idle();
        }
        fatal::exception(vector, code, ip);
    }
    let trap = if is(vector, REMOTE_CALL) {
        LOCAL_APIC.end_interrupt();
        if !requests::serve(core) {
            cpu::idle();
        }
        Trap::Look
    } else {
        interrupt(vector)
    };
    act(core, trap)
}

/// The event of a hardware interrupt.
#[inline(always)]
fn interrupt(vector: u64) -> Trap {
    if vector == u64::from(TIMER) {
        Trap::Timer
    } else if is(vector, LOOK) {
        // Whoever asks again asks while this core waits for its turn, at the latest.
        LOCAL_APIC.end_interrupt();
        Trap::Look
    } else {
        Trap::Interrupt {
            irq: vector.wrapping_sub(FIRST_INTERRUPT) as u8,
        }
    }
}

/// The instruction that entered the kernel is the software interrupt of two bytes before the
/// next one (05, section 2.2).
fn back_to_software_interrupt(thread: &Tcb) {
    let context = thread.context();
    context.set_fault_ip(context.fault_ip().wrapping_sub(2));
}

/// Ends the boot, on the core that boots: the code that ran until here is not executed any more, and the root task's memory.
#[inline(never)]
pub fn leave_boot(guard: KernelGuard) -> ! {
    paging::unmap_init_text();
    // Another core may be the first inside.
    guard.turn.end(guard.k);
    guard.leave();
    act(CoreId::BOOT, Trap::Look)
}

/// Handles an event of `core`, which executes this, and goes on. A function for each kind: so each has the registers to
/// itself.
#[inline(always)]
pub fn act(core: CoreId, trap: Trap) -> ! {
    match trap {
        Trap::Exception(exception) => act_on_exception(core, exception),
        Trap::Interrupt { irq } => act_on_interrupt(core, irq),
        Trap::Timer => act_on_timer(core),
        Trap::Look => look(core),
    }
}

#[inline(never)]
fn act_on_exception(core: CoreId, exception: Exception) -> ! {
    act_on(core, || Trap::Exception(exception))
}

#[inline(never)]
fn act_on_interrupt(core: CoreId, irq: Irq) -> ! {
    act_on(core, || Trap::Interrupt { irq })
}

#[inline(never)]
fn act_on_timer(core: CoreId) -> ! {
    act_on(core, || Trap::Timer)
}

/// Lets `core`, which executes this, look at its queues.
#[inline(never)]
fn look(core: CoreId) -> ! {
    // SAFETY: as in `act_on`.
    let guard = unsafe { KernelGuard::enter(core) };
    account::update_time(guard.k, guard.k.core());
    to_general(guard.inside, Trap::Look)
}

/// Handles an event of `core`, which executes this, and goes on. The end of a hardware interrupt is
/// signalled after it was handled, when the line of a level-triggered one is masked: before, it would
/// come again at once. What the event is, is told twice: a line has it in registers, and in general it is in memory.
#[inline(always)]
fn act_on(core: CoreId, trap: impl Fn() -> Trap) -> ! {
    // SAFETY: the one use in the functions that assembly calls and that end here.
    let guard = unsafe { KernelGuard::enter(core) };
    let here = guard.k.core();
    account::update_time(guard.k, here);
    if let Some(line) = event::straight_trap(guard.k, here, trap()) {
        end_interrupt(trap());
        let ending = event::conclude(guard.k, here, Some(line));
        calls::end(guard, ending)
    }
    to_general(guard.inside, trap())
}

/// Handles an event that no line took, and goes on.
#[inline(never)]
fn to_general(inside: Option<lock::Turn>, trap: Trap) -> ! {
    align_stack();
    act_in_general(inside, trap)
}

/// The same, wherever it was called from.
#[inline(never)]
fn act_in_general(inside: Option<lock::Turn>, trap: Trap) -> ! {
    // SAFETY: the one that the caller gave up.
    let guard = unsafe { KernelGuard::inside(inside) };
    let next = event::trap(guard.k, guard.turn, trap);
    end_interrupt(trap);
    leave(guard, next)
}

/// Tells the controller that the interrupt which `trap` is, if it is one, has been handled.
#[inline(always)]
fn end_interrupt(trap: Trap) {
    let has_begun = match trap {
        // Below are only the legacy controllers' vectors: masked, but they can be spurious, and
        // then the local APIC knows nothing of them; or a device was told one.
        Trap::Interrupt { irq } => {
            irq >= FIRST_DEVICE || LOCAL_APIC.is_in_service(irq.wrapping_add(FIRST_INTERRUPT as u8))
        }
        Trap::Timer => true,
        _ => false,
    };
    if has_begun {
        LOCAL_APIC.end_interrupt_at_once();
    }
}

/// Ends an event: continues with the thread, or the idling, that it decided on.
#[inline(always)]
pub fn leave(guard: KernelGuard, next: Next) -> ! {
    match next {
        Next::Thread(thread) => {
            let core = guard.k.core_id();
            let tcb = thread.at(guard.k);
            #[cfg(feature = "hardware-debug")]
            debugging::prepare(core, tcb.context());
            let tcb: *const Tcb = tcb;
            guard.leave();
            // SAFETY: the core executes this; the thread is the one that the kernel knows to run
            // here, which nobody touches or removes before this core was stalled.
            unsafe { exit(core, tcb) }
        }
        Next::Idle => {
            guard.leave();
            cpu::idle()
        }
    }
}
