//! Faults as messages (ABI page 05).

use sandglass_abi::fault as label;
use sandglass_abi::message::{MessageInfo, REGISTER_MRS};

use super::{endpoint, Message, Writer};
use crate::arch::abi::debug_fault;
use crate::arch::bounds::{self, turns};
use crate::arch::{Context, MessageRegister, Transfer};
use crate::cap::EndpointCap;
use crate::mem::{objects::tcb_slot, Ref};
use crate::object::{Fault, LookupFailure, State, Tcb, TcbSlot};
use crate::time::{account, Turn};
use crate::{debug, Kernel, View};

/// Most words of a message about a fault (05, section 2).
const MOST_WORDS: usize = Transfer::UnknownSyscall.len() + 1;

/// The endpoint that `slot` of `thread` names as its handler, if there is one that admits senders:
/// an endpoint whose deletion has begun is none any more.
pub fn handler(k: &View, thread: Ref<Tcb>, slot: TcbSlot) -> Option<EndpointCap> {
    let cap = tcb_slot(thread, slot).at(k).cap().endpoint()?;
    cap.object.at(k).queue().admits().then_some(cap)
}

/// `thread` faults: its fault handler is told (05, section 3). Without one it stops.
pub fn raise(k: &Kernel, turn: &Turn, thread: Ref<Tcb>, fault: Fault) {
    trace!(k, fault(thread, fault));
    match handler(k, thread, TcbSlot::FaultHandler) {
        Some(handler) => {
            let can_donate = thread.at(k).sched_context().is_some();
            tell(k, turn, thread, handler, fault, can_donate);
        }
        None => {
            debug::unhandled_fault(k, thread, fault);
            thread.at(k).set_state(k, State::Inactive);
            turn.stop(k, thread);
        }
    }
}

/// Sends `fault` of `thread` to `handler`.
pub(super) fn tell(
    k: &Kernel,
    turn: &Turn,
    thread: Ref<Tcb>,
    handler: EndpointCap,
    fault: Fault,
    can_donate: bool,
) {
    thread.at(k).set_fault(k, Some(fault));
    endpoint::send_fault(k, turn, thread, handler, can_donate);
}

/// Builds the message about the pending fault of `thread` in the registers and buffer of
/// `receiver` (05, section 2).
#[inline(never)]
pub fn write_message(k: &Kernel, thread: Ref<Tcb>, receiver: Ref<Tcb>, badge: u64) {
    let Some(fault) = thread.at(k).fault() else {
        return;
    };
    match fault {
        // What comes most: where each word goes is known to the compiler.
        Fault::UserException { number, code } => {
            const ORDER: Transfer = Transfer::UserException;
            let register = |i| thread.at(k).context().transfer_get(ORDER, i).unwrap_or(0);
            let mut message = about_fault(k, receiver, label::user_exception::LENGTH);
            message.push(register(0));
            message.push(register(1));
            message.push(register(2));
            message.push(u64::from(number));
            message.push(u64::from(code) & ((1 << label::user_exception::CODE_BITS) - 1));
            message.finish(label::USER_EXCEPTION, badge);
        }
        Fault::Vm {
            address,
            instruction,
            status,
        } => {
            let mut message = about_fault(k, receiver, label::vm_fault::LENGTH);
            message.push(thread.at(k).context().fault_ip());
            message.push(address);
            message.push(u64::from(instruction));
            message.push(u64::from(status));
            message.finish(label::VM_FAULT, badge);
        }
        Fault::Timeout { badge: of_context } => {
            let mut message = Writer::new(k, receiver, label::timeout::LENGTH);
            message.push(of_context);
            if let Some(context) = thread.at(k).sched_context() {
                message.push(account::report_consumed(k, context));
            }
            message.finish(label::TIMEOUT, badge);
        }
        Fault::Cap {
            cptr,
            in_receive_phase,
            failure,
        } => {
            let mut message = about_fault(k, receiver, MOST_WORDS);
            let context = thread.at(k).context();
            push_cap_fault(&mut message, context, cptr, in_receive_phase, failure);
            finish(message, label::CAP_FAULT, badge);
        }
        Fault::UnknownSyscall { number } => {
            let mut message = about_fault(k, receiver, MOST_WORDS);
            push_registers(&mut message, thread.at(k).context());
            message.push(number);
            finish(message, label::UNKNOWN_SYSCALL, badge);
        }
        Fault::Debug(event) => {
            let mut message = about_fault(k, receiver, MOST_WORDS);
            let label = debug_fault::write(event, thread.at(k).context(), &mut message);
            finish(message, label, badge);
        }
    }
}

/// The message about a fault that is no timeout, of at most so many words.
#[inline(always)]
fn about_fault(k: &Kernel, receiver: Ref<Tcb>, words: usize) -> Writer<'_> {
    bounds::mark::<{ bounds::FAULT }>();
    Writer::new(k, receiver, words)
}

/// Adds what the message about a capability has (05, section 2.1).
#[inline(always)]
fn push_cap_fault(
    message: &mut Writer,
    context: &Context,
    cptr: u64,
    in_receive_phase: bool,
    failure: LookupFailure,
) {
    message.push(context.fault_ip());
    message.push(cptr);
    message.push(u64::from(in_receive_phase));
    push_lookup_failure(message, failure);
}

/// Adds the registers of `context` that the message about an unknown system call has (05, section 2.2).
#[inline(always)]
fn push_registers(message: &mut Writer, context: &Context) {
    const ORDER: Transfer = Transfer::UnknownSyscall;
    let register = |i| context.transfer_get(ORDER, i).unwrap_or(0);
    message.fill::<{ (ORDER.len() - REGISTER_MRS) as u64 }>(ORDER.len(), register);
}

/// Ends a message of which it is not known how many words it has.
#[inline(never)]
fn finish(message: Writer, label: u64, badge: u64) {
    message.finish(label, badge);
}

/// Adds the type of a lookup failure and its details (02, section 4).
pub fn push_lookup_failure(message: &mut Writer, failure: LookupFailure) {
    use sandglass_abi::error::LookupFailureType as Type;
    let (kind, count, details) = match failure {
        LookupFailure::InvalidRoot => (Type::InvalidRoot, 0, [0; 3]),
        LookupFailure::MissingCapability { bits_left } => {
            (Type::MissingCapability, 1, [bits_left.into(), 0, 0])
        }
        LookupFailure::DepthMismatch {
            bits_left: left,
            bits_found: found,
        } => (Type::DepthMismatch, 2, [left.into(), found.into(), 0]),
        LookupFailure::GuardMismatch {
            bits_left: left,
            guard,
            bits_found: found,
        } => (Type::GuardMismatch, 3, [left.into(), guard, found.into()]),
    };
    message.push(kind as u64);
    for detail in turns::<3, _>(details.into_iter().take(count)) {
        message.push(detail);
    }
}

/// The handler `sender` has answered the pending fault of `thread`: sets the registers that it
/// sent. Returns whether the thread goes on (05, section 6).
#[must_use]
#[inline(never)]
pub fn apply_reply(k: &Kernel, sender: Ref<Tcb>, thread: Ref<Tcb>) -> bool {
    match thread.at(k).fault() {
        None | Some(Fault::Cap { .. } | Fault::Vm { .. }) => true,
        // By itself, so that its order is known where it is used.
        Some(Fault::UserException { .. }) => {
            set_registers(k, sender, thread, Transfer::UserException)
        }
        Some(Fault::UnknownSyscall { .. }) => answer_unknown_syscall(k, sender, thread),
        Some(Fault::Timeout { .. }) => answer_timeout(k, sender, thread),
        Some(Fault::Debug(event)) => debug_fault::answered(event, k, sender, thread),
    }
}

/// As [`set_registers`], of an unknown system call.
#[inline(never)]
fn answer_unknown_syscall(k: &Kernel, sender: Ref<Tcb>, thread: Ref<Tcb>) -> bool {
    set_registers(k, sender, thread, Transfer::UnknownSyscall)
}

/// As [`set_registers`], of a budget that was used up.
#[inline(never)]
fn answer_timeout(k: &Kernel, sender: Ref<Tcb>, thread: Ref<Tcb>) -> bool {
    set_registers(k, sender, thread, Transfer::TimeoutReply)
}

/// Sets the registers of `thread` that the message of `sender` has in the given order, which the compiler is to know. Returns
/// whether the message's label says that the thread goes on.
#[inline(always)]
fn set_registers(k: &Kernel, sender: Ref<Tcb>, thread: Ref<Tcb>, order: Transfer) -> bool {
    let info = MessageInfo::from_raw(sender.at(k).context().info());
    let reply = Message::new(k, sender, info);
    let (from, context) = (sender.at(k).context(), thread.at(k).context());
    let length = reply.length();
    // One after the other: a loop costs more.
    let from_register = |i, register| {
        if i < length {
            context.transfer_set_at(k, order, i, from.message(register));
        }
    };
    let [first, second, third, fourth] = MessageRegister::ALL;
    from_register(0, first);
    from_register(1, second);
    from_register(2, third);
    from_register(3, fourth);
    if let Some(words) = reply.behind_registers(k) {
        const { assert!(REGISTER_MRS == 4 && Transfer::LONGEST_REPLY <= 36) };
        macro_rules! from_buffer {
            ($($i:literal)*) => {
                $(if $i < length {
                    context.transfer_set_at(k, order, $i, words($i));
                })*
            };
        }
        from_buffer!(4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35);
    }
    if info.length() > 0 {
        thread.at(k).forget_progress(k);
    }
    info.label() == 0
}
