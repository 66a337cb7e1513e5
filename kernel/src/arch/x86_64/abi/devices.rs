//! What the ABI of x86_64 lets users do to devices through the kernel, and what it needs of a machine
//! for that.

use crate::arch::PhysAddr;
use crate::cores::Cores;

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

/// What this architecture needs of a machine besides [`crate::arch::Platform`].
pub trait Devices {
    // ---- translations
    //
    // Of several cores, one that enters the kernel forgets every user translation before it runs user code again, in
    // whatever address space: so only cores that run a thread are ever asked to forget some. The only core of a machine may
    // keep them, unless it is asked.

    /// Forgets the translation of one user page in the address space in use.
    fn flush_page(&self, vaddr: u64);
    /// Forgets every user translation and every cached paging structure of the address space in
    /// use.
    fn flush_address_space(&self);
    /// Makes other cores forget every user translation and every cached paging structure.
    fn flush_cores(&self, cores: Cores);

    /// A root table is made at `root`, maybe where there was another before: no core takes its user code for that one's.
    fn forget_root(&self, root: PhysAddr);

    // ---- devices

    /// The entry that every root table holds in slot 511, the kernel's (07, section 7).
    fn kernel_root_entry(&self) -> u64;
    /// Whether the processor watches eight bytes at once (09, section 3).
    fn watches_eight_bytes(&self) -> bool;
    /// Number of I/O APICs.
    fn ioapics(&self) -> u8;
    /// Number of pins of an I/O APIC; 0 if there is none of that number.
    fn ioapic_pins(&self, ioapic: u8) -> u8;
    /// Reads an I/O port.
    fn port_in(&self, port: u16, width: PortWidth) -> u32;
    /// Writes an I/O port.
    fn port_out(&self, port: u16, width: PortWidth, value: u32);
}
