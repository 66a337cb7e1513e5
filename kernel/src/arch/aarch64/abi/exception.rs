//! Processor exceptions, as faults of the thread that caused them (05, sections 2.3 and 2.5).

use super::context::Context;
use crate::object::Fault;

/// A synchronous exception of the current thread that is not a system call. `status` is ESR, of which the upper half
/// means nothing to user level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exception {
    /// An access to data, at `address` (FAR).
    DataAbort {
        address: u64,
        status: u32,
    },
    InstructionAbort {
        status: u32,
    },
    /// Whatever else there is.
    Other {
        status: u32,
    },
}

impl Exception {
    /// The fault that it is of a thread with the registers `context`.
    #[inline(always)]
    pub fn fault(self, context: &Context) -> Fault {
        match self {
            Exception::DataAbort { address, status } => Fault::Vm {
                address,
                instruction: false,
                status,
            },
            // The address is that of the instruction, not FAR, which is another one if it was reached in the middle.
            Exception::InstructionAbort { status } => Fault::Vm {
                address: context.fault_ip(),
                instruction: true,
                status,
            },
            Exception::Other { status } => Fault::UserException {
                number: status,
                code: 0,
            },
        }
    }
}
