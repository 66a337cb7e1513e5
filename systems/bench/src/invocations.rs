//! Operations on objects, and Yield: system calls that return to their caller.

use alloc::vec::Vec;

use sandglass::abi::invocation;
use sandglass::abi::message::{ipc_buffer, MessageInfo};
use sandglass::abi::syscall::Syscall;
use sandglass::arch::{label, order};
use sandglass::cap::{Attributes, CPtr, Capability, Frame, FrameSize, ObjectType, Rights, Untyped};
use sandglass::{boot, thread_block, SetupError};

use crate::lab::{Home, Lab, Role, LONG};
use crate::results::report;
use crate::script::{Program, Step, Times, RUNS};

pub fn measure(lab: &mut Lab) -> Result<(), SetupError> {
    let alone = Step::new(Syscall::Yield, CPtr::NULL);
    for run in 0..RUNS {
        alone.perform(run);
    }
    one_step(lab, "yield-alone", &alone.times());
    set_priority(lab);
    contexts(lab)?;
    map(lab)?;
    retype(lab)
}

/// Reports a step whose system calls returned to their caller.
fn one_step(lab: &Lab, name: &str, times: &Times) {
    report(name, lab.overhead.around_syscall, |run| {
        (times.before[run], times.after[run])
    });
}

/// Reports steps of one run each: step i was performed as run i.
fn many_steps(lab: &Lab, name: &str, steps: &[Step]) {
    report(name, lab.overhead.around_syscall, |run| {
        let times = steps[run].times();
        (times.before[run], times.after[run])
    });
}

/// An invocation with at most four words and, beforehand in the IPC buffer, one capability.
fn invoke(cap: impl Capability, label: u64, length: usize, words: [u64; 4]) -> Step {
    Step::new(Syscall::Call, cap.cptr()).message(MessageInfo::new(label, 0, 1, length), words)
}

/// Puts the capability argument of the next invocations into the IPC buffer.
fn set_argument(cap: impl Capability) {
    thread_block::write_word(ipc_buffer::CAPS_OR_BADGES, cap.cptr().raw());
}

/// The root task, alone at the highest priorities, changes between two of them.
fn set_priority(lab: &Lab) {
    set_argument(boot::TCB);
    let steps: Vec<Step> = [254, 255]
        .into_iter()
        .cycle()
        .take(RUNS)
        .map(|priority| {
            invoke(
                boot::TCB,
                invocation::TCB_SET_PRIORITY,
                1,
                [priority, 0, 0, 0],
            )
        })
        .collect();
    for (run, step) in steps.iter().enumerate() {
        step.perform(run);
    }
    many_steps(lab, "set-priority-self", &steps);
}

/// A context goes to a ready thread of lower priority and back, whose priority changes, and whose registers are read:
/// what a scheduler at user level does.
fn contexts(lab: &mut Lab) -> Result<(), SetupError> {
    let context = lab.context(LONG)?;
    let role = Role::new(1, Home::Here);
    let tcb = lab.thread(role, context, Program::Script, 0)?;
    context.unbind()?;
    // Ready, but for the time.
    tcb.resume()?;
    let bind = invoke(context, invocation::SCHED_CONTEXT_BIND, 0, [0; 4]);
    let unbind = invoke(context, invocation::SCHED_CONTEXT_UNBIND, 0, [0; 4]);
    set_argument(tcb);
    for run in 0..RUNS {
        bind.perform(run);
        unbind.perform(run);
    }
    one_step(lab, "bind-context", &bind.times());
    one_step(lab, "unbind-context", &unbind.times());
    set_argument(boot::TCB);
    let set = invoke(tcb, invocation::TCB_SET_PRIORITY, 1, [2, 0, 0, 0]);
    let words = [0, order::COUNT as u64, 0, 0];
    let read = invoke(tcb, invocation::TCB_READ_REGISTERS, 2, words);
    for run in 0..RUNS {
        set.perform(run);
        read.perform(run);
    }
    one_step(lab, "set-priority-other", &set.times());
    one_step(lab, "read-registers", &read.times());
    tcb.suspend()?;
    Ok(())
}

/// Frames that were never mapped, into one page table.
fn map(lab: &mut Lab) -> Result<(), SetupError> {
    let process = &mut lab.process;
    let resources = &mut process.resources;
    let first: Frame = resources.create_many(FrameSize::Small.object_type(), RUNS as u64 + 1)?;
    let frame = |index: usize| Frame::at(first.address() + index as u64);
    // A large page's span, so that one page table serves all; mapping one page makes it.
    let address = process.space.reserve(FrameSize::Large.bytes(), 21)?;
    let page = |index: usize| address + index as u64 * FrameSize::Small.bytes();
    let attributes = Attributes::WriteBack;
    process.space.vspace().map(
        resources,
        frame(RUNS),
        page(RUNS),
        Rights::READ_WRITE,
        attributes,
    )?;
    for (name, rights) in [
        ("map-page", Rights::READ_WRITE),
        ("protect-page", Rights::READ),
    ] {
        set_argument(boot::VSPACE);
        let steps: Vec<Step> = (0..RUNS)
            .map(|run| {
                let words = [page(run), rights.raw(), attributes.raw(), 0];
                invoke(frame(run), label::PAGE_MAP, 3, words)
            })
            .collect();
        for (run, step) in steps.iter().enumerate() {
            step.perform(run);
        }
        many_steps(lab, name, &steps);
    }
    Ok(())
}

/// Frames of an untyped that has children, so that nothing is zeroed.
fn retype(lab: &mut Lab) -> Result<(), SetupError> {
    let resources = &mut lab.process.resources;
    let memory: Untyped = resources.untyped(18)?;
    let first = resources.allocate_slots(RUNS as u64 + 1)?;
    memory.retype(ObjectType::Page, first, 1)?;
    let (kind, size) = ObjectType::Page.arguments();
    let step = invoke(memory, invocation::UNTYPED_RETYPE, 6, [kind, size, 0, 0]);
    set_argument(boot::CNODE);
    for run in 0..RUNS {
        // The two last words: the slot, and the number of frames.
        thread_block::write_word(ipc_buffer::MESSAGE + 4, first.index() + 1 + run as u64);
        thread_block::write_word(ipc_buffer::MESSAGE + 5, 1);
        step.perform(run);
    }
    one_step(lab, "retype-frame", &step.times());
    // That frames were made.
    let last = Frame::at(first.index() + RUNS as u64);
    last.physical_address()?;
    Ok(())
}
