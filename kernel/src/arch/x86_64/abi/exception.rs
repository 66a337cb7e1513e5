//! Processor exceptions, as faults of the thread that caused them (05, sections 2.2 to 2.5).

use super::context::Context;
use super::debugging::Event;
use crate::object::Fault;

/// A processor exception of the current thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exception {
    /// A software interrupt that the ABI treats as an unknown system call (05, section 2.2).
    SoftwareInterrupt {
        vector: u8,
    },
    PageFault {
        address: u64,
        code: u32,
    },
    Other {
        number: u32,
        code: u32,
    },
    /// One that the hardware-debug API is about (05, section 2.6).
    Debug(Event),
}

impl Exception {
    /// The fault that it is of a thread with the registers `context`.
    #[inline(always)]
    pub fn fault(self, context: &Context) -> Fault {
        match self {
            Exception::SoftwareInterrupt { vector } => software_interrupt(vector, context),
            Exception::PageFault { address, code } => page_fault(address, code),
            Exception::Other { number, code } => Fault::UserException { number, code },
            Exception::Debug(event) => Fault::Debug(event),
        }
    }
}

/// The unknown system call that `int vector` stands for: its number is the sign-extended 32 bits of
/// (vector << 24) | (EAX & 0xffffff).
fn software_interrupt(vector: u8, context: &Context) -> Fault {
    let eax = context.software_interrupt_code();
    let number = u32::from(vector) << 24 | (eax & 0x00ff_ffff);
    Fault::UnknownSyscall {
        number: number as i32 as u64,
    }
}

/// A page fault with the processor's error `code` (05, section 2.5).
fn page_fault(address: u64, code: u32) -> Fault {
    const INSTRUCTION: u32 = 1 << 4;
    Fault::Vm {
        address,
        instruction: code & INSTRUCTION != 0,
        status: code & 0x1f,
    }
}
