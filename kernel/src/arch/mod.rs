//! The architecture, behind two interfaces: the ABI, and the machine.
//!
//! [`abi`] is what user level sees of an architecture: registers, kinds of capability, address spaces,
//! invocations. [`Platform`] is everything that the kernel may ask of a machine, with
//! [`abi::Devices`], what an ABI asks besides. Each machine implements them once: that of an architecture on
//! the bare machine, `hosted` on a byte array inside an ordinary process. Exactly one is compiled in, as
//! [`Machine`]; the traits are there so that their signatures cannot drift apart, and the kernel proper
//! calls nothing that they do not name.
//!
//! Here, and nowhere else, is the choice of an architecture: on the bare machine it is the target's. On a host it is
//! x86_64, or with the feature `aarch64` that one, whatever the host is: the hosted machine speaks its ABI, so that
//! host tests check the very layouts and invocations that ship.

mod address;
#[cfg(target_os = "none")]
pub mod aside;
pub mod bounds;
#[cfg(target_os = "none")]
pub mod calls;
mod console;
#[cfg(any(not(target_os = "none"), target_arch = "aarch64"))]
pub mod device_tree;
pub mod list;
#[cfg(not(feature = "hardware-debug"))]
pub mod no_debug_fault;
#[cfg(not(feature = "hardware-debug"))]
pub mod no_debugging;
#[cfg(target_os = "none")]
mod opaque;
pub mod pool;
pub mod remembered;
#[cfg(target_os = "none")]
pub mod requests;
pub mod spaces;
mod trap;
#[cfg(target_os = "none")]
pub mod turn;

#[cfg(any(feature = "aarch64", all(target_os = "none", target_arch = "aarch64")))]
pub mod aarch64;
#[cfg(not(any(feature = "aarch64", all(target_os = "none", target_arch = "aarch64"))))]
pub mod x86_64;

#[cfg(any(feature = "aarch64", all(target_os = "none", target_arch = "aarch64")))]
use aarch64 as isa;
#[cfg(not(any(feature = "aarch64", all(target_os = "none", target_arch = "aarch64"))))]
use x86_64 as isa;

#[cfg(not(target_os = "none"))]
pub mod hosted;

pub use abi::context::{Context, FpuState, MessageRegister, Register, Transfer, FRAME_REGISTERS};
pub use address::{PhysAddr, Range};
pub use console::Console;
/// The ABI that the kernel speaks.
pub use isa::abi;
/// The way into the kernel.
#[cfg(target_os = "none")]
pub use isa::entry;
pub use trap::Trap;

#[cfg(not(target_os = "none"))]
pub use hosted::aside;
#[cfg(not(target_os = "none"))]
pub use hosted::words::{append_first_bit, copy_words, opaque, opaque_pointer, opaque_word};
#[cfg(not(target_os = "none"))]
pub use hosted::Machine;
#[cfg(target_os = "none")]
pub use isa::machine::platform::Machine;
#[cfg(target_os = "none")]
pub use isa::machine::words::{append_first_bit, copy_words, opaque};
#[cfg(target_os = "none")]
pub use opaque::{align_stack, opaque_pointer, opaque_word};

use crate::cores::CoreId;
use abi::{Irq, Line, Space};

/// What the kernel needs of a machine. Interrupts are off whenever one of these runs. Clock, timer,
/// address space and FPU are those of the core that executes the kernel, unless another is named.
pub trait Platform {
    // ---- cores

    /// Number of cores that run, from 1 to `CORES`; the first one booted.
    fn cores(&self) -> u8;
    /// From now on the kernel executes on `core`.
    fn execute_on(&self, core: CoreId);
    /// Makes another core enter the kernel to look at its queues ([`crate::event::Trap::Look`]), as
    /// soon as it is not there; nothing if it does not run.
    fn interrupt_core(&self, core: CoreId);
    /// Makes another core leave user code. On return the registers of the thread that it ran are in
    /// that thread's context, but for those of the FPU, and the core enters the kernel next. Returns
    /// when it left user code, in ticks: earlier than this was called if it waits for its turn.
    fn stall_core(&self, core: CoreId) -> u64;
    /// Whether another core waits for its turn in the kernel; asked at preemption points, so that it
    /// waits no longer than for this. One that has just come may not be seen yet.
    fn others_wait(&self) -> bool;

    // ---- memory

    /// The zeroes that the kernel has just written to the `bytes` at `start` are what anybody finds there, however he
    /// reads them: also past the caches.
    fn zeroed(&self, start: PhysAddr, bytes: u64);
    /// Address at which physical address 0 appears. Every pointer to kernel objects and to user
    /// memory derives from it; only `mem/` uses it.
    fn base(&self) -> *mut u8;

    // ---- time

    /// The counter, in ticks. Monotonic, also from one core to another.
    fn now(&self) -> u64;
    /// Asks for a timer event at the tick `at` or as soon as possible after it, never before it.
    fn set_deadline(&self, at: u64);
    /// Ticks in [`abi::clock::UNIT_US`] microseconds; constant after boot, one a microsecond at least.
    fn ticks_per_unit(&self) -> u64;

    // ---- address spaces
    //
    // How long translations last, and who makes cores forget them, is the architecture's affair: see its `Devices`.

    /// Makes user code run in the address space `space`; with `None`, in one that maps nothing for users. `last` is what this
    /// returned last on this core, or 0: the physical address of the root to leave with, where the exit loads that. Elsewhere
    /// there is nothing to be kept.
    #[must_use]
    fn use_address_space(&self, last: u64, space: Option<Space>) -> Option<u64>;

    // ---- interrupts

    /// Whether an unmasked interrupt waits; asked at preemption points.
    fn interrupt_pending(&self) -> bool;
    /// Programs `line` to raise `irq`, unmasked.
    fn route(&self, line: Line, irq: Irq);
    /// Masks or unmasks `line`, if `irq` is what it was last programmed to raise.
    fn set_masked(&self, line: Line, irq: Irq, masked: bool);
    /// Masks `line`, by which `irq` has just come to the core that executes the kernel. If it is one that each core has, so it is
    /// that core's.
    fn mask_taken(&self, line: Line, irq: Irq);

    // ---- console

    /// Writes one byte to the kernel console.
    fn put_char(&self, byte: u8);
    /// Stops the machine and reports `status` to whoever watches it (0 is success).
    fn halt(&self, status: u8);

    // ---- the FPU (07, section 4)

    /// Stores the FPU's registers in `state`, also if user code may not use it.
    fn fpu_save(&self, state: &FpuState);
    /// Stores the registers of the FPU of another core in `state`.
    fn fpu_save_of(&self, core: CoreId, state: &FpuState);
    /// Loads the registers in `to`; those of before are stored in `from`. User code may use the FPU.
    fn fpu_switch(&self, from: Option<&FpuState>, to: &FpuState);
    /// Lets user code use the FPU, or makes its use an exception.
    fn fpu_set_enabled(&self, enabled: bool);
}
