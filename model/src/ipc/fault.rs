//! Faults as messages, and the answers to them (page 05).

use sandglass_abi::fault;

use super::endpoint::{self, Send};
use super::{message, stop};
use crate::error;
use crate::isa::{self, PC, TIMEOUT_REPLY_ORDER, USER_EXCEPTION_ORDER};
use crate::state::{Cap, Fault, SlotId, State, ThreadId, ThreadSlot, ThreadState};
use crate::time::account;

/// `thread` faults (05, section 3).
pub fn raise(s: &mut State, thread: ThreadId, fault: Fault) {
    let can_donate = s.threads[&thread].context.is_some();
    match handler(s, thread, ThreadSlot::FaultHandler) {
        Some(handler) => send(s, thread, fault, handler, can_donate),
        None => stop(s, thread, ThreadState::Inactive),
    }
}

/// The timeout handler of `thread` is told, which it has; the context stays (05, section 4).
pub fn raise_timeout(s: &mut State, thread: ThreadId) {
    let context = s.threads[&thread]
        .context
        .expect("whose time is out has a scheduling context");
    let handler =
        handler(s, thread, ThreadSlot::TimeoutHandler).expect("the thread has a timeout handler");
    let fault = Fault::Timeout {
        badge: s.contexts[&context].badge,
    };
    send(s, thread, fault, handler, false);
}

/// Whether `cap` may be a handler (05, section 5); `None` is the null capability.
pub fn is_valid_handler(cap: Option<Cap>) -> bool {
    match cap {
        None => true,
        Some(Cap::Endpoint { rights, .. }) => rights.write && (rights.grant || rights.grant_reply),
        Some(_) => false,
    }
}

/// The handler in `slot` of `thread`, if it has one.
fn handler(s: &State, thread: ThreadId, slot: ThreadSlot) -> Option<Cap> {
    let held = s.caps.slots.get(&SlotId::Thread(thread, slot))?;
    Some(held.cap)
}

/// `thread` sends `fault` to `handler` (05, section 3 step 2).
fn send(s: &mut State, thread: ThreadId, fault: Fault, handler: Cap, can_donate: bool) {
    let Cap::Endpoint {
        object,
        badge,
        rights,
    } = handler
    else {
        unreachable!("handlers are endpoints (05, section 5)");
    };
    s.thread_mut(thread).fault = Some(fault);
    let how = Send {
        blocking: true,
        call: false,
        can_donate,
        badge,
        grant: rights.grant,
        grant_reply: rights.grant_reply,
        calls_only: false,
    };
    endpoint::send(s, thread, object, how);
}

/// `receiver` is told the `fault` of `thread` (05, sections 1 and 2).
pub fn deliver(s: &mut State, thread: ThreadId, receiver: ThreadId, fault: Fault, badge: u64) {
    let label = match fault {
        Fault::Cap { .. } => fault::CAP_FAULT,
        Fault::UnknownSyscall { .. } => fault::UNKNOWN_SYSCALL,
        Fault::UserException { .. } => fault::USER_EXCEPTION,
        Fault::Timeout { .. } => fault::TIMEOUT,
        Fault::Vm { .. } => fault::VM_FAULT,
    };
    let words = words(s, thread, fault);
    message::write_with_badge(s, receiver, badge, label, &words);
}

/// The words of the message about `fault` of `thread`, with its registers as they are now (05,
/// section 2).
fn words(s: &mut State, thread: ThreadId, fault: Fault) -> Vec<u64> {
    let user = s.threads[&thread].registers.user;
    let registers = |order: &[usize]| order.iter().map(|&i| user[i]).collect::<Vec<u64>>();
    match fault {
        Fault::Cap {
            cptr,
            in_receive_phase,
            failure,
        } => {
            let mut words = vec![user[PC], cptr, in_receive_phase.into()];
            words.extend(error::lookup_failure(failure));
            words
        }
        Fault::UnknownSyscall { number } => {
            let mut words = isa::unknown_syscall(&s.threads[&thread].registers);
            words.push(number);
            words
        }
        Fault::UserException { number, code } => {
            let mut words = registers(&USER_EXCEPTION_ORDER);
            let code = code & ((1 << fault::user_exception::CODE_BITS) - 1);
            words.extend([u64::from(number), u64::from(code)]);
            words
        }
        Fault::Timeout { badge } => match s.threads[&thread].context {
            Some(context) => vec![badge, account::report_consumed(s, context)],
            None => vec![badge],
        },
        Fault::Vm {
            address,
            instruction,
            status,
        } => vec![user[PC], address, instruction.into(), status.into()],
    }
}

/// The handler of `fault` answers `thread` with a message of `label` and `words`. Returns the
/// state in which that leaves the thread (05, section 6).
pub fn answer(
    s: &mut State,
    thread: ThreadId,
    fault: Fault,
    label: u64,
    words: &[u64],
) -> ThreadState {
    let (order, resumes): (&[usize], bool) = match fault {
        Fault::Cap { .. } | Fault::Vm { .. } => (&[], true),
        Fault::UnknownSyscall { .. } => {
            isa::answer_unknown_syscall(&mut s.thread_mut(thread).registers, words);
            (&[], label == 0)
        }
        Fault::UserException { .. } => (&USER_EXCEPTION_ORDER, label == 0),
        Fault::Timeout { .. } => (&TIMEOUT_REPLY_ORDER, label == 0),
    };
    for (&register, &word) in order.iter().zip(words) {
        s.thread_mut(thread).registers.user[register] = isa::sanitise(register, word);
    }
    if resumes {
        ThreadState::Restart
    } else {
        ThreadState::Inactive
    }
}
