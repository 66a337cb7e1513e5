//! What a long operation finds at a preemption point, it obeys.

use std::cell::Cell;

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::arch::Register;
use sandglass_kernel::event::Event;
use sandglass_testkit::isa::SYSCALL_INSTRUCTION_BYTES;
use sandglass_testkit::world::World;

/// log2 of the bytes of the memory that is revoked.
const MEMORY_BITS: u64 = 12;
/// Endpoints in it at which threads wait.
const ENDPOINTS: u64 = 6;

thread_local! {
    /// How often the clock was read.
    static READINGS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    READINGS.set(READINGS.get() + 1);
}

/// `waiters` threads wait at each of the endpoints from `first` on, and `before` at the one behind.
fn queue(w: &mut World, first: u64, waiters: u64, before: u64) {
    let all = ENDPOINTS * waiters + before;
    for _ in 0..all {
        w.start_thread(50, 1_000, 10_000);
    }
    let sleep = w.sleep();
    for i in 0..all {
        w.wait(match i.checked_sub(before) {
            Some(i) => first + i % ENDPOINTS,
            None => first + ENDPOINTS,
        });
    }
    assert_eq!(w.running(), None, "all of them wait");
    w.wake(sleep);
}

/// Revokes `memory` while an interrupt is pending; returns the most readings of the clock in an event.
fn revoke(w: &mut World, memory: u64) -> u64 {
    let caller = w.running().expect("the root task");
    let info = MessageInfo::new(label::CNODE_REVOKE, 0, 0, 2);
    let mut most = 0;
    READINGS.set(0);
    w.syscall(Syscall::Call, slot::CNODE, 0, info, &[memory, 64]);
    loop {
        most = most.max(READINGS.take());
        assert_eq!(
            w.running(),
            Some(caller),
            "it has the time and the priority"
        );
        let context = caller.at(&w.k).context();
        if context.get(Register::NextIp) != context.fault_ip() {
            return most;
        }
        context.set(
            &*w.k,
            Register::NextIp,
            context.fault_ip() + SYSCALL_INSTRUCTION_BYTES,
        );
        w.event(Event::Syscall);
    }
}

/// Whatever is revoked, and whatever step comes to a preemption point: a pending interrupt ends the
/// event there. So an event reads the clock on entry and at one preemption point.
#[test]
fn a_pending_interrupt_ends_a_revocation_at_the_next_look() {
    // Six waiters make eight steps of an endpoint, so that all looks come at the same one of them.
    for (waiters, before) in [1, 2, 6]
        .into_iter()
        .flat_map(|waiters| (0..8).map(move |before| (waiters, before)))
    {
        let mut w = World::new();
        let memory = w.make(types::UNTYPED, MEMORY_BITS);
        // The last is revoked first: where among the steps the others begin is up to it.
        let first = w.make_endpoints(memory, ENDPOINTS + 1);
        queue(&mut w, first, waiters, before);
        w.k.machine.set_clock_observer(Some(count));
        w.k.machine.set_interrupt_pending(true);
        let most = revoke(&mut w, memory);
        assert!(
            most <= 2,
            "{waiters} waiters at each endpoint, {before} at the first: an event looked {most} times"
        );
    }
}
