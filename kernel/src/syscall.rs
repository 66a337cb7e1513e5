//! System calls: an invocation phase, a receive phase, or both (01, section 5).

use sandglass_abi::message::MessageInfo;
use sandglass_abi::syscall::Syscall;

use crate::arch::{is_canonical, MessageRegister};
use crate::cap::lookup::{self, LookupFailure};
use crate::cap::Capability;
use crate::event;
use crate::ipc::caps;
use crate::ipc::endpoint::Manner;
use crate::ipc::fault::{self, Fault};
use crate::ipc::message::Reader;
use crate::ipc::{endpoint, notification, reply};
use crate::mem::Ref;
use crate::object::error::Error;
use crate::object::reply::Reply;
use crate::object::tcb::{self, Progress, State, Tcb};
use crate::object::{self, debug, Invocation, Operation, Outcome};
use crate::time::account::{self, Budget};
use crate::Kernel;

/// How an invocation phase ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Over,
    /// The whole system call is to be executed again.
    Abandoned,
}

/// A send of an invocation phase.
#[derive(Clone, Copy)]
struct Send {
    manner: Manner,
    /// A receive phase follows.
    first_phase: bool,
}

const SEND: Send = Send {
    manner: Manner {
        blocking: true,
        is_call: false,
        can_donate: false,
    },
    first_phase: false,
};
const NB_SEND: Send = Send {
    manner: Manner {
        blocking: false,
        is_call: false,
        can_donate: false,
    },
    first_phase: false,
};
const CALL: Send = Send {
    manner: Manner {
        blocking: true,
        is_call: true,
        can_donate: true,
    },
    first_phase: false,
};
const FIRST_PHASE: Send = Send {
    manner: Manner {
        blocking: false,
        is_call: false,
        can_donate: true,
    },
    first_phase: true,
};

/// Handles a system call of the current thread. Returns whether the scheduler is to decide.
#[inline(never)]
pub fn handle(k: &mut Kernel) -> bool {
    let Some(caller) = k.core().thread() else {
        return true;
    };
    let number = caller.at(k).context().syscall_number();
    let call = Syscall::from_raw(number).filter(|&call| !call.is_debug() || debug::has(call));
    if let Some(call) = call.filter(|call| call.is_debug()) {
        debug::syscall(k, caller, call);
        return false;
    }
    if event::enter(k).is_none() {
        return true;
    }
    match call {
        None => fault::raise(k, caller, Fault::UnknownSyscall { number }),
        Some(Syscall::SetTLSBase) => {
            set_tls_base(k, caller);
            return false;
        }
        Some(call) => perform(k, caller, call),
    }
    true
}

/// A receive phase.
#[derive(Clone, Copy)]
struct Receive {
    blocking: bool,
    /// The reply register counts.
    with_reply: bool,
}

/// The register that names the capability to send to.
#[derive(Clone, Copy)]
enum Target {
    Cap,
    Reply,
    Destination,
}

/// The phases of the system calls that have any (01, section 5).
#[inline(always)]
fn phases(call: Syscall) -> (Option<(Target, Send)>, Option<Receive>) {
    const RECV: Receive = Receive {
        blocking: true,
        with_reply: true,
    };
    const WAIT: Receive = Receive {
        blocking: true,
        with_reply: false,
    };
    match call {
        Syscall::Call => (Some((Target::Cap, CALL)), None),
        Syscall::ReplyRecv => (Some((Target::Reply, FIRST_PHASE)), Some(RECV)),
        Syscall::NBSendRecv => (Some((Target::Destination, FIRST_PHASE)), Some(RECV)),
        Syscall::NBSendWait => (Some((Target::Reply, FIRST_PHASE)), Some(WAIT)),
        Syscall::Send => (Some((Target::Cap, SEND)), None),
        Syscall::NBSend => (Some((Target::Cap, NB_SEND)), None),
        Syscall::Recv => (None, Some(RECV)),
        Syscall::NBRecv => (
            None,
            Some(Receive {
                blocking: false,
                ..RECV
            }),
        ),
        Syscall::Wait => (None, Some(WAIT)),
        Syscall::NBWait => (
            None,
            Some(Receive {
                blocking: false,
                ..WAIT
            }),
        ),
        _ => (None, None),
    }
}

#[inline(always)]
fn perform(k: &mut Kernel, caller: Ref<Tcb>, call: Syscall) {
    let context = caller.at(k).context();
    let (cap, reply_cap) = (context.cap_register(), context.reply_register());
    let begun = caller.at(k).take_progress();
    let (sends, receives) = phases(call);
    if let Some((target, send)) = sends {
        let cptr = match target {
            Target::Cap => cap,
            Target::Reply => reply_cap,
            Target::Destination => context.destination_register(),
        };
        if invoke(k, caller, cptr, send, begun) == Phase::Abandoned {
            return;
        }
    }
    match receives {
        Some(Receive {
            blocking,
            with_reply,
        }) => {
            receive(k, caller, cap, with_reply.then_some(reply_cap), blocking);
        }
        None if call == Syscall::Yield => account::yield_rest(k),
        None => {}
    }
}

/// SetTLSBase: an address that the machine could not load is ignored (01, section 7).
fn set_tls_base(k: &Kernel, caller: Ref<Tcb>) {
    let context = caller.at(k).context();
    let base = context.cap_register();
    if is_canonical(base) {
        context.set_tls_base(base);
    }
}

/// The invocation phase: the message of `caller` goes to the capability at `cptr`
/// (01, section 5.1).
#[inline(always)]
fn invoke(
    k: &mut Kernel,
    caller: Ref<Tcb>,
    cptr: u64,
    send: Send,
    begun: Option<Progress>,
) -> Phase {
    let slot = match lookup::slot(k, tcb::cspace(k, caller), cptr) {
        Ok(slot) => slot,
        Err(failure) => {
            if send.manner.blocking {
                cap_fault(k, caller, cptr, false, failure);
            }
            return Phase::Over;
        }
    };
    let info = MessageInfo::from_raw(caller.at(k).context().info());
    let extra = match caps::look_up(k, caller, info.extra_caps()) {
        Ok(extra) => extra,
        Err(bad) => {
            if send.manner.blocking {
                cap_fault(k, caller, bad.cptr, false, bad.failure);
            }
            return Phase::Over;
        }
    };
    let cap = slot.at(k).cap();
    if let Some(cap) = cap.endpoint() {
        if !cap.rights.write() || !cap.object.at(k).admits() {
            return refuse(k, caller, send, Error::InvalidCapability(0));
        }
        endpoint::send(k, caller, cap, send.manner);
        return Phase::Over;
    }
    if let Some(cap) = cap.reply() {
        reply::reply(k, caller, cap);
        return succeed(k, caller, send);
    }
    if let Some(cap) = cap.notification() {
        if !cap.rights.write() || !cap.object.at(k).admits() {
            return refuse(k, caller, send, Error::InvalidCapability(0));
        }
        notification::signal(k, cap.object, cap.badge);
        return succeed(k, caller, send);
    }
    let decoded = object::decode(&Invocation {
        k,
        caller,
        slot,
        cap,
        label: info.label(),
        message: Reader::new(k, caller),
        extra,
        begun,
        first_phase: send.first_phase,
    });
    perform_operation(k, caller, send, decoded)
}

/// The commit of an invocation of an object that the kernel implements.
fn perform_operation(
    k: &mut Kernel,
    caller: Ref<Tcb>,
    send: Send,
    decoded: Result<Operation, Error>,
) -> Phase {
    let operation = match decoded {
        Ok(operation) => operation,
        Err(error) => return refuse(k, caller, send, error),
    };
    // Until it is done the thread would repeat the call.
    caller.at(k).set_state(State::Restart);
    let is_call = send.manner.is_call;
    match object::commit(k, caller, is_call, operation) {
        Outcome::Done => succeed(k, caller, send),
        Outcome::Value(value) => {
            if caller.at(k).state() == State::Restart {
                caller.at(k).set_state(State::Running);
                if is_call {
                    let context = caller.at(k).context();
                    context.set_message(MessageRegister::Mr0, value);
                    context.set_info(MessageInfo::new(0, 0, 0, 1).raw());
                    context.set_badge(0);
                }
            }
            Phase::Over
        }
        Outcome::Answered => Phase::Over,
        Outcome::Preempted(progress) => {
            if let Some(progress) = progress {
                caller.at(k).leave_progress(progress);
            }
            if let Budget::Exhausted(expiry) = account::preempted(k) {
                event::expire(k, expiry);
            }
            Phase::Abandoned
        }
    }
}

/// The invocation is done, with nothing to tell; a thread that stopped or blocked meanwhile is
/// not answered.
#[inline(always)]
fn succeed(k: &Kernel, caller: Ref<Tcb>, send: Send) -> Phase {
    let tcb = caller.at(k);
    if tcb.is_runnable() {
        tcb.set_state(State::Running);
        if send.manner.is_call {
            tcb.context().set_info(0);
            tcb.context().set_badge(0);
        }
    }
    Phase::Over
}

/// The invocation was refused; only a caller is told.
fn refuse(k: &Kernel, caller: Ref<Tcb>, send: Send, error: Error) -> Phase {
    if send.manner.is_call {
        error.report(k, caller);
    }
    Phase::Over
}

/// The receive phase: `caller` receives at the capability at `cptr`, with the reply object at
/// `reply_cptr` or without (01, section 5.2).
#[inline(always)]
fn receive(k: &Kernel, caller: Ref<Tcb>, cptr: u64, reply_cptr: Option<u64>, blocking: bool) {
    const UNUSABLE: LookupFailure = LookupFailure::MissingCapability { bits_left: 0 };
    let space = tcb::cspace(k, caller);
    let cap = match lookup::slot(k, space, cptr) {
        Ok(slot) => slot.at(k).cap(),
        Err(failure) => return cap_fault(k, caller, cptr, true, failure),
    };
    if let Some(cap) = cap.endpoint() {
        if !cap.rights.read() || !cap.object.at(k).admits() {
            return cap_fault(k, caller, cptr, true, UNUSABLE);
        }
        let offered = match reply_cptr.map(|cptr| (cptr, find_reply(k, space, cptr))) {
            None => None,
            Some((_, Ok(reply))) => Some(reply),
            Some((cptr, Err(failure))) => return cap_fault(k, caller, cptr, true, failure),
        };
        endpoint::receive(k, caller, cap.object, offered, blocking);
    } else if let Some(cap) = cap.notification() {
        let bound = cap.object.at(k).thread();
        let taken = bound.is_some_and(|bound| bound != caller);
        if !cap.rights.read() || taken || !cap.object.at(k).admits() {
            return cap_fault(k, caller, cptr, true, UNUSABLE);
        }
        notification::wait(k, caller, cap.object, blocking);
    } else {
        cap_fault(k, caller, cptr, true, UNUSABLE);
    }
}

/// The reply object at `cptr`.
#[inline(always)]
fn find_reply(k: &Kernel, space: Capability, cptr: u64) -> Result<Ref<Reply>, LookupFailure> {
    let cap = lookup::slot(k, space, cptr)?.at(k).cap();
    match cap.reply() {
        Some(cap) => Ok(cap.object),
        None => Err(LookupFailure::MissingCapability { bits_left: 0 }),
    }
}

fn cap_fault(
    k: &Kernel,
    thread: Ref<Tcb>,
    cptr: u64,
    in_receive_phase: bool,
    failure: LookupFailure,
) {
    fault::raise(
        k,
        thread,
        Fault::Cap {
            cptr,
            in_receive_phase,
            failure,
        },
    );
}
