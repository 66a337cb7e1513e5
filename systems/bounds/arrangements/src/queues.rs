//! Objects with queues that are emptied: endpoints, notifications, memory full of them.

use sandglass_abi::invocation as label;
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;

use crate::crowd::{Crowd, Memories};
use crate::invoker::{self, Invoker};
use crate::machine::{Call, Machine, Refused};
use crate::parameters::{Arrangement, Operation};
use crate::workshop::Workshop;

/// Endpoints in memory that is revoked, and log2 of its bytes.
const ENDPOINTS: u64 = 100;
const MEMORY_BITS: u64 = 12;

/// The badge that is cancelled, and another.
const BADGE: u64 = 7;
const OTHER_BADGE: u64 = 8;

pub fn run<M: Machine>(
    machine: &mut M,
    arrangement: &Arrangement,
    size: u64,
) -> Result<(), Refused> {
    let mut workshop = Workshop::new(machine);
    let workshop = &mut workshop;
    let operation = arrangement.operation();
    let invoker = Invoker::new(workshop, arrangement)?;
    let is_revoked = operation == Operation::RevokeEndpoints;
    let memory = workshop.make(types::UNTYPED, MEMORY_BITS, 1)?;
    // Objects that come first, and cost a step each.
    let before = arrangement.number("before");
    let objects = if is_revoked { ENDPOINTS } else { 1 };
    let object = match operation {
        Operation::DeleteNotification => types::NOTIFICATION,
        _ => types::ENDPOINT,
    };
    let first = workshop.make_of(memory, object, 0, objects)?;
    if is_revoked && before > 0 {
        workshop.make_of(memory, types::ENDPOINT, 0, before)?;
    }
    let badged = match operation {
        Operation::CancelBadgedSends => Some([
            workshop.badged(first, BADGE)?,
            workshop.badged(first, OTHER_BADGE)?,
        ]),
        _ => None,
    };
    workshop.lower()?;
    let mut crowd = Crowd::new(workshop, arrangement, size)?;
    let memories = Memories::of(workshop.machine.memory().0);
    for i in 0..size {
        let cap = match badged {
            Some([badged, _]) if has_badge(arrangement, i) => badged,
            Some([_, other]) => other,
            None => first + i % objects,
        };
        let call = call(workshop, arrangement, cap)?;
        crowd.wait(workshop, i, call, memories)?;
    }
    crowd.settle(workshop);
    let (target, label) = match (operation, badged) {
        (Operation::CancelBadgedSends, Some([badged, _])) => {
            (badged, label::CNODE_CANCEL_BADGED_SENDS)
        }
        (Operation::RevokeEndpoints, _) => (memory, label::CNODE_REVOKE),
        _ => (first, label::CNODE_DELETE),
    };
    invoker.take(workshop, invoker::TARGET, target)?;
    invoker.operate_on_slot(workshop, label, invoker::TARGET)
}

/// Whether sender `i` has the badge that is cancelled.
fn has_badge(arrangement: &Arrangement, i: u64) -> bool {
    match arrangement.value("badges") {
        "half" => i.is_multiple_of(2),
        "third" => i.is_multiple_of(3),
        _ => true,
    }
}

/// How a thread waits at `cap`.
fn call<M: Machine>(
    workshop: &mut Workshop<M>,
    arrangement: &Arrangement,
    cap: u64,
) -> Result<Call, Refused> {
    let with_reply = arrangement.value("manner") == "reply";
    Ok(match (arrangement.operation(), with_reply) {
        (Operation::DeleteNotification, _) => Call::new(Syscall::Wait, cap),
        (Operation::DeleteReceivers, false) => Call::new(Syscall::Wait, cap),
        (Operation::DeleteReceivers, true) => {
            let reply = workshop.make(types::REPLY, 0, 1)?;
            Call::new(Syscall::Recv, cap).reply(reply)
        }
        (_, false) => Call::new(Syscall::Send, cap),
        (_, true) => Call::new(Syscall::Call, cap),
    })
}
