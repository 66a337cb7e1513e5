//! The processor's debug registers: they are the running thread's (09, section 3).

use super::code::exit;
use super::handlers::act;
use crate::arch::abi::context::Context;
use crate::arch::abi::debugging::Event;
use crate::arch::abi::Exception;
use crate::arch::x86_64::machine::core_data::CoreData;
use crate::arch::x86_64::machine::cpu;
use crate::cores::CoreId;
use crate::event::Trap;
use crate::object::Tcb;

/// The vector of INT3; that of debug exceptions is 1.
const BREAKPOINT: u64 = 3;

/// `core` is about to run the thread with the registers `context`: what is watched is what is watched of that one. Threads
/// of which nothing is, one after the other, cost no more than to see that.
#[inline(always)]
pub fn prepare(core: CoreId, context: &Context) {
    let debugging = context.debugging();
    let data = CoreData::of(core);
    if debugging.is_used() || debugging.is_stepped() || data.watches() {
        load(data, context);
    }
}

#[cold]
#[inline(never)]
fn load(data: &CoreData, context: &Context) {
    let debugging = context.debugging();
    let used = debugging.is_used();
    if used {
        let (addresses, control) = debugging.registers();
        // SAFETY: the addresses are users', where the kernel accesses nothing.
        unsafe { cpu::watch(addresses, control) };
    } else {
        cpu::watch_nothing();
    }
    data.set_watches(used);
    if debugging.is_stepped() {
        context.set_trap_flag(used);
    }
}

/// A debug exception, or INT3, at user level, while `thread` ran; its context is stored. A step that is not the last one is nobody's affair, nor
/// is an exception without a cause.
#[cold]
#[inline(never)]
pub fn on_exception(core: CoreId, thread: &Tcb, vector: u64) -> ! {
    let event = match vector {
        BREAKPOINT => Some(Event::Software),
        _ => thread
            .context()
            .debugging()
            .trapped(cpu::take_debug_status()),
    };
    match event {
        Some(event) => act(core, Trap::Exception(Exception::Debug(event))),
        // SAFETY: the thread that was interrupted. Its steps were counted before anybody else could be at it.
        None => unsafe { exit(core, thread) },
    }
}
