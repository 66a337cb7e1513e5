//! System calls: an invocation phase, a receive phase, or both (01, section 5).

use sandglass_abi::message::MessageInfo;
use sandglass_abi::syscall::Syscall;

use crate::arch::abi::context::{Context, MessageRegister};
use crate::arch::abi::invoke::profile;
use crate::arch::bounds;
use crate::cap::{lookup, ReplyCap};
use crate::invoke::{self, Error, Invocation, Outcome, Stop};
use crate::ipc::caps;
use crate::ipc::endpoint::{self, SendOptions};
use crate::ipc::{fault, notification, reply, timeout, ExtraCaps, Message, Phases};
use crate::mem::Ref;
use crate::object::{Fault, LookupFailure, Reply, State, Tcb};
use crate::time::{account, Preempted, Turn};
use crate::{debug, Kernel};

/// How an invocation phase ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Over,
    /// So is it; and the capability was that of this reply object.
    OverFor(Ref<Reply>),
    /// The whole system call is to be executed again.
    Abandoned,
}

/// How a system call leaves the processor.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The caller goes on: nothing has changed about who runs.
    ToCaller,
    /// The scheduler decides.
    ToScheduler,
}

/// The phases of the system call that `caller`, the current thread, makes.
///
/// # Errors
/// It has none: the number of the call, for [`debug_call`] and [`perform_other`].
#[inline(always)]
pub fn phases(k: &Kernel, caller: Ref<Tcb>) -> Result<Phases, u64> {
    let number = caller.at(k).context().syscall_number();
    Phases::of(number).ok_or(number)
}

/// The debug call of this `number`, for which nobody pays, if this kernel has it.
pub fn debug_call(number: u64) -> Option<Syscall> {
    Syscall::from_raw(number).filter(|&call| call.is_debug() && debug::calls::has(call))
}

/// Performs a system call of `caller` without phases: SetTLSBase, one of a kernel with traces, or an
/// unknown one.
pub fn perform_other(k: &Kernel, turn: &Turn, caller: Ref<Tcb>, number: u64) -> Exit {
    caller.at(k).age_progress(k);
    if trace_call(k, caller, number) || set_tls_base(k, caller, number) {
        turn.end(k);
        return Exit::ToCaller;
    }
    fault::raise(k, turn, caller, Fault::UnknownSyscall { number });
    Exit::ToScheduler
}

/// Performs the system call of this number, if it is one of a kernel with traces; whether it is.
fn trace_call(k: &Kernel, caller: Ref<Tcb>, number: u64) -> bool {
    #[cfg(feature = "trace")]
    return crate::trace::calls::handle(k, caller, number);
    #[cfg(not(feature = "trace"))]
    {
        let _ = (k, caller, number);
        false
    }
}

/// Performs the `phases` of a system call of `caller`, which has time for it.
#[inline(always)]
pub fn perform(k: &mut Kernel, turn: &Turn, caller: Ref<Tcb>, phases: Phases) {
    caller.at(k).age_progress(k);
    let mut offered = None;
    if phases.has(Phases::INVOKE) {
        let context = caller.at(k).context();
        let cptr = if phases.has(Phases::ELSEWHERE) {
            destination(context, phases)
        } else {
            context.cap_register()
        };
        match invoke(k, turn, caller, cptr, phases) {
            Phase::Abandoned => return,
            // What it answers by is what it receives with: an answer fills slots that are empty, and changes no others.
            Phase::OverFor(reply) if phases.has(Phases::TO_REPLY) => offered = Some(reply),
            _ => {}
        }
    }
    if phases.has(Phases::RECEIVE) {
        receive(k, turn, caller, phases, offered);
    } else if phases.has(Phases::YIELDS) {
        account::yield_rest(k, turn);
    }
}

/// Where the capability of an invocation phase is, if not in the capability register.
#[inline(never)]
fn destination(context: &Context, phases: Phases) -> u64 {
    if phases.has(Phases::TO_REPLY) {
        context.reply_register()
    } else {
        context.destination_register()
    }
}

/// SetTLSBase, if that is the system call of this number; whether it is. An address that the machine could not load is ignored
/// (01, section 7).
fn set_tls_base(k: &Kernel, caller: Ref<Tcb>, number: u64) -> bool {
    let is_it = Syscall::from_raw(number) == Some(Syscall::SetTLSBase) && Context::SETS_TLS_BASE;
    let context = caller.at(k).context();
    let base = context.cap_register();
    if is_it && context.can_load_tls_base(base) {
        context.set_tls_base(k, base);
    }
    is_it
}

/// The invocation phase: the message of `caller` goes to the capability at `cptr`
/// (01, section 5.1).
#[inline(always)]
fn invoke(k: &mut Kernel, turn: &Turn, caller: Ref<Tcb>, cptr: u64, phases: Phases) -> Phase {
    bounds::mark::<{ bounds::SENDING }>();
    let Some(slot) = lookup::invoked_slot(k, lookup::cspace(k, caller), cptr) else {
        return unreachable_cap(k, turn, caller, phases, cptr);
    };
    let info = MessageInfo::from_raw(caller.at(k).context().info());
    let mut found;
    let mut known = None;
    let extra = if info.extra_caps() > 0 {
        found = ExtraCaps::NONE;
        let message = *known.insert(Message::new(k, caller, info));
        match caps::look_up(k, caller, &message, info.extra_caps(), &mut found) {
            Ok(()) => &found,
            Err(bad) => {
                let _ = unreachable_cap(k, turn, caller, phases, bad.cptr);
                let reply = slot.at(k).cap().reply();
                return reply.map_or(Phase::Over, |cap| Phase::OverFor(cap.object));
            }
        }
    } else {
        &ExtraCaps::NONE
    };
    let is_call = phases.is_call();
    let cap = slot.at(k).cap();
    if let Some(cap) = cap.endpoint() {
        if !cap.rights.sends(is_call) || !cap.object.at(k).queue().admits() {
            return refuse(k, caller, is_call, Error::InvalidCapability(0));
        }
        let options = SendOptions {
            extra,
            blocking: phases.has(Phases::BLOCKS),
            is_call,
            can_donate: phases.has(Phases::DONATES),
        };
        endpoint::send(k, turn, caller, cap, options);
        return Phase::Over;
    }
    if let Some(cap) = cap.reply() {
        return answer_by(k, turn, caller, is_call, cap, extra);
    }
    if let Some(cap) = cap.notification() {
        if !cap.rights.write() || !cap.object.at(k).queue().admits() {
            return refuse(k, caller, is_call, Error::InvalidCapability(0));
        }
        notification::signal(k, turn, cap.object, cap.badge);
        return succeed(k, caller, is_call);
    }
    let call = Invocation {
        caller,
        slot,
        cap,
        message: known.unwrap_or_else(|| Message::new(k, caller, info)),
        extra,
        phases,
    };
    invoke_object(k, turn, &call)
}

/// The message of `caller` is the answer to whoever waits for it with the reply object.
#[inline(always)]
fn answer_by(
    k: &Kernel,
    turn: &Turn,
    caller: Ref<Tcb>,
    is_call: bool,
    cap: ReplyCap,
    extra: &ExtraCaps,
) -> Phase {
    match reply::reply(k, turn, caller, cap, extra) {
        Ok(()) => {
            let _ = succeed(k, caller, is_call);
            Phase::OverFor(cap.object)
        }
        Err(Preempted) => {
            caller.at(k).set_state(k, State::Restart);
            abandon(k, turn)
        }
    }
}

/// The invocation of an object that the kernel implements.
#[inline(always)]
fn invoke_object(k: &mut Kernel, turn: &Turn, call: &Invocation) -> Phase {
    let (caller, is_call) = (call.caller, call.phases.is_call());
    bounds::mark::<{ bounds::INVOCATION }>();
    // Until it is done the thread would repeat the call.
    caller.at(k).set_state(k, State::Restart);
    match invoke::invoke(k, turn, call) {
        Ok(Outcome::Done) => succeed(k, caller, is_call),
        Ok(Outcome::Value(value)) => answer(k, caller, is_call, value),
        Ok(Outcome::Answered) => Phase::Over,
        Err(Stop::Preempted) => abandon(k, turn),
        Err(Stop::Refused(error)) => {
            caller.at(k).set_state(k, State::Running);
            profile::tell(k, call, error);
            refuse(k, caller, is_call, error)
        }
    }
}

/// The caller, which repeats its system call, is charged for what has been done.
#[cold]
fn abandon(k: &Kernel, turn: &Turn) -> Phase {
    timeout::preempted(k, turn);
    Phase::Abandoned
}

/// The invocation is done, with nothing to tell; a thread that stopped or blocked meanwhile is
/// not answered.
#[inline(always)]
fn succeed(k: &Kernel, caller: Ref<Tcb>, is_call: bool) -> Phase {
    let tcb = caller.at(k);
    if tcb.is_runnable() {
        tcb.set_state(k, State::Running);
        if is_call {
            tcb.context().set_info(k, 0);
            tcb.context().set_badge(k, 0);
        }
    }
    Phase::Over
}

/// The invocation is done, with a result; a thread that stopped meanwhile is not answered.
fn answer(k: &Kernel, caller: Ref<Tcb>, is_call: bool, value: u64) -> Phase {
    let tcb = caller.at(k);
    if tcb.is_runnable() {
        tcb.set_state(k, State::Running);
        if is_call {
            let context = tcb.context();
            context.set_message(k, MessageRegister::Mr0, value);
            context.set_info(k, MessageInfo::new(0, 0, 0, 1).raw());
            context.set_badge(k, 0);
        }
    }
    Phase::Over
}

/// The invocation was refused; only a caller is told.
#[inline(never)]
fn refuse(k: &Kernel, caller: Ref<Tcb>, is_call: bool, error: Error) -> Phase {
    if is_call {
        error.report(k, caller);
    }
    Phase::Over
}

/// A capability of an invocation phase cannot be found; that is a fault of a thread that would
/// have waited.
#[cold]
#[inline(never)]
fn unreachable_cap(k: &Kernel, turn: &Turn, caller: Ref<Tcb>, phases: Phases, cptr: u64) -> Phase {
    if phases.has(Phases::BLOCKS) {
        let failure = lookup::failure(k, lookup::cspace(k, caller), cptr);
        cap_fault(k, turn, caller, cptr, false, failure);
    }
    Phase::Over
}

/// The receive phase of `caller` (01, section 5.2): with the reply object `known`, if that is known before.
#[inline(always)]
fn receive(k: &Kernel, turn: &Turn, caller: Ref<Tcb>, phases: Phases, known: Option<Ref<Reply>>) {
    const UNUSABLE: LookupFailure = LookupFailure::MissingCapability { bits_left: 0 };
    bounds::mark::<{ bounds::RECEPTION }>();
    let cptr = caller.at(k).context().cap_register();
    let blocking = phases.has(Phases::WAITS);
    let space = lookup::cspace(k, caller);
    let Some(slot) = lookup::slot(k, space, cptr) else {
        let failure = lookup::failure(k, space, cptr);
        return cap_fault(k, turn, caller, cptr, true, failure);
    };
    let cap = slot.at(k).cap();
    if let Some(cap) = cap.endpoint() {
        if !cap.rights.read() || !cap.object.at(k).queue().admits() {
            return cap_fault(k, turn, caller, cptr, true, UNUSABLE);
        }
        let mut offered = known.filter(|_| phases.has(Phases::WITH_REPLY));
        if offered.is_none() && phases.has(Phases::WITH_REPLY) {
            bounds::mark::<{ bounds::OFFER }>();
            let cptr = caller.at(k).context().reply_register();
            let Some(slot) = lookup::slot(k, space, cptr) else {
                let failure = lookup::failure(k, space, cptr);
                return cap_fault(k, turn, caller, cptr, true, failure);
            };
            match slot.at(k).cap().reply() {
                Some(cap) => offered = Some(cap.object),
                None => return cap_fault(k, turn, caller, cptr, true, UNUSABLE),
            }
        }
        endpoint::receive(k, turn, caller, cap.object, offered, blocking);
    } else if let Some(cap) = cap.notification() {
        let bound = cap.object.at(k).thread();
        let taken = bound.is_some_and(|bound| bound != caller);
        if !cap.rights.read() || taken || !cap.object.at(k).queue().admits() {
            return cap_fault(k, turn, caller, cptr, true, UNUSABLE);
        }
        notification::wait(k, turn, caller, cap.object, blocking);
    } else {
        cap_fault(k, turn, caller, cptr, true, UNUSABLE);
    }
}

#[cold]
#[inline(never)]
fn cap_fault(
    k: &Kernel,
    turn: &Turn,
    thread: Ref<Tcb>,
    cptr: u64,
    in_receive_phase: bool,
    failure: LookupFailure,
) {
    fault::raise(
        k,
        turn,
        thread,
        Fault::Cap {
            cptr,
            in_receive_phase,
            failure,
        },
    );
}
