//! The system calls of a kernel with traces: `sandglass_abi::trace::Call`.
//!
//! A core's log belongs to whoever controls the core's time, so the calls that concern it name the
//! capability to do that; a mark is anybody's.

use sandglass_abi::error::ErrorNumber;
use sandglass_abi::trace::{Call, STOP_WHEN_FULL};

use super::points;
use crate::arch::MessageRegister;
use crate::cap::{lookup, Capability};
use crate::cores::CoreId;
use crate::mem::{Kind, PhysAddr, Ref};
use crate::object::{FrameRights, SchedContext, Tcb};
use crate::Kernel;

/// Answer of a call that was obeyed.
const OBEYED: u64 = 0;
/// Answer of one that was not.
const REFUSED: u64 = ErrorNumber::IllegalOperation as u64;

/// Performs the call of this `number` of `caller`, which had time for it, if it is one of these;
/// whether it is.
pub fn handle(k: &Kernel, caller: Ref<Tcb>, number: u64) -> bool {
    let call = Call::from_raw(number);
    if let Some(call) = call {
        perform(k, caller, call);
    }
    call.is_some()
}

/// Performs `call` of `caller`.
fn perform(k: &Kernel, caller: Ref<Tcb>, call: Call) {
    let context = caller.at(k).context();
    let (argument, info) = (context.cap_register(), context.info());
    match call {
        Call::SetLogBuffer => {
            let core = controlled(k, caller, context.message(MessageRegister::Mr0));
            context.set_badge(k, give(k, core, found(k, caller, argument), info));
        }
        Call::ResetLog => context.set_badge(k, answer(reset(k, controlled(k, caller, argument)))),
        Call::FinalizeLog => {
            let core = controlled(k, caller, argument);
            if core.is_some_and(|core| k.core_of(core).trace.end()) {
                context.set_badge(k, k.trace.get().into());
            }
        }
        Call::Mark => {
            let subject = subject(found(k, caller, argument)).unwrap_or(caller.address());
            let first = context.message(MessageRegister::Mr0);
            let second = context.message(MessageRegister::Mr1);
            points::mark(k, subject, info as u16, first, second);
        }
    }
}

fn answer(obeyed: bool) -> u64 {
    if obeyed {
        OBEYED
    } else {
        REFUSED
    }
}

/// The capability at `cptr`, or the null capability.
fn found(k: &Kernel, caller: Ref<Tcb>, cptr: u64) -> Capability {
    let slot = lookup::slot(k, lookup::cspace(k, caller), cptr);
    slot.map_or(Capability::NULL, |slot| slot.at(k).cap())
}

/// What `cap` names, if that is a thread or a scheduling context.
fn subject(cap: Capability) -> Option<PhysAddr> {
    let thread = cap.word().get::<Tcb>().map(Ref::address);
    thread.or_else(|| cap.word().get::<SchedContext>().map(Ref::address))
}

/// The core over whose time the capability at `cptr` has authority.
fn controlled(k: &Kernel, caller: Ref<Tcb>, cptr: u64) -> Option<CoreId> {
    let cap = found(k, caller, cptr);
    cap.is(Kind::SchedControl).then_some(())?;
    CoreId::new(cap.core())
}

/// Gives the frame that `cap` names to the log of `core`.
fn give(k: &Kernel, core: Option<CoreId>, cap: Capability, info: u64) -> u64 {
    let writable = cap
        .frame()
        .filter(|frame| frame.rights == FrameRights::READ_WRITE);
    let (Some(core), Some(frame)) = (core, writable) else {
        return REFUSED;
    };
    let frame = frame.word;
    let log = &k.core_of(core).trace;
    let stops = info & STOP_WHEN_FULL != 0;
    if log.extend(frame, stops) {
        return OBEYED;
    }
    answer(log.give(frame, stops) && reset(k, Some(core)))
}

/// The log of `core` starts anew; `false` if it has no memory.
fn reset(k: &Kernel, core: Option<CoreId>) -> bool {
    let Some(core) = core.filter(|&core| k.core_of(core).trace.reset()) else {
        return false;
    };
    points::start_of(k, core);
    if core == k.core_id() {
        points::runs(k);
    }
    true
}
