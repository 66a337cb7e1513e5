//! Endpoints and notifications at which the whole crowd waits.

use sandglass::abi::syscall::Syscall;
use sandglass::cap::{Endpoint, Rights, SchedArguments};
use sandglass::{println, Message, SetupError};

use crate::crowd::{HIGH, LOW, MIDDLE};
use crate::lab::{many, Cost, Lab};
use crate::program::Call;

/// Badge of half of the senders.
const BADGE: u64 = 7;

/// Operations that are repeated, because the shape of the queue matters: so often.
const TAKEN: usize = 4;

pub fn measure(lab: &mut Lab) -> Result<(), SetupError> {
    for size in lab.sizes.clone() {
        println!("bounds: queues of {size}");
        senders(lab, size)?;
        receivers(lab, size)?;
        waiters(lab, size)?;
    }
    Ok(())
}

/// Names of the operations on a queued thread.
struct Names {
    insert: &'static str,
    reprioritise: &'static str,
    parameters: &'static str,
    remove: &'static str,
}

fn senders(lab: &mut Lab, size: u64) -> Result<(), SetupError> {
    let resources = &mut lab.process.resources;
    let endpoint = resources.endpoint()?;
    let badged = resources.mint(endpoint, Rights::ALL, BADGE)?;
    let reply = resources.reply()?;
    let send = |cap: Endpoint| Call::new(Syscall::Send, cap.address());
    for (member, i) in lab.crowd.first(size).iter().zip(0..) {
        let cap = if i / 2 % 2 == 0 { badged } else { endpoint };
        member.start(&send(cap).once())?;
    }
    lab.settle()?;
    let names = Names {
        insert: "endpoint-insert-sender",
        reprioritise: "endpoint-reprioritise-sender",
        parameters: "endpoint-parameters-sender",
        remove: "endpoint-remove-sender",
    };
    one_more(lab, size, &names, send(endpoint))?;
    for _ in 0..TAKEN {
        many("endpoint-receive", size, Cost::First, || {
            endpoint.nb_recv(reply)
        });
    }
    let slot = lab.process.resources.slot_of(badged);
    many("cancel-badged-sends", size, Cost::Stretch, || {
        slot.cancel_badged_sends()
    })?;
    // They send again.
    lab.settle()?;
    lab.process.resources.delete(badged)?;
    many("endpoint-delete-senders", size, Cost::Stretch, || {
        lab.process.resources.delete(endpoint)
    })?;
    lab.process.resources.delete(reply)?;
    lab.crowd.stop(size)
}

fn receivers(lab: &mut Lab, size: u64) -> Result<(), SetupError> {
    let endpoint = lab.process.resources.endpoint()?;
    let receive = Call::new(Syscall::Wait, endpoint.address());
    for member in lab.crowd.first(size) {
        member.start(&receive.once())?;
    }
    lab.settle()?;
    let names = Names {
        insert: "endpoint-insert-receiver",
        reprioritise: "endpoint-reprioritise-receiver",
        parameters: "endpoint-parameters-receiver",
        remove: "endpoint-remove-receiver",
    };
    one_more(lab, size, &names, receive)?;
    for _ in 0..TAKEN {
        many("endpoint-send", size, Cost::First, || {
            endpoint.nb_send(Message::EMPTY)
        });
    }
    many("endpoint-delete-receivers", size, Cost::Stretch, || {
        lab.process.resources.delete(endpoint)
    })?;
    lab.crowd.stop(size)
}

fn waiters(lab: &mut Lab, size: u64) -> Result<(), SetupError> {
    let notification = lab.process.resources.notification()?;
    let wait = Call::new(Syscall::Wait, notification.address());
    for member in lab.crowd.first(size) {
        member.start(&wait.once())?;
    }
    lab.settle()?;
    let names = Names {
        insert: "notification-insert",
        reprioritise: "notification-reprioritise",
        parameters: "notification-parameters",
        remove: "notification-remove",
    };
    one_more(lab, size, &names, wait)?;
    for _ in 0..TAKEN {
        many("notification-signal", size, Cost::First, || {
            notification.signal()
        });
    }
    many("notification-delete", size, Cost::Stretch, || {
        lab.process.resources.delete(notification)
    })?;
    lab.crowd.stop(size)
}

/// The visitors join the queue, between the halves of the crowd, by `call`; their priorities are
/// changed, and they are taken out.
fn one_more(lab: &Lab, size: u64, names: &Names, call: Call) -> Result<(), SetupError> {
    let authority = lab.process.authority();
    lab.lower()?;
    for visitor in &lab.visitors {
        visitor.tcb.set_priority(authority, MIDDLE)?;
        visitor.prepare(&call.measured())?;
        many(names.insert, size, Cost::First, || visitor.tcb.resume())?;
    }
    lab.raise()?;
    for (visitor, i) in lab.visitors.iter().zip(0..) {
        let change = |priority| {
            many(names.reprioritise, size, Cost::First, || {
                visitor.tcb.set_priority(authority, priority)
            })
        };
        change(if i % 2 == 0 { LOW - 1 } else { HIGH + 1 })?;
        change(MIDDLE)?;
        let arguments = SchedArguments {
            mcp: 0,
            priority: if i % 2 == 0 { HIGH } else { LOW },
            sched_context: None,
            fault_handler: None,
        };
        many(names.parameters, size, Cost::First, || {
            visitor.tcb.set_sched_params(authority, arguments)
        })?;
        visitor.context.bind(visitor.tcb)?;
        many(names.remove, size, Cost::First, || visitor.tcb.suspend())?;
    }
    Ok(())
}
