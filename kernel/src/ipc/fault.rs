//! Faults as messages (ABI page 05).

use sandglass_abi::fault as label;
use sandglass_abi::message::MessageInfo;

use super::endpoint::{self, Manner};
use super::message::{Message, Writer};
use crate::arch::Transfer;
use crate::cap::lookup::LookupFailure;
use crate::mem::Ref;
use crate::object::tcb::{self, State, Tcb, TcbSlot};
use crate::time::{account, schedule};
use crate::Kernel;

/// Why a thread cannot go on by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A system call named a capability that cannot be found or used.
    Cap {
        cptr: u64,
        in_receive_phase: bool,
        failure: LookupFailure,
    },
    UnknownSyscall {
        number: u64,
    },
    UserException {
        number: u32,
        code: u32,
    },
    /// The budget ran out; with the badge of the scheduling context.
    Timeout {
        badge: u64,
    },
    Vm {
        address: u64,
        instruction: bool,
        status: u32,
    },
}

impl Fault {
    pub fn is_timeout(self) -> bool {
        matches!(self, Fault::Timeout { .. })
    }
}

/// `thread` faults: its fault handler is told (05, section 3). Without one it stops.
pub fn raise(k: &Kernel, thread: Ref<Tcb>, fault: Fault) {
    let can_donate = thread.at(k).sched_context().is_some();
    tell_handler(k, thread, TcbSlot::FaultHandler, fault, can_donate);
}

/// The time of `thread` is up: its timeout handler is told (05, section 4). Its context stays
/// with it.
pub fn raise_timeout(k: &Kernel, thread: Ref<Tcb>) {
    let badge = thread
        .at(k)
        .sched_context()
        .map_or(0, |context| context.at(k).badge());
    tell_handler(
        k,
        thread,
        TcbSlot::TimeoutHandler,
        Fault::Timeout { badge },
        false,
    );
}

fn tell_handler(k: &Kernel, thread: Ref<Tcb>, slot: TcbSlot, fault: Fault, can_donate: bool) {
    match tcb::handler(k, thread, slot) {
        Some(handler) => {
            thread.at(k).set_fault(Some(fault));
            let manner = Manner {
                blocking: true,
                is_call: false,
                can_donate,
            };
            endpoint::send(k, thread, handler, manner);
        }
        None => {
            crate::object::debug::unhandled_fault(k, thread, fault);
            thread.at(k).set_state(State::Inactive);
            schedule::stopped(k, thread);
        }
    }
}

/// Builds the message about `fault` of `thread` in the registers and buffer of `receiver`
/// (05, section 2).
pub fn write_message(k: &Kernel, thread: Ref<Tcb>, fault: Fault, receiver: Ref<Tcb>, badge: u64) {
    let mut message = Writer::new(k, receiver);
    let context = thread.at(k).context();
    let label = match fault {
        Fault::Cap {
            cptr,
            in_receive_phase,
            failure,
        } => {
            message.push(context.fault_ip());
            message.push(cptr);
            message.push(u64::from(in_receive_phase));
            push_lookup_failure(&mut message, failure);
            label::CAP_FAULT
        }
        Fault::UnknownSyscall { number } => {
            push_registers(&mut message, context, Transfer::UnknownSyscall);
            message.push(number);
            label::UNKNOWN_SYSCALL
        }
        Fault::UserException { number, code } => {
            push_registers(&mut message, context, Transfer::UserException);
            message.push(u64::from(number));
            message.push(u64::from(code) & ((1 << label::user_exception::CODE_BITS) - 1));
            label::USER_EXCEPTION
        }
        Fault::Timeout { badge } => {
            message.push(badge);
            if let Some(context) = thread.at(k).sched_context() {
                message.push(account::report_consumed(k, context));
            }
            label::TIMEOUT
        }
        Fault::Vm {
            address,
            instruction,
            status,
        } => {
            message.push(context.fault_ip());
            message.push(address);
            message.push(u64::from(instruction));
            message.push(u64::from(status));
            label::VM_FAULT
        }
    };
    message.finish(label, badge);
}

fn push_registers(message: &mut Writer, context: &crate::arch::Context, order: Transfer) {
    for i in 0..order.len() {
        message.push(context.transfer_get(order, i).unwrap_or(0));
    }
}

/// Adds the type of a lookup failure and its details (02, section 4).
pub fn push_lookup_failure(message: &mut Writer, failure: LookupFailure) {
    use sandglass_abi::error::LookupFailureType as Type;
    match failure {
        LookupFailure::InvalidRoot => message.push(Type::InvalidRoot as u64),
        LookupFailure::MissingCapability { bits_left } => {
            message.push(Type::MissingCapability as u64);
            message.push(u64::from(bits_left));
        }
        LookupFailure::DepthMismatch {
            bits_left,
            bits_found,
        } => {
            message.push(Type::DepthMismatch as u64);
            message.push(u64::from(bits_left));
            message.push(u64::from(bits_found));
        }
        LookupFailure::GuardMismatch {
            bits_left,
            guard,
            bits_found,
        } => {
            message.push(Type::GuardMismatch as u64);
            message.push(u64::from(bits_left));
            message.push(guard);
            message.push(u64::from(bits_found));
        }
    }
}

/// The handler `sender` has answered the `fault` of `thread`: sets the registers that it sent.
/// Returns whether the thread goes on (05, section 6).
#[must_use]
pub fn apply_reply(k: &Kernel, sender: Ref<Tcb>, thread: Ref<Tcb>, fault: Fault) -> bool {
    let order = match fault {
        Fault::Cap { .. } | Fault::Vm { .. } => return true,
        Fault::UnknownSyscall { .. } => Transfer::UnknownSyscall,
        Fault::UserException { .. } => Transfer::UserException,
        Fault::Timeout { .. } => Transfer::TimeoutReply,
    };
    let info = MessageInfo::from_raw(sender.at(k).context().info());
    let reply = Message::new(k, sender, info);
    for i in 0..reply.length().min(order.len()) {
        let value = reply.word(k, i);
        thread.at(k).context().transfer_set(order, i, value);
    }
    info.label() == 0
}
