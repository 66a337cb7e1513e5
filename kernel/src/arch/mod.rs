//! The machine, behind one small interface.
//!
//! [`Platform`] is everything that the kernel may ask of a machine. Each architecture implements
//! it once: `x86_64` on the bare machine, `hosted` on a byte array inside an ordinary process.
//! Exactly one implementation is compiled in, as [`Machine`]; the trait is there so that their
//! signatures cannot drift apart, and the kernel proper calls nothing that it does not name.
//!
//! The hosted machine speaks the x86_64 ABI: the register context and the page-table entries
//! are pure data and shared, so that host tests check the very layouts that ship.

mod address;
#[cfg(feature = "wrong")]
pub mod broken_rule;
mod console;
pub mod x86_64;

#[cfg(not(target_os = "none"))]
pub mod hosted;

pub use address::PhysAddr;
pub use console::Console;
pub use x86_64::context::{
    is_canonical, Context, FpuState, MessageRegister, Register, Transfer, FRAME_REGISTERS,
};
pub use x86_64::pte;
pub use x86_64::words::copy_words;

#[cfg(not(target_os = "none"))]
pub use hosted::Machine;
#[cfg(target_os = "none")]
pub use x86_64::machine::Machine;

use crate::cores::{CoreId, Cores};

/// Where a device interrupt comes from, as programmed when its handler was issued
/// (ABI 03, section 7.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line {
    /// Pin of an I/O APIC.
    IoApic {
        ioapic: u8,
        pin: u8,
        level: bool,
        active_low: bool,
    },
    /// Message-signalled: never masked by the kernel.
    Msi,
}

/// Width of an I/O-port access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortWidth {
    Byte,
    Word,
    Long,
}

impl PortWidth {
    /// Size in bytes.
    pub const fn bytes(self) -> u16 {
        match self {
            PortWidth::Byte => 1,
            PortWidth::Word => 2,
            PortWidth::Long => 4,
        }
    }
}

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
    /// Ticks in a microsecond; constant after boot, at least 1.
    fn ticks_per_us(&self) -> u64;

    // ---- address spaces
    //
    // A core that enters the kernel forgets every user translation before it runs user code again, in
    // whatever address space: so only cores that run a thread are ever asked to forget some.

    /// Makes user code run in the address space whose root table is at `root`; with `None`, in
    /// one that maps nothing for users.
    fn use_address_space(&self, root: Option<PhysAddr>);
    /// The entry that every root table holds in slot 511, the kernel's (07, section 7).
    fn kernel_root_entry(&self) -> u64;
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
    /// Number of I/O APICs.
    fn ioapics(&self) -> u8;
    /// Number of pins of an I/O APIC; 0 if there is none of that number.
    fn ioapic_pins(&self, ioapic: u8) -> u8;

    // ---- ports and console

    /// Reads an I/O port.
    fn port_in(&self, port: u16, width: PortWidth) -> u32;
    /// Writes an I/O port.
    fn port_out(&self, port: u16, width: PortWidth, value: u32);
    /// Writes one byte to the kernel console.
    fn put_char(&self, byte: u8);
    /// Stops the machine and reports `status` to whoever watches it (0 is success).
    fn halt(&self, status: u8);

    // ---- the FPU (07, section 4)

    /// Stores the FPU's registers in `state`, also if user code may not use it.
    fn fpu_save(&self, state: &FpuState);
    /// Stores the registers of the FPU of another core in `state`.
    fn fpu_save_of(&self, core: CoreId, state: &FpuState);
    /// Loads the FPU's registers from `state`.
    fn fpu_restore(&self, state: &FpuState);
    /// Lets user code use the FPU, or makes its use an exception.
    fn fpu_set_enabled(&self, enabled: bool);
}
