//! The architecture, behind two interfaces: the ABI, and the machine.
//!
//! [`abi`] is what user level sees of an architecture: registers, kinds of capability, address spaces,
//! invocations. [`Platform`] is everything that the kernel may ask of a machine, with
//! [`abi::Devices`], what an ABI asks besides. Each machine implements them once: `x86_64` on the bare
//! machine, `hosted` on a byte array inside an ordinary process. Exactly one is compiled in, as
//! [`Machine`]; the traits are there so that their signatures cannot drift apart, and the kernel proper
//! calls nothing that they do not name.
//!
//! The hosted machine speaks the ABI that the kernel is built for, so that host tests check the very
//! layouts and invocations that ship.

pub mod aarch64;
mod address;
pub mod bounds;
mod console;
pub mod x86_64;

#[cfg(not(target_os = "none"))]
pub mod hosted;

pub use abi::context::{Context, FpuState, MessageRegister, Register, Transfer, FRAME_REGISTERS};
pub use address::{PhysAddr, Range};
#[cfg(target_os = "none")]
pub use bounds::copy_words;
pub use console::Console;
/// The ABI that the kernel speaks: that of the machine it is built for.
pub use x86_64::abi;
#[cfg(not(target_os = "none"))]
pub use x86_64::machine::words::copy_words;
pub use x86_64::machine::words::opaque;

#[cfg(not(target_os = "none"))]
pub use hosted::Machine;
#[cfg(target_os = "none")]
pub use x86_64::machine::platform::Machine;

use crate::cores::{CoreId, Cores};
use abi::Line;

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
    /// Makes other cores forget every user translation and every cached paging structure.
    fn flush_cores(&self, cores: Cores);

    // ---- memory

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
    // A core that enters the kernel forgets every user translation before it runs user code again, in
    // whatever address space: so only cores that run a thread are ever asked to forget some.

    /// Makes user code run in the address space whose root table is at `root`; with `None`, in
    /// one that maps nothing for users.
    fn use_address_space(&self, root: Option<PhysAddr>);
    /// Forgets the translation of one user page in the address space in use.
    fn flush_page(&self, vaddr: u64);
    /// Forgets every user translation and every cached paging structure of the address space in
    /// use.
    fn flush_address_space(&self);

    // ---- interrupts

    /// Whether an unmasked interrupt waits; asked at preemption points.
    fn interrupt_pending(&self) -> bool;
    /// Programs `line` to raise the CPU vector of `irq` (irq + 0x20), unmasked.
    fn route(&self, line: Line, irq: u8);
    /// Masks or unmasks `line`, if `irq` is what it was last programmed to raise.
    fn set_masked(&self, line: Line, irq: u8, masked: bool);
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
    /// Lets user code use the FPU, with the registers in `to`; those of before are stored in `from`.
    fn fpu_switch(&self, from: Option<&FpuState>, to: &FpuState);
    /// Lets user code use the FPU, or makes its use an exception.
    fn fpu_set_enabled(&self, enabled: bool);
}
