//! System calls: an invocation phase, a receive phase, or both (01, sections 4 and 5).

use sandglass_abi::error::ErrorNumber;
use sandglass_abi::syscall::Syscall;

use crate::cap::{derivation, lookup};
use crate::error::Error;
use crate::invoke::{self, Call, Outcome};
use crate::ipc::endpoint::{self, Send};
use crate::ipc::{fault, message, notification, reply, transfer};
use crate::isa::{
    is_canonical, CAP_OR_BADGE, HAS_SET_TLS_BASE, NB_SEND_RECV_DEST, REPLY, SYSCALL_NUMBER,
    TLS_BASE,
};
use crate::state::{Cap, Fault, LookupFailure, ReplyId, State, ThreadId, ThreadState};
use crate::time::account;

/// What follows an event.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// The scheduler decides who runs.
    Schedule,
    /// The current thread goes on.
    GoOn,
}

/// How a system call invokes a capability (01, section 5, second table).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Manner {
    blocking: bool,
    call: bool,
    donate: bool,
    /// A receive phase follows.
    first: bool,
}

const SEND: Manner = Manner {
    blocking: true,
    call: false,
    donate: false,
    first: false,
};
const NB_SEND: Manner = Manner {
    blocking: false,
    ..SEND
};
const CALL: Manner = Manner {
    blocking: true,
    call: true,
    donate: true,
    first: false,
};
const FIRST: Manner = Manner {
    blocking: false,
    call: false,
    donate: true,
    first: true,
};

/// How a system call receives (01, section 5, third column).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Receive {
    blocking: bool,
    with_reply: bool,
}

const RECV: Receive = Receive {
    blocking: true,
    with_reply: true,
};
const WAIT: Receive = Receive {
    blocking: true,
    with_reply: false,
};

/// Performs the system call whose number and arguments are in the registers of `thread`, the
/// current one (01, section 5).
///
/// Calls of debug kernels are unknown here: the specification is of the release kernel.
pub fn perform(s: &mut State, thread: ThreadId) -> Then {
    let number = register(s, thread, SYSCALL_NUMBER);
    let cap = register(s, thread, CAP_OR_BADGE);
    let (sent, received) = match Syscall::from_raw(number) {
        Some(Syscall::Send) => (Some((cap, SEND)), None),
        Some(Syscall::NBSend) => (Some((cap, NB_SEND)), None),
        Some(Syscall::Call) => (Some((cap, CALL)), None),
        Some(Syscall::ReplyRecv) => (Some((register(s, thread, REPLY), FIRST)), Some(RECV)),
        Some(Syscall::NBSendRecv) => {
            let destination = register(s, thread, NB_SEND_RECV_DEST);
            (Some((destination, FIRST)), Some(RECV))
        }
        Some(Syscall::NBSendWait) => (Some((register(s, thread, REPLY), FIRST)), Some(WAIT)),
        Some(Syscall::Recv) => (None, Some(RECV)),
        Some(Syscall::NBRecv) => (
            None,
            Some(Receive {
                blocking: false,
                ..RECV
            }),
        ),
        Some(Syscall::Wait) => (None, Some(WAIT)),
        Some(Syscall::NBWait) => (
            None,
            Some(Receive {
                blocking: false,
                ..WAIT
            }),
        ),
        Some(Syscall::Yield) => {
            account::yield_rest(s);
            (None, None)
        }
        Some(Syscall::SetTLSBase) if HAS_SET_TLS_BASE => return set_tls_base(s, thread, cap),
        _ => {
            fault::raise(s, thread, Fault::UnknownSyscall { number });
            (None, None)
        }
    };
    if let Some((cptr, manner)) = sent {
        invocation(s, thread, cptr, manner);
    }
    if let Some(how) = received {
        receive(s, thread, how);
    }
    Then::Schedule
}

fn register(s: &State, thread: ThreadId, register: usize) -> u64 {
    s.threads[&thread].registers.user[register]
}

/// The thread sets its own FS base; an address that is not canonical is ignored. Nobody else runs
/// for that (01, section 7).
fn set_tls_base(s: &mut State, thread: ThreadId, address: u64) -> Then {
    if is_canonical(address) {
        s.thread_mut(thread).registers.user[TLS_BASE] = address;
    }
    Then::GoOn
}

// ---------------------------------------------------------------------------- invocation phase

/// `thread` invokes what `cptr` names (01, section 5.1).
fn invocation(s: &mut State, thread: ThreadId, cptr: u64, manner: Manner) {
    // Steps 1 and 2.
    let slots = lookup::of_syscall(s, thread, cptr)
        .map_err(|failure| (cptr, failure))
        .and_then(|slot| Ok((slot, transfer::extra_slots(s, thread)?)));
    let (slot, extra) = match slots {
        Ok(slots) => slots,
        Err((cptr, failure)) => {
            if manner.blocking {
                cap_fault(s, thread, cptr, false, failure);
            }
            return;
        }
    };
    s.thread_mut(thread).state = ThreadState::Restart;
    let outcome = match derivation::get(s, slot) {
        None => Err(Error::InvalidCapability(0)),
        Some(cap) => {
            let call = Call {
                caller: thread,
                slot,
                cap,
                label: message::info(s, thread).label(),
                // Step 3.
                words: message::words(s, thread),
                extra,
            };
            dispatch(s, &call, manner)
        }
    };
    conclude(s, thread, manner.call, outcome);
}

/// Does what `call` asks for (01, section 5.1, table of step 4).
fn dispatch(s: &mut State, call: &Call, manner: Manner) -> Result<Outcome, Error> {
    match call.cap {
        Cap::Endpoint {
            object,
            badge,
            rights,
        } if rights.sends(manner.call) => {
            let how = Send {
                blocking: manner.blocking,
                call: manner.call,
                can_donate: manner.donate,
                badge,
                grant: rights.grant,
                grant_reply: rights.grant_reply,
                calls_only: rights.call,
            };
            endpoint::send(s, call.caller, object, how);
            Ok(Outcome::Done)
        }
        Cap::Notification {
            object,
            badge,
            rights,
        } if rights.write => {
            notification::signal(s, object, badge);
            Ok(Outcome::Done)
        }
        Cap::Reply { object, can_grant } => {
            reply::transfer(s, call.caller, object, can_grant);
            Ok(Outcome::Done)
        }
        Cap::Endpoint { .. } | Cap::Notification { .. } => Err(Error::InvalidCapability(0)),
        Cap::Thread(_)
        | Cap::Domain
        | Cap::CNode { .. }
        | Cap::SchedControl { .. }
        | Cap::SchedContext { .. }
            if manner.first =>
        {
            Err(Error::InvalidCapability(0))
        }
        _ => invoke::invoke(s, call),
    }
}

/// The caller learns the result, if it is one who asks for it, and goes on, if nothing has been
/// done to it meanwhile (01, section 5.1 step 4; 01, section 6).
fn conclude(s: &mut State, caller: ThreadId, call: bool, outcome: Result<Outcome, Error>) {
    let (label, words) = match outcome {
        // It has blocked, suspended itself, or deleted itself.
        Ok(Outcome::Done)
            if s.threads
                .get(&caller)
                .is_none_or(|thread| thread.state != ThreadState::Restart) =>
        {
            return;
        }
        Ok(Outcome::Done) => (ErrorNumber::NoError as u64, vec![]),
        Ok(Outcome::Words(words)) => (ErrorNumber::NoError as u64, words),
        Err(error) => error.message(),
    };
    if call {
        message::write(s, caller, label, &words);
    }
    s.thread_mut(caller).state = ThreadState::Running;
}

// ------------------------------------------------------------------------------- receive phase

/// `thread` receives (01, section 5.2).
fn receive(s: &mut State, thread: ThreadId, how: Receive) {
    if let Err((cptr, failure)) = try_receive(s, thread, how) {
        cap_fault(s, thread, cptr, true, failure);
    }
}

/// `thread` receives, unless it has not named what to receive from (01, section 5.2).
///
/// # Errors
/// The address that names nothing suitable, and why.
fn try_receive(s: &mut State, thread: ThreadId, how: Receive) -> Result<(), (u64, LookupFailure)> {
    // Step 1.
    let cptr = register(s, thread, CAP_OR_BADGE);
    match named(s, thread, cptr)? {
        // Step 2.
        Some(Cap::Endpoint { object, rights, .. }) if rights.read => {
            let reply = match how.with_reply {
                true => Some(reply_object(s, thread)?),
                false => None,
            };
            endpoint::receive(s, thread, object, how.blocking, reply);
            Ok(())
        }
        // Step 3.
        Some(Cap::Notification { object, rights, .. })
            if rights.read
                && s.notifications[&object]
                    .thread
                    .is_none_or(|bound| bound == thread) =>
        {
            notification::wait(s, thread, object, how.blocking);
            Ok(())
        }
        // Steps 2 to 4.
        _ => Err((cptr, MISSING)),
    }
}

/// A capability was found that is of no use (01, section 5.2).
const MISSING: LookupFailure = LookupFailure::MissingCapability { bits_left: 0 };

/// The reply object that `thread` supplies (01, section 5.2 step 2).
///
/// # Errors
/// The address does not name one.
fn reply_object(s: &State, thread: ThreadId) -> Result<ReplyId, (u64, LookupFailure)> {
    let cptr = register(s, thread, REPLY);
    match named(s, thread, cptr)? {
        Some(Cap::Reply { object, .. }) => Ok(object),
        _ => Err((cptr, MISSING)),
    }
}

/// The capability that `cptr` names in the space of `thread`; `None` is the null capability.
///
/// # Errors
/// `cptr`, and why it does not lead to a slot.
fn named(s: &State, thread: ThreadId, cptr: u64) -> Result<Option<Cap>, (u64, LookupFailure)> {
    let slot = lookup::of_syscall(s, thread, cptr).map_err(|failure| (cptr, failure))?;
    Ok(derivation::get(s, slot))
}

fn cap_fault(
    s: &mut State,
    thread: ThreadId,
    cptr: u64,
    in_receive_phase: bool,
    failure: LookupFailure,
) {
    let fault = Fault::Cap {
        cptr,
        in_receive_phase,
        failure,
    };
    fault::raise(s, thread, fault);
}
