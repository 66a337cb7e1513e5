//! Several cores and time (04, section 15): a core that stalls another one, and one that waits for its
//! turn in the kernel.

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::arch::Register;
use sandglass_kernel::event::{Event, Trap};
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::sched_context::Refill;
use sandglass_kernel::object::sched_context::SchedContext;
use sandglass_kernel::object::tcb::{Place, State};
use sandglass_kernel::time::account;
use sandglass_kernel::time::refills::Refills;
use sandglass_kernel::CoreId;
use sandglass_testkit::isa;
use sandglass_testkit::world::{Thread, World, US};

const ONE: CoreId = match CoreId::new(1) {
    Some(core) => core,
    None => panic!("the kernel is built for less"),
};

/// Ticks until another core has left user code.
const REMOTE_CALL: u64 = 2 * US;

/// A thread of `priority` with 5 of 10 ms that runs on core 1; the root task goes on, on core 0.
fn runs_on_one(w: &mut World, priority: u64) -> Thread {
    let thread = w.make_thread(priority, 8);
    w.configure_on(ONE, thread.context, 5_000, 10_000);
    w.bind(thread);
    w.resume(thread);
    w.take_looks();
    assert_eq!(w.k.core_of(ONE).thread(), Some(thread.handle));
    thread
}

/// A client and a server on core 1 that runs on the client's time; core 0 goes on. Also the reply object,
/// and the client's timeout handler.
fn lend_on_one(w: &mut World) -> (Thread, u64) {
    let (endpoint, handler) = (w.make(types::ENDPOINT, 0), w.make(types::ENDPOINT, 0));
    let reply = w.make(types::REPLY, 0);
    let server = runs_on_one(w, 70);
    w.go_to(ONE);
    w.recv(endpoint, reply);
    w.go_to(CoreId::BOOT);
    w.invoke(server.context, label::SCHED_CONTEXT_UNBIND, &[], &[])
        .expect("passive");
    let client = runs_on_one(w, 60);
    w.invoke(client.tcb, label::TCB_SET_TIMEOUT_ENDPOINT, &[], &[handler])
        .expect("a handler");
    w.take_looks();
    w.go_to(ONE);
    assert_eq!(w.running(), Some(client.handle));
    w.call(endpoint, &[]);
    assert_eq!(w.running(), Some(server.handle), "on the client's time");
    w.go_to(CoreId::BOOT);
    (client, reply)
}

/// 04, section 7.4: a timeout fault is for who has no time.
#[test]
fn an_answer_from_another_core_raises_no_timeout_while_there_is_budget() {
    let mut w = World::new();
    let (client, reply) = lend_on_one(&mut w);
    w.k.machine.set_ticks_per_remote_call(REMOTE_CALL);
    w.syscall(Syscall::Send, reply, 0, MessageInfo::default(), &[]);
    let tcb = client.handle.at(&w.k);
    assert_eq!(tcb.fault(), None);
    assert_eq!(tcb.state(), State::Running);
    assert_eq!(tcb.place(), Place::Ready);
}

/// The same for what is configured, and for what is yielded to.
#[test]
fn nobody_who_has_budget_is_postponed_by_being_stalled() {
    type Operation = fn(&mut World, Thread);
    let configure: Operation = |w, thread| {
        w.configure_on(ONE, thread.context, 4_000, 10_000);
    };
    let yield_to: Operation = |w, thread| {
        w.invoke(thread.context, label::SCHED_CONTEXT_YIELD_TO, &[], &[])
            .expect("yielded");
    };
    for operation in [configure, yield_to] {
        let mut w = World::new();
        let thread = runs_on_one(&mut w, 60);
        w.k.machine.set_ticks_per_remote_call(REMOTE_CALL);
        operation(&mut w, thread);
        assert_eq!(thread.handle.at(&w.k).place(), Place::Ready);
    }
}

/// To stall a core takes time. If that was the rest of the caller's budget, the operation has not begun,
/// and is done when there is time again.
#[test]
fn an_operation_whose_stall_took_the_rest_of_the_budget_begins_with_the_next() {
    let mut w = World::new();
    let (client, reply) = lend_on_one(&mut w);
    let caller = w.start_thread(90, 1_000, 10_000);
    let context = w.context(caller.context);
    w.sleep();
    assert_eq!(w.running(), Some(caller.handle));
    let end = w.k.core().budget_end(&w.k);
    w.pass(end - w.now() - 21 * US);
    w.k.machine.set_ticks_per_remote_call(REMOTE_CALL);
    w.syscall(Syscall::Send, reply, 0, MessageInfo::default(), &[]);
    assert_eq!(caller.handle.at(&w.k).place(), Place::Release);
    assert_eq!(caller.handle.at(&w.k).state(), State::Restart);
    let waits = matches!(client.handle.at(&w.k).state(), State::BlockedOnReply { .. });
    assert!(waits, "not answered yet");
    // In its next period.
    w.pass(9_500 * US);
    assert_eq!(w.running(), Some(caller.handle));
    assert!(Refills::of(&w.k, context).head().time <= w.now());
    assert_eq!(
        caller.handle.at(&w.k).context().get(Register::NextIp),
        caller.handle.at(&w.k).context().fault_ip(),
        "it makes the call again"
    );
}

/// So is the setting of a domain, and the copying of registers.
#[test]
fn an_invocation_that_could_not_stop_a_thread_in_time_has_not_begun() {
    for copies in [false, true] {
        let mut w = World::new();
        let thread = runs_on_one(&mut w, 60);
        let caller = w.start_thread(90, 1_000, 10_000);
        w.sleep();
        assert_eq!(w.running(), Some(caller.handle));
        let end = w.k.core().budget_end(&w.k);
        w.pass(end - w.now() - 21 * US);
        w.k.machine.set_ticks_per_remote_call(REMOTE_CALL);
        w.set_extra_caps(&[thread.tcb]);
        let (invoked, number) = match copies {
            true => (caller.tcb, label::TCB_COPY_REGISTERS),
            false => (slot::DOMAIN, label::DOMAIN_SET),
        };
        let info = MessageInfo::new(number, 0, 1, 1);
        w.syscall(Syscall::Call, invoked, 0, info, &[0]);
        assert_eq!(caller.handle.at(&w.k).place(), Place::Release);
        assert_eq!(caller.handle.at(&w.k).state(), State::Restart);
    }
}

/// 4 MiB of used memory, which a Retype is to zero, and a free slot.
fn used_memory(w: &mut World) -> (u64, u64) {
    let memory = w.make(types::UNTYPED, 22);
    let (half, target) = (w.fresh_slot(), w.fresh_slot());
    w.retype(memory, types::UNTYPED, 21, half, 1).expect("half");
    w.delete(half).expect("deleted");
    (memory, target)
}

/// Whoever waits for the kernel waits for one turn of each other core (docs, "Several cores"). A long
/// operation is a turn to the next preemption point, and goes on in the next.
#[test]
fn a_long_operation_makes_way_for_a_core_that_waits() {
    const TICKS_PER_LOOK: u64 = US;
    let mut w = World::new();
    let (memory, target) = used_memory(&mut w);
    let thread = w.make_thread(1, 8);
    w.configure_on(ONE, thread.context, 9_000, 10_000);
    w.bind(thread);
    w.resume(thread);
    w.take_looks();
    w.go_to(ONE);
    assert_eq!(w.running(), Some(thread.handle));
    w.k.machine.set_ticks_per_look(TICKS_PER_LOOK);
    let words = [types::ENDPOINT, 0, 0, 0, target, 1];
    let mut calls = 0;
    while w.cap(target).is_null() {
        // A core arrives in the middle of each turn.
        let arrival = w.now() + 100 * US;
        w.k.machine.set_arrival(CoreId::BOOT, Some(arrival));
        w.call_once(memory, label::UNTYPED_RETYPE, &words, &[slot::CNODE]);
        let late = w.now().saturating_sub(w.path + arrival);
        assert!(late <= TICKS_PER_LOOK, "core 0 waits for {late} ticks");
        calls += 1;
    }
    assert!(calls > 1, "the operation is long");
}

/// The head refill of a context, and what its thread has consumed, in ticks.
fn account_of(w: &World, context: Ref<SchedContext>) -> (Refill, u64) {
    let core = w.k.core_of(ONE);
    assert_eq!(core.context(), Some(context));
    (Refills::of(&w.k, context).head(), core.consumed())
}

/// Who waits for the kernel does not pay for it; a context that is not sporadic has the rest of its
/// budget later by as much, so that its windows hold.
#[test]
fn a_core_that_waits_for_its_turn_pays_for_what_it_did_only() {
    const WAITS: u64 = 300 * US;
    for flags in [0, sandglass_abi::sched::flags::SPORADIC] {
        let mut w = World::new();
        let thread = w.make_thread(60, 8);
        let control = isa::SCHED_CONTROL + ONE.index() as u64;
        let words = [1_000, 10_000, 0, 0, flags];
        let configure = label::SCHED_CONTROL_CONFIGURE_FLAGS;
        w.invoke(control, configure, &words, &[thread.context])
            .expect("a configuration");
        w.bind(thread);
        w.resume(thread);
        w.take_looks();
        let context = w.context(thread.context);
        w.go_to(ONE);
        w.pass(200 * US);
        let (before, consumed) = account_of(&w, context);
        assert_eq!(consumed, 0, "not looked at since it was chosen");
        let arrived = w.now();
        w.k.machine.advance(WAITS);
        account::waited(&w.k, arrived);
        w.event(Event::Trap(Trap::Look));
        let (after, consumed) = account_of(&w, context);
        let moved = if flags == 0 { WAITS } else { 0 };
        // The way out of the kernel, before user code, is its own.
        assert_eq!(consumed, 200 * US + w.path, "of its own");
        assert_eq!(after.time, before.time + moved);
        assert_eq!(after.amount, before.amount);
        let spare = w.k.core().budget_end(&w.k) - w.now();
        assert_eq!(spare, before.amount - consumed - w.path, "what is left");
    }
}

/// A core that is stalled while it waits for its turn left user code when it arrived.
#[test]
fn a_thread_that_is_stalled_while_it_waits_pays_until_it_arrived() {
    let mut w = World::new();
    let thread = runs_on_one(&mut w, 60);
    let context = w.context(thread.context);
    let start = w.k.core_of(ONE).now();
    let (before, _) = account_of(&w, context);
    let arrived = w.now();
    w.k.machine.set_arrival(ONE, Some(arrived));
    w.k.machine.advance(400 * US);
    w.invoke(thread.context, label::SCHED_CONTEXT_CONSUMED, &[], &[])
        .expect("its time");
    assert_eq!(w.k.core_of(ONE).thread(), None, "stalled");
    let head = Refills::of(&w.k, context).head();
    assert_eq!(before.amount - head.amount, arrived - start);
}
