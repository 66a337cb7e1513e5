//! Faults, as their handlers receive them (ABI 05, section 2).

use sandglass_abi::fault::{self, cap_fault, timeout, unknown_syscall, user_exception, vm_fault};

use crate::error::LookupFailure;
use crate::exit;
use crate::message::Message;

/// A fault. Addresses are the faulting thread's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A system call named a capability that is not there.
    Capability {
        ip: u64,
        /// The capability pointer.
        address: u64,
        in_receive_phase: bool,
        failure: LookupFailure,
    },
    UnknownSyscall {
        ip: u64,
        /// The number as the register held it.
        number: u64,
    },
    Exception {
        ip: u64,
        sp: u64,
        /// Exception vector.
        number: u64,
        /// Error code.
        code: u64,
    },
    /// A budget ran out.
    Timeout {
        /// Badge of the scheduling context.
        badge: u64,
        /// Time consumed since the last report, µs.
        consumed_us: u64,
    },
    Memory {
        ip: u64,
        address: u64,
        /// An instruction fetch, as far as the processor tells.
        instruction: bool,
        /// Page-fault error code.
        status: u64,
    },
}

impl Fault {
    /// Whether this is the end of a thread whose component has ended. (A thread can also go there by itself: then it has
    /// ended itself.)
    pub const fn is_end(&self) -> bool {
        matches!(*self, Self::Memory { ip, .. } if ip == exit::ENDED_AT)
    }

    /// The fault that a message to a fault or timeout handler reports; `None` for a label that
    /// is no fault.
    pub fn decode(message: &Message) -> Option<Self> {
        let word = |i: usize| message.word(i);
        Some(match message.label() {
            fault::CAP_FAULT => Self::Capability {
                ip: word(cap_fault::IP),
                address: word(cap_fault::ADDRESS),
                in_receive_phase: word(cap_fault::IN_RECEIVE_PHASE) != 0,
                failure: LookupFailure::decode(message, cap_fault::LOOKUP_FAILURE_TYPE),
            },
            fault::UNKNOWN_SYSCALL => Self::UnknownSyscall {
                ip: word(unknown_syscall::FAULT_IP),
                number: word(unknown_syscall::SYSCALL),
            },
            fault::USER_EXCEPTION => Self::Exception {
                ip: word(user_exception::FAULT_IP),
                sp: word(user_exception::SP),
                number: word(user_exception::NUMBER),
                code: word(user_exception::CODE),
            },
            fault::TIMEOUT => Self::Timeout {
                badge: word(timeout::BADGE),
                consumed_us: word(timeout::CONSUMED_US),
            },
            fault::VM_FAULT => Self::Memory {
                ip: word(vm_fault::IP),
                address: word(vm_fault::ADDRESS),
                instruction: word(vm_fault::PREFETCH) != 0,
                status: word(vm_fault::STATUS),
            },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_decoded_by_their_label() {
        assert_eq!(
            Fault::decode(&Message::new(fault::TIMEOUT, [7, 250])),
            Some(Fault::Timeout {
                badge: 7,
                consumed_us: 250
            })
        );
        assert_eq!(
            Fault::decode(&Message::new(fault::CAP_FAULT, [0x40_1000, 9, 1, 1])),
            Some(Fault::Capability {
                ip: 0x40_1000,
                address: 9,
                in_receive_phase: true,
                failure: LookupFailure::InvalidRoot,
            })
        );
        assert_eq!(Fault::decode(&Message::new(99, [])), None);
    }
}
