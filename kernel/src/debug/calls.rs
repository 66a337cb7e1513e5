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
            context.set_badge(
                k,
                slot.map_or(Kind::Null, |slot| slot.at(k).cap().kind())
                    .number()
                    .into(),
            );
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
        let mut next = core.ready.first_of(priority);
        while let Some(thread) = next {
            print!(k, "{priority:>8}  {} (ready)\n", Name::of(k, thread));
            next = thread.at(k).ready_links().next();
        }
        let waiting = core.release.of(priority);
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
    let Some(slots) = node.and_then(CNodeCap::slots) else {
        return;
    };
    for i in 0..slots.length() {
        let Some(slot) = slots.slot(i) else {
            return;
        };
        let cap = slot.at(k).cap();
        if !cap.is_null() {
            print!(
                k,
                "{i:>6}  {:?} at {:#x}\n",
                cap.kind(),
                cap.word().address().get()
            );
        }
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
    match named_thread(k, caller) {
        Some(thread) => {
            let core = thread.at(k).core().index() as u64;
            caller.at(k).context().set_badge(k, core);
        }
        None => print!(k, "sandglass: DebugGetThreadAffinity needs a TCB\n"),
    }
}

fn name_thread(k: &Kernel, caller: Ref<Tcb>) {
    let thread = named_thread(k, caller);
    let buffer = message::buffer(k, caller, true);
    let (Some(thread), Some(buffer)) = (thread, buffer) else {
        print!(
            k,
            "sandglass: DebugNameThread needs a TCB and an IPC buffer\n"
        );
        return;
    };
    let mut name = [0; NAME_BYTES];
    for (i, chunk) in name.chunks_exact_mut(8).enumerate() {
        let bytes = buffer.read(k, ipc_buffer::MESSAGE + i).to_le_bytes();
        let ended = bytes.contains(&0);
        for (target, byte) in chunk
            .iter_mut()
            .zip(bytes.into_iter().take_while(|&b| b != 0))
        {
            *target = byte;
        }
        if ended {
            break;
        }
    }
    thread.at(k).set_name(k, name);
}
