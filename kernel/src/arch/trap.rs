//! How the processor enters the kernel, other than by a system call.

use super::abi::{Exception, Irq};

/// An entry that is not by the system-call instruction. Its tag is its own: one that it shares with that
/// of the exception takes every interrupt some instructions to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Trap {
    /// A processor exception of the current thread.
    Exception(Exception),
    /// A device interrupt.
    Interrupt { irq: Irq },
    /// The timer.
    Timer,
    /// Another core asks this one to look at its queues (04, section 15).
    Look,
}
