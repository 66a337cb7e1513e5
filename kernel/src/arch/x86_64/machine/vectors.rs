//! The vectors by which the processor is interrupted (05, section 7).

/// Vectors by which the machine says that something is wrong with it.
pub const NON_MASKABLE: u64 = 2;
pub const MACHINE_CHECK: u64 = 18;
/// First vector that a local APIC can raise.
pub const FIRST_LEGAL: u64 = 16;
pub const FIRST_INTERRUPT: u64 = 0x20;
/// Vector of the spurious interrupt, and of an instruction that does nothing (05, section 7).
pub const SPURIOUS: u64 = 255;
/// First IRQ of a device behind an I/O APIC or a message-signalled one (03, section 7.2).
pub const FIRST_DEVICE: u8 = 16;
/// Vector of the local APIC timer.
pub const TIMER: u8 = 157;
/// Vector by which another core asks this one to look at its queues (04, section 15).
pub const LOOK: u8 = 159;
/// Vector of the interrupt that comes with a request (04, section 15).
pub const REMOTE_CALL: u8 = 158;
