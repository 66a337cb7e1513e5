//! What is done with one of many threads in a queue: in that of an endpoint or notification, or
//! among those that wait for their budgets.

use alloc::vec::Vec;

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;

use crate::crowd::{self, Crowd, Member, Memories};
use crate::invoker::{self, Invoker};
use crate::machine::{Call, Machine, Refused};
use crate::parameters::Arrangement;
use crate::workshop::Workshop;

/// So many threads, and places, are tried one after the other: what the queue looks like there matters.
const TIMES: u64 = 64;

pub fn run<M: Machine>(
    machine: &mut M,
    arrangement: &Arrangement,
    size: u64,
) -> Result<(), Refused> {
    let mut workshop = Workshop::new(machine);
    let workshop = &mut workshop;
    let row = arrangement.value("row");
    let (object, act) = row.split_once('-').unwrap_or((row, ""));
    let act = act.split_once('-').map_or(act, |(act, _)| act);
    let invoker = Invoker::new(workshop, arrangement)?;
    let queue = match object {
        "notification" => workshop.make(types::NOTIFICATION, 0, 1)?,
        _ => workshop.make(types::ENDPOINT, 0, 1)?,
    };
    workshop.lower()?;
    let mut crowd = Crowd::new(workshop, arrangement, size)?;
    let memories = Memories::of(workshop.machine.memory().0);
    let mut members = Vec::with_capacity(size as usize);
    for _ in 0..size {
        let i = members.len() as u64;
        members.push(if object == "release" {
            crowd.wait_for_time(workshop, i, memories)?
        } else {
            let call = waiting(workshop, arrangement, row, queue)?;
            crowd.wait(workshop, i, call, memories)?
        });
    }
    if act == "insert" {
        return insert(workshop, arrangement, &invoker, queue, size);
    }
    for time in 0..TIMES.min(size) {
        let hit = spread(arrangement.number("hit"), time, size);
        let place = spread(arrangement.number("to"), time, size);
        let priority = priority(arrangement, place, size);
        workshop.lower()?;
        if let Some(&member) = members.get(hit as usize) {
            change(workshop, &invoker, member, act, priority, place)?;
            invoker.clear(workshop)?;
        }
    }
    Ok(())
}

/// Thing number `time` of those that are taken, beginning at `percent` of `size`.
fn spread(percent: u64, time: u64, size: u64) -> u64 {
    (percent * size / 100 + time * size / TIMES) % size.max(1)
}

/// The invoker itself comes to the queue, measured, at one place after the other.
fn insert<M: Machine>(
    workshop: &mut Workshop<M>,
    arrangement: &Arrangement,
    invoker: &Invoker,
    queue: u64,
    size: u64,
) -> Result<(), Refused> {
    let row = arrangement.value("row");
    let mut call = waiting(workshop, arrangement, row, queue)?;
    invoker.take(workshop, invoker::TARGET, queue)?;
    call.cap = invoker.address(invoker::TARGET);
    if call.reply != 0 {
        invoker.take(workshop, invoker::OTHER, call.reply)?;
        call.reply = invoker.address(invoker::OTHER);
    }
    for time in 0..TIMES {
        let place = spread(arrangement.number("to"), time, size);
        if row.starts_with("release") {
            invoker.configure(workshop, crowd::late(place))?;
            invoker.prioritise(workshop, priority(arrangement, 0, size))?;
            call = Call::new(Syscall::Yield, 0);
        } else {
            invoker.prioritise(workshop, priority(arrangement, place, size))?;
        }
        invoker.call(workshop, call)?;
        invoker.stop(workshop)?;
    }
    Ok(())
}

/// The priority at `place` of `size`; the highest place has one above all.
fn priority(arrangement: &Arrangement, place: u64, size: u64) -> u64 {
    crowd::priority(place, size, arrangement.number("distinct"))
}

/// How a thread waits at `queue`, for the operation `row`.
fn waiting<M: Machine>(
    workshop: &mut Workshop<M>,
    arrangement: &Arrangement,
    row: &str,
    queue: u64,
) -> Result<Call, Refused> {
    let with_reply = arrangement.value("manner") == "reply";
    Ok(
        match (row.ends_with("-sender"), row.ends_with("-receiver")) {
            (true, _) if with_reply => Call::new(Syscall::Call, queue),
            (true, _) => Call::new(Syscall::Send, queue),
            (_, true) if with_reply => {
                let reply = workshop.make(types::REPLY, 0, 1)?;
                Call::new(Syscall::Recv, queue).reply(reply)
            }
            _ => Call::new(Syscall::Wait, queue),
        },
    )
}

/// The invoker does `act` with `member`, measured.
fn change<M: Machine>(
    workshop: &mut Workshop<M>,
    invoker: &Invoker,
    member: Member,
    act: &str,
    priority: u64,
    place: u64,
) -> Result<(), Refused> {
    let (target, other) = (invoker::TARGET, invoker::OTHER);
    let (label, words, count, caps): (_, [u64; 2], _, &[usize]) = match act {
        "reprioritise" => (label::TCB_SET_PRIORITY, [priority, 0], 1, &[other]),
        // Neither a context nor a handler: what it has goes.
        "parameters" => (
            label::TCB_SET_SCHED_PARAMS,
            [0, priority],
            2,
            &[other, invoker::NOTHING, invoker::NOTHING],
        ),
        "configure" => return configure(workshop, invoker, member, place),
        "unbind" => {
            invoker.copy(workshop, target, member.context)?;
            return invoker.operate(workshop, target, label::SCHED_CONTEXT_UNBIND, &[], &[]);
        }
        _ => (label::TCB_SUSPEND, [0; 2], 0, &[]),
    };
    invoker.copy(workshop, target, member.tcb)?;
    invoker.copy(workshop, other, slot::TCB)?;
    invoker.operate(workshop, target, label, &words[..count], caps)
}

/// The context of `member` gets other parameters.
fn configure<M: Machine>(
    workshop: &mut Workshop<M>,
    invoker: &Invoker,
    member: Member,
    place: u64,
) -> Result<(), Refused> {
    let budget = crowd::late(place);
    let words = [budget.budget_us, budget.period_us, 0, 0, 0];
    let control = workshop.machine.control();
    invoker.copy(workshop, invoker::TARGET, control)?;
    invoker.copy(workshop, invoker::OTHER, member.context)?;
    let label = label::SCHED_CONTROL_CONFIGURE_FLAGS;
    let caps = [invoker::OTHER];
    invoker.operate(workshop, invoker::TARGET, label, &words, &caps)
}
