//! The debug calls of the debug kernel (01, section 7).

use core::fmt::Write;

use sandglass_abi::message::ipc_buffer;
use sandglass_abi::syscall::Syscall;

use super::{put_char, Name, AVAILABLE};
use crate::arch::{abi::invoke::irq, Platform};
use crate::cap::{lookup, CNodeCap};
use crate::ipc::message;
use crate::mem::{Kind, Ref};
use crate::object::tcb::NAME_BYTES;
use crate::object::{Core, Tcb};
use crate::time::schedule;
use crate::{CoreId, Kernel, CORES};

/// Whether this kernel has the debug call `call`: two of them are for several cores.
pub const fn has(call: Syscall) -> bool {
    match call {
        Syscall::DebugSendIPI | Syscall::DebugGetThreadAffinity => AVAILABLE && CORES > 1,
        _ => AVAILABLE,
    }
}

/// Performs the debug call `call` of `caller`. Wrong arguments print and return.
pub fn syscall(k: &Kernel, caller: Ref<Tcb>, call: Syscall) {
    if !AVAILABLE {
        return;
    }
    let context = caller.at(k).context();
    match call {
        Syscall::DebugPutChar => put_char(&k.machine, context.cap_register() as u8),
        Syscall::DebugDumpScheduler => dump_scheduler(k),
        Syscall::DebugHalt => {
            print!(k, "Debug halt called by {}\n", Name::of(k, caller));
            k.machine.halt(0);
        }
        Syscall::DebugCapIdentify => {
            let slot = lookup::slot(k, lookup::cspace(k, caller), context.cap_register());
            let kind = slot.map_or(Kind::Null, |slot| slot.at(k).cap().kind());
            context.set_badge(k, kind.number().into());
        }
        Syscall::DebugSnapshot => snapshot(k, caller),
        Syscall::DebugNameThread => name_thread(k, caller),
        Syscall::DebugSendIPI if !irq::send_ipi(k, context) => print!(k, "DebugSendIPI refused\n"),
        Syscall::DebugGetThreadAffinity => thread_affinity(k, caller),
        _ => {}
    }
}

fn dump_scheduler(k: &Kernel) {
    for core in CoreId::all() {
        if CORES > 1 {
            print!(k, "core {}\n", core.index());
        }
        dump_core(k, k.core_of(core));
    }
}

fn dump_core(k: &Kernel, core: &Core) {
    print!(k, "priority  thread\n");
    for priority in (0..=u8::MAX).rev() {
        let mut next = core.ready().first_of(priority);
        while let Some(thread) = next {
            print!(k, "{priority:>8}  {} (ready)\n", Name::of(k, thread));
            next = thread.at(k).ready_links().next();
        }
        let waiting = core.release().of(priority);
        let mut next = waiting.first();
        while let Some(thread) = next {
            let waits = schedule::waits_for_release(k, thread);
            let state = if waits { "waits" } else { "released" };
            print!(k, "{priority:>8}  {} ({state})\n", Name::of(k, thread));
            next = thread.at(k).links().next();
        }
    }
}

fn snapshot(k: &Kernel, caller: Ref<Tcb>) {
    let node = lookup::cspace(k, caller).cnode();
    let slots = node.and_then(CNodeCap::slots);
    let caps = (0..).map_while(|i| Some((i, slots?.slot(i)?.at(k).cap())));
    for (i, cap) in caps.filter(|(_, cap)| !cap.is_null()) {
        let address = cap.word().address().get();
        print!(k, "{i:>6}  {:?} at {address:#x}\n", cap.kind());
    }
}

/// The thread whose capability `caller` names.
fn named_thread(k: &Kernel, caller: Ref<Tcb>) -> Option<Ref<Tcb>> {
    let cptr = caller.at(k).context().cap_register();
    let slot = lookup::slot(k, lookup::cspace(k, caller), cptr)?;
    slot.at(k).cap().word().get()
}

/// The core of the thread that `caller` names, as its answer.
fn thread_affinity(k: &Kernel, caller: Ref<Tcb>) {
    let core = named_thread(k, caller).map(|thread| thread.at(k).core().index());
    match core {
        Some(core) => caller.at(k).context().set_badge(k, core as u64),
        None => print!(k, "sandglass: DebugGetThreadAffinity needs a TCB\n"),
    }
}

fn name_thread(k: &Kernel, caller: Ref<Tcb>) {
    let buffer = message::buffer(k, caller, true);
    let (Some(thread), Some(buffer)) = (named_thread(k, caller), buffer) else {
        print!(
            k,
            "sandglass: DebugNameThread needs a TCB and an IPC buffer\n"
        );
        return;
    };
    let mut name = [0; NAME_BYTES];
    let words = (0..).map(|i| buffer.read(k, ipc_buffer::MESSAGE + i));
    let bytes = words
        .flat_map(u64::to_le_bytes)
        .take_while(|&byte| byte != 0);
    for (target, byte) in name.iter_mut().zip(bytes) {
        *target = byte;
    }
    thread.at(k).set_name(k, name);
}
