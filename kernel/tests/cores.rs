//! Several cores (04, section 15), on the hosted machine: affinity, wake-ups, stalls, migration.

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
use sandglass_abi::invocation::tcb_flags::FPU_DISABLED;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::arch::{Context, Platform, Register};
use sandglass_kernel::event::{Event, Trap};
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::tcb::{Place, State, Tcb};
use sandglass_kernel::time::refills::Refills;
use sandglass_kernel::{CoreId, CORES};
use sandglass_testkit::isa::{self, FPU_WORDS, SYSCALL_INSTRUCTION_BYTES};
use sandglass_testkit::world::{Thread, World, US};

const ONE: CoreId = core(1);
const TWO: CoreId = core(2);

const fn core(number: u64) -> CoreId {
    match CoreId::new(number) {
        Some(core) => core,
        None => panic!("the kernel is built for less"),
    }
}

/// A thread of `priority` with 5 of 10 ms on `core`, started; that core has not looked yet.
fn start_on(w: &mut World, core: CoreId, priority: u64) -> Thread {
    let thread = w.make_thread(priority, 8);
    w.configure_on(core, thread.context, 5_000, 10_000);
    w.bind(thread);
    w.resume(thread);
    thread
}

/// Whoever runs on `core`.
fn runs_on(w: &World, core: CoreId) -> Option<Ref<Tcb>> {
    w.k.core_of(core).thread()
}

#[test]
fn new_threads_and_contexts_belong_to_the_core_that_booted() {
    let mut w = World::new();
    let thread = w.make_thread(10, 8);
    assert_eq!(thread.handle.at(&w.k).core(), CoreId::BOOT);
    assert_eq!(w.context(thread.context).at(&w.k).core(), CoreId::BOOT);
    assert_eq!(w.k.machine.cores() as usize, CORES);
}

#[test]
fn a_thread_goes_where_its_context_is() {
    let mut w = World::new();
    let thread = w.make_thread(10, 8);
    w.configure_on(TWO, thread.context, 1_000, 2_000);
    assert_eq!(thread.handle.at(&w.k).core(), CoreId::BOOT, "not bound yet");
    w.bind(thread);
    assert_eq!(thread.handle.at(&w.k).core(), TWO, "bound");
    w.configure_on(ONE, thread.context, 1_000, 2_000);
    assert_eq!(thread.handle.at(&w.k).core(), ONE, "configured for another");
    w.invoke(thread.context, label::SCHED_CONTEXT_UNBIND, &[], &[])
        .expect("unbound");
    assert_eq!(thread.handle.at(&w.k).core(), ONE, "it keeps the last one");
}

#[test]
fn an_idle_core_is_told_that_a_thread_is_ready() {
    let mut w = World::new();
    let thread = start_on(&mut w, ONE, 10);
    assert!(w.k.machine.is_interrupted(ONE), "it idles");
    assert!(!w.k.machine.is_interrupted(TWO), "nothing for it");
    assert_eq!(thread.handle.at(&w.k).place(), Place::Ready);
    w.take_looks();
    assert_eq!(runs_on(&w, ONE), Some(thread.handle));
    assert_eq!(
        w.k.core_of(ONE).context(),
        Some(w.context(thread.context)),
        "it pays for itself"
    );
    assert!(w.running().is_some(), "and the first core goes on");
}

#[test]
fn a_busy_core_is_told_of_higher_priorities_only() {
    let mut w = World::new();
    let running = start_on(&mut w, ONE, 50);
    w.take_looks();
    let equal = start_on(&mut w, ONE, 50);
    let lower = start_on(&mut w, ONE, 49);
    assert!(!w.k.machine.is_interrupted(ONE), "no reason to look");
    let higher = start_on(&mut w, ONE, 51);
    assert!(w.k.machine.is_interrupted(ONE));
    w.take_looks();
    assert_eq!(runs_on(&w, ONE), Some(higher.handle));
    // 50 again, in the order: who ran is the first of its equals.
    w.go_to(ONE);
    w.sleep_of(higher);
    assert_eq!(w.running(), Some(running.handle));
    w.sleep_of(running);
    assert_eq!(w.running(), Some(equal.handle));
    w.sleep_of(equal);
    assert_eq!(w.running(), Some(lower.handle));
}

#[test]
fn a_core_whose_queue_changes_decides_at_its_next_event_whatever_that_is() {
    let mut w = World::new();
    let low = start_on(&mut w, ONE, 50);
    w.take_looks();
    let high = start_on(&mut w, ONE, 60);
    w.go_to(ONE);
    assert_eq!(w.running(), Some(low.handle));
    w.syscall(Syscall::Yield, 0, 0, MessageInfo::default(), &[]);
    assert_eq!(w.running(), Some(high.handle), "before it looked");
    assert!(w.k.machine.take_interrupted(ONE));
    w.event(Event::Trap(Trap::Look));
    assert_eq!(w.running(), Some(high.handle), "and it stays");
}

/// After some system calls the scheduler never runs: SetTLSBase, debug calls. What another core has left to be decided is not
/// forgotten by them.
#[test]
fn a_decision_outlasts_calls_after_which_nobody_decides() {
    let call = if Context::SETS_TLS_BASE {
        Syscall::SetTLSBase
    } else if cfg!(feature = "debug") {
        Syscall::DebugPutChar
    } else {
        // Nobody can make such a call.
        return;
    };
    let mut w = World::new();
    let low = start_on(&mut w, ONE, 50);
    w.take_looks();
    let high = start_on(&mut w, ONE, 60);
    w.go_to(ONE);
    for _ in 0..2 {
        w.syscall(call, 0, 0, MessageInfo::default(), &[]);
        assert_eq!(w.running(), Some(low.handle), "the caller goes on");
    }
    assert!(w.k.machine.take_interrupted(ONE));
    w.event(Event::Trap(Trap::Look));
    assert_eq!(w.running(), Some(high.handle), "as soon as it looks");
}

#[test]
fn a_signal_wakes_a_thread_on_another_core() {
    let mut w = World::new();
    let waiter = start_on(&mut w, ONE, 10);
    let notification = w.make(types::NOTIFICATION, 0);
    w.take_looks();
    w.go_to(ONE);
    w.wait(notification);
    assert_eq!(w.running(), None, "the core idles");
    assert_eq!(w.k.machine.address_space(), None, "in no address space");
    w.go_to(CoreId::BOOT);
    w.syscall(Syscall::Send, notification, 0, MessageInfo::default(), &[]);
    assert_eq!(runs_on(&w, ONE), None, "not before it looks");
    w.take_looks();
    assert_eq!(runs_on(&w, ONE), Some(waiter.handle));
}

/// 04, section 15: who runs on another core is put back into its queue and is charged until then.
#[test]
fn what_runs_elsewhere_is_stopped_before_something_is_done_to_it() {
    let mut w = World::new();
    let thread = start_on(&mut w, ONE, 10);
    w.take_looks();
    let context = w.context(thread.context);
    let before = Refills::of(&w.k, context).head();
    w.go_to(CoreId::BOOT);
    w.k.machine.advance(100 * US);
    w.invoke(thread.tcb, label::TCB_SET_PRIORITY, &[20], &[slot::TCB])
        .expect("a priority");
    assert_eq!(w.k.machine.stalls_of(ONE), 1);
    assert_eq!(runs_on(&w, ONE), None, "the core runs nobody meanwhile");
    assert_eq!(thread.handle.at(&w.k).state(), State::Restart);
    let after = Refills::of(&w.k, context).head();
    assert!(
        before.amount - after.amount >= 100 * US && before.amount - after.amount < 110 * US,
        "it paid for what it ran: {before:?} {after:?}"
    );
    w.take_looks();
    assert_eq!(runs_on(&w, ONE), Some(thread.handle), "it goes on");
    assert_eq!(thread.handle.at(&w.k).priority(), 20);
}

#[test]
fn who_was_about_to_enter_the_kernel_when_it_was_stopped_enters_again() {
    let mut w = World::new();
    let thread = start_on(&mut w, ONE, 10);
    let notification = w.make(types::NOTIFICATION, 0);
    w.take_looks();
    // The thread has executed Wait; its core waits for its turn while this one suspends it.
    let context = thread.handle.at(&w.k).context();
    let ip = context.get(Register::NextIp);
    context.set(&*w.k, isa::NUMBER, Syscall::Wait.raw());
    context.set(&*w.k, isa::CAP, notification);
    context.set(&*w.k, Register::FaultIp, ip);
    context.set(&*w.k, Register::NextIp, ip + SYSCALL_INSTRUCTION_BYTES);
    w.invoke(thread.tcb, label::TCB_SUSPEND, &[], &[])
        .expect("suspended");
    // Its core has its turn.
    w.go_to(ONE);
    w.event(Event::Syscall);
    assert_eq!(w.running(), None, "nobody is there who called");
    w.go_to(CoreId::BOOT);
    w.resume(thread);
    w.take_looks();
    assert_eq!(runs_on(&w, ONE), Some(thread.handle));
    let context = thread.handle.at(&w.k).context();
    assert_eq!(context.get(Register::NextIp), ip, "it calls again");
}

#[test]
fn every_entry_of_a_core_whose_thread_is_gone_is_a_look() {
    let entries = [
        Event::Syscall,
        Event::Trap(Trap::Timer),
        Event::Trap(Trap::Interrupt { irq: 3 }),
        Event::Trap(Trap::Look),
    ];
    let exceptions = isa::exceptions().into_iter().map(Trap::Exception);
    for entry in entries.into_iter().chain(exceptions.map(Event::Trap)) {
        let mut w = World::new();
        let thread = start_on(&mut w, ONE, 10);
        let other = start_on(&mut w, ONE, 5);
        w.take_looks();
        w.invoke(thread.tcb, label::TCB_SUSPEND, &[], &[])
            .expect("suspended");
        w.go_to(ONE);
        w.event(entry);
        assert_eq!(w.running(), Some(other.handle), "{entry:?}");
    }
}

#[test]
fn a_thread_that_is_stopped_at_the_end_of_its_budget_waits_for_the_next() {
    let mut w = World::new();
    let thread = start_on(&mut w, ONE, 10);
    w.take_looks();
    let start = w.k.machine.clock_of(ONE);
    w.go_to(CoreId::BOOT);
    w.k.machine.advance(4_995 * US);
    w.invoke(thread.tcb, label::TCB_SET_PRIORITY, &[20], &[slot::TCB])
        .expect("a priority");
    assert_eq!(thread.handle.at(&w.k).place(), Place::Release);
    let due = thread.handle.at(&w.k).links().key().time();
    assert!(due >= start + 9_990 * US, "{due}");
    w.take_looks();
    assert_eq!(runs_on(&w, ONE), None);
    assert_eq!(w.k.machine.deadline_of(ONE), due, "its core wakes for it");
}

#[test]
fn the_timeout_handler_is_told_of_a_budget_that_was_over_when_its_thread_was_stopped() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let reply = w.make(types::REPLY, 0);
    let thread = w.make_thread(10, 8);
    w.invoke(
        thread.tcb,
        label::TCB_SET_TIMEOUT_ENDPOINT,
        &[],
        &[endpoint],
    )
    .expect("a handler");
    w.configure_on(ONE, thread.context, 5_000, 10_000);
    w.bind(thread);
    w.resume(thread);
    w.take_looks();
    w.k.machine.advance(4_995 * US);
    w.invoke(thread.tcb, label::TCB_SET_PRIORITY, &[20], &[slot::TCB])
        .expect("a priority");
    assert!(matches!(
        thread.handle.at(&w.k).state(),
        State::BlockedOnSend { .. }
    ));
    w.recv(endpoint, reply);
    let root = w.running().expect("the root task");
    assert_eq!(
        MessageInfo::from_raw(root.at(&w.k).context().info()).label(),
        sandglass_abi::fault::TIMEOUT
    );
}

/// Deliberate difference 1 of the ABI's README: to move hands out nothing.
#[test]
fn an_active_context_keeps_its_history_when_it_moves() {
    let mut w = World::new();
    let thread = start_on(&mut w, ONE, 10);
    w.take_looks();
    w.k.machine.advance(4_000 * US);
    w.configure_on(TWO, thread.context, 5_000, 10_000);
    assert_eq!(w.k.machine.stalls_of(ONE), 1);
    let refills = Refills::of(&w.k, w.context(thread.context));
    assert!(refills.head().amount <= 1_000 * US, "{:?}", refills.head());
    let all: u64 = refills.iter().map(|refill| refill.amount).sum();
    assert_eq!(all, 5_000 * US);
    w.take_looks();
    assert_eq!(runs_on(&w, ONE), None);
    assert_eq!(runs_on(&w, TWO), Some(thread.handle));
}

#[test]
fn a_thread_can_send_itself_to_another_core() {
    let mut w = World::new();
    let other = w.start_thread(9, 5_000, 10_000);
    let root = w.running().expect("the root task");
    let words = [4_000, 10_000, 0, 0, 0];
    let control = isa::SCHED_CONTROL + 2;
    w.call_once(
        control,
        label::SCHED_CONTROL_CONFIGURE_FLAGS,
        &words,
        &[slot::SCHED_CONTEXT],
    );
    assert_eq!(w.running(), Some(other.handle), "it is gone");
    w.take_looks();
    assert_eq!(runs_on(&w, TWO), Some(root));
    assert_eq!(w.result(root), Ok(vec![]), "and has its answer");
}

/// A passive server of priority 200 that waits at an endpoint, and a client of priority 100 on each
/// of `cores`.
fn service(w: &mut World, cores: &[CoreId]) -> (u64, u64, Thread, Vec<Thread>) {
    let endpoint = w.make(types::ENDPOINT, 0);
    let reply = w.make(types::REPLY, 0);
    let server = w.start_thread(200, 5_000, 10_000);
    let clients: Vec<_> = cores.iter().map(|&core| start_on(w, core, 100)).collect();
    let root_wakes_by = w.sleep();
    assert_eq!(w.running(), Some(server.handle));
    w.recv(endpoint, reply);
    w.wake(root_wakes_by);
    w.invoke(server.context, label::SCHED_CONTEXT_UNBIND, &[], &[])
        .expect("unbound");
    (endpoint, reply, server, clients)
}

#[test]
fn nothing_is_left_to_a_core_that_has_decided() {
    let unknown = if cfg!(not(feature = "debug")) {
        Syscall::DebugPutChar
    } else if !Context::SETS_TLS_BASE {
        Syscall::SetTLSBase
    } else {
        // This kernel knows both.
        return;
    };
    let mut w = World::new();
    let (endpoint, _, server, clients) = service(&mut w, &[ONE]);
    let client = clients[0];
    let caps = [slot::TCB, client.context, endpoint];
    w.invoke(client.tcb, label::TCB_SET_SCHED_PARAMS, &[100, 100], &caps)
        .expect("a fault handler");
    w.take_looks();
    start_on(&mut w, ONE, 150);
    assert!(w.k.core_of(ONE).undecided());
    w.go_to(ONE);
    assert_eq!(w.running(), Some(client.handle), "it has not looked");
    w.syscall(unknown, 0, 0, MessageInfo::default(), &[]);
    assert_eq!(w.running(), Some(server.handle), "on the client's time");
    assert!(!w.k.core_of(ONE).undecided());
}

#[test]
fn a_passive_server_runs_where_its_caller_is() {
    let mut w = World::new();
    let (endpoint, reply, server, clients) = service(&mut w, &[ONE, TWO]);
    w.take_looks();
    for (core, client) in [ONE, TWO].into_iter().zip(clients) {
        w.go_to(core);
        assert_eq!(w.running(), Some(client.handle));
        w.call(endpoint, &[1, 2, 3]);
        assert_eq!(w.running(), Some(server.handle), "on {core:?}");
        assert_eq!(server.handle.at(&w.k).core(), core);
        assert_eq!(w.message_of(server.handle), [1, 2, 3]);
        w.reply_recv(endpoint, reply, &[4]);
        assert_eq!(w.running(), Some(client.handle));
        assert_eq!(w.message_of(client.handle), [4]);
        assert_eq!(server.handle.at(&w.k).core(), core, "it keeps the last one");
    }
}

#[test]
fn a_caller_waits_while_the_server_serves_another_core() {
    let mut w = World::new();
    let (endpoint, reply, server, clients) = service(&mut w, &[ONE, TWO]);
    w.take_looks();
    w.go_to(ONE);
    w.call(endpoint, &[1]);
    w.go_to(TWO);
    w.call(endpoint, &[2]);
    assert_eq!(w.running(), None, "the server is busy");
    w.go_to(ONE);
    w.reply_recv(endpoint, reply, &[10]);
    assert_eq!(w.running(), Some(clients[0].handle));
    w.take_looks();
    assert_eq!(runs_on(&w, ONE), Some(clients[0].handle));
    assert_eq!(runs_on(&w, TWO), Some(server.handle), "the next one's turn");
    assert_eq!(w.message_of(server.handle), [2]);
    w.go_to(TWO);
    w.reply_recv(endpoint, reply, &[20]);
    assert_eq!(w.running(), Some(clients[1].handle));
    assert_eq!(w.message_of(clients[1].handle), [20]);
}

#[test]
fn the_registers_of_the_fpu_come_along() {
    let mut w = World::new();
    let (endpoint, reply, server, _) = service(&mut w, &[ONE, TWO]);
    w.take_looks();
    w.go_to(ONE);
    w.call(endpoint, &[]);
    w.k.machine.set_fpu_registers([77; FPU_WORDS]);
    w.reply_recv(endpoint, reply, &[]);
    assert_ne!(w.k.machine.fpu_registers(), [77; FPU_WORDS]);
    w.go_to(TWO);
    w.call(endpoint, &[]);
    assert_eq!(w.running(), Some(server.handle));
    assert_eq!(w.k.machine.fpu_registers(), [77; FPU_WORDS]);
    assert_ne!(w.k.core_of(ONE).fpu_owner(), Some(server.handle));
}

#[test]
fn who_may_not_use_the_fpu_cannot_after_it_has_sent_away_whose_registers_are_in_it() {
    let mut w = World::new();
    let low = start_on(&mut w, ONE, 10);
    w.take_looks();
    let high = start_on(&mut w, ONE, 20);
    w.invoke(high.tcb, label::TCB_SET_FLAGS, &[0, FPU_DISABLED], &[])
        .expect("flags");
    w.take_looks();
    w.go_to(ONE);
    assert_eq!(w.running(), Some(high.handle));
    assert_eq!(w.k.core().fpu_owner(), Some(low.handle));
    assert!(!w.k.machine.fpu_enabled());
    w.configure_on(TWO, low.context, 5_000, 10_000);
    assert_eq!(w.running(), Some(high.handle));
    assert_eq!(w.k.core().fpu_owner(), None);
    assert!(!w.k.machine.fpu_enabled());
}

#[test]
fn a_reply_from_another_core_stops_the_server_that_runs_on_the_time_lent() {
    let mut w = World::new();
    let (endpoint, reply, server, clients) = service(&mut w, &[ONE]);
    w.take_looks();
    w.go_to(ONE);
    w.call(endpoint, &[]);
    assert_eq!(runs_on(&w, ONE), Some(server.handle));
    w.go_to(CoreId::BOOT);
    w.syscall(Syscall::Send, reply, 0, MessageInfo::default(), &[]);
    assert_eq!(w.k.machine.stalls_of(ONE), 1);
    assert_eq!(server.handle.at(&w.k).sched_context(), None);
    w.take_looks();
    assert_eq!(runs_on(&w, ONE), Some(clients[0].handle));
}

#[test]
fn to_yield_to_a_thread_on_another_core_returns_at_once() {
    let mut w = World::new();
    let thread = start_on(&mut w, ONE, 255);
    w.take_looks();
    let root = w.running();
    let consumed = w
        .invoke(thread.context, label::SCHED_CONTEXT_YIELD_TO, &[], &[])
        .expect("what it consumed");
    assert_eq!(consumed.len(), 1);
    assert_eq!(w.running(), root);
    w.take_looks();
    assert_eq!(runs_on(&w, ONE), Some(thread.handle));
}

#[test]
fn deleting_a_thread_or_its_context_ends_it_on_its_core() {
    for delete_thread in [false, true] {
        let mut w = World::new();
        let thread = start_on(&mut w, ONE, 10);
        w.take_looks();
        let victim = if delete_thread {
            thread.tcb
        } else {
            thread.context
        };
        w.delete(victim).expect("deleted");
        assert_eq!(w.k.machine.stalls_of(ONE), 1);
        w.take_looks();
        assert_eq!(runs_on(&w, ONE), None);
        assert_eq!(w.k.core_of(ONE).context(), None);
    }
}

#[test]
fn only_cores_in_the_address_space_are_told_what_was_unmapped() {
    let mut w = World::new();
    let _runs = start_on(&mut w, ONE, 10);
    w.take_looks();
    let frame = w.make(isa::types::PAGE, 0);
    let vaddr = 0x50_0000;
    w.invoke(frame, isa::label::PAGE_MAP, &[vaddr, 3, 0], &[slot::VSPACE])
        .expect("mapped");
    let flushes = |w: &World| [CoreId::BOOT, ONE, TWO].map(|core| w.k.machine.flushes_of(core));
    let before = flushes(&w);
    w.invoke(frame, isa::label::PAGE_UNMAP, &[], &[])
        .expect("unmapped");
    let other = u64::from(isa::FORGETS_EVERYWHERE);
    assert_eq!(
        flushes(&w),
        [before[0] + 1, before[1] + 1, before[2] + other]
    );
    let table = w.make(isa::types::TABLES[0], 0);
    let words = [0x100_0000_0000, 0];
    w.invoke(table, isa::label::TABLE_MAP[0], &words, &[slot::VSPACE])
        .expect("mapped");
    let before = flushes(&w);
    w.invoke(table, isa::label::TABLE_UNMAP[0], &[], &[])
        .expect("unmapped");
    let other = u64::from(isa::FORGETS_EVERYWHERE);
    assert_eq!(
        flushes(&w),
        [before[0] + 1, before[1] + 1, before[2] + other]
    );
}

#[test]
fn a_priority_that_rises_is_felt_on_the_other_core() {
    let mut w = World::new();
    let running = start_on(&mut w, ONE, 50);
    let other = start_on(&mut w, ONE, 40);
    w.take_looks();
    assert_eq!(runs_on(&w, ONE), Some(running.handle));
    w.invoke(other.tcb, label::TCB_SET_PRIORITY, &[60], &[slot::TCB])
        .expect("a priority");
    assert_eq!(w.k.machine.stalls_of(ONE), 0, "it did not run");
    w.take_looks();
    assert_eq!(runs_on(&w, ONE), Some(other.handle));
}

#[test]
fn a_release_on_another_core_is_programmed_there() {
    let mut w = World::new();
    let thread = start_on(&mut w, ONE, 10);
    w.take_looks();
    // Used up on its own core.
    w.go_to(ONE);
    w.pass(5_000 * US);
    assert_eq!(w.running(), None);
    let due = w.k.machine.deadline_of(ONE);
    w.go_to(CoreId::BOOT);
    // Its priority changes: it waits all the same.
    w.invoke(thread.tcb, label::TCB_SET_PRIORITY, &[30], &[slot::TCB])
        .expect("a priority");
    assert!(
        !w.k.machine.is_interrupted(ONE),
        "its timer is set for then"
    );
    assert_eq!(w.k.machine.deadline_of(ONE), due);
    w.go_to(ONE);
    let rest = due.saturating_sub(w.now()) + US;
    w.pass(rest);
    assert_eq!(w.running(), Some(thread.handle));
}

#[test]
fn a_thread_for_a_core_that_does_not_run_waits_for_it() {
    let mut w = World::new();
    w.k.machine.set_cores(2);
    let thread = start_on(&mut w, TWO, 10);
    assert_eq!(thread.handle.at(&w.k).place(), Place::Ready);
    w.configure_on(ONE, thread.context, 5_000, 10_000);
    w.take_looks();
    assert_eq!(runs_on(&w, ONE), Some(thread.handle), "rescued");
}

/// Makes `thread` one that may not use the FPU: whoever used it last keeps its registers there.
fn disable_fpu(w: &mut World, thread: Thread) {
    use sandglass_abi::invocation::tcb_flags::FPU_DISABLED;
    w.invoke(thread.tcb, label::TCB_SET_FLAGS, &[0, FPU_DISABLED], &[])
        .expect("flags");
}

#[test]
fn registers_that_are_still_in_the_fpu_of_another_core_are_fetched() {
    let mut w = World::new();
    let (endpoint, reply, server, clients) = service(&mut w, &[ONE, TWO]);
    clients
        .iter()
        .for_each(|&client| disable_fpu(&mut w, client));
    w.take_looks();
    w.go_to(ONE);
    w.call(endpoint, &[]);
    w.k.machine.set_fpu_registers([77; FPU_WORDS]);
    w.reply_recv(endpoint, reply, &[]);
    assert_eq!(w.k.core_of(ONE).fpu_owner(), Some(server.handle));
    w.go_to(TWO);
    w.call(endpoint, &[]);
    assert_eq!(w.running(), Some(server.handle));
    assert_eq!(w.k.machine.fpu_registers(), [77; FPU_WORDS]);
    assert_eq!(w.k.core_of(ONE).fpu_owner(), None);
}

#[test]
fn the_fpu_forgets_a_thread_that_is_deleted_on_another_core() {
    let mut w = World::new();
    let thread = start_on(&mut w, ONE, 10);
    w.take_looks();
    assert_eq!(w.k.core_of(ONE).fpu_owner(), Some(thread.handle));
    w.delete(thread.tcb).expect("deleted");
    assert_eq!(w.k.core_of(ONE).fpu_owner(), None);
}

#[test]
fn the_end_of_an_address_space_is_felt_on_every_core_that_runs_in_it() {
    let mut w = World::new();
    let thread = w.make_thread(10, 8);
    let stranger = start_on(&mut w, TWO, 10);
    let memory = w.make(types::UNTYPED, 13);
    let root = w.fresh_slot();
    w.retype(memory, isa::types::ROOT_TABLE, 0, root, 1)
        .expect("a root table");
    w.invoke(slot::ASID_POOL, isa::label::ASID_POOL_ASSIGN, &[], &[root])
        .expect("an identifier");
    w.invoke(
        thread.tcb,
        label::TCB_SET_SPACE,
        &[0, 0],
        &[slot::NULL, slot::CNODE, root],
    )
    .expect("the spaces");
    w.configure_on(ONE, thread.context, 5_000, 10_000);
    w.bind(thread);
    w.resume(thread);
    w.take_looks();
    let own = w.cap(root).word().address();
    w.go_to(ONE);
    assert_eq!(w.k.machine.address_space(), Some(own));
    w.go_to(CoreId::BOOT);
    w.delete(root).expect("deleted");
    assert_eq!(w.k.machine.stalls_of(ONE), 0, "the thread's own is left");
    w.revoke(memory).expect("revoked");
    assert_eq!(w.k.machine.stalls_of(ONE), 1);
    assert_eq!(w.k.machine.stalls_of(TWO), 0, "not its business");
    assert_eq!(runs_on(&w, TWO), Some(stranger.handle));
    w.take_looks();
    w.go_to(ONE);
    assert_eq!(w.running(), Some(thread.handle));
    assert_eq!(
        w.k.machine.address_space(),
        None,
        "nothing is mapped for it"
    );
}

#[test]
fn registers_of_a_thread_that_runs_elsewhere_are_copied_as_they_are() {
    let mut w = World::new();
    let source = start_on(&mut w, ONE, 10);
    let target = w.make_thread(10, 8);
    w.take_looks();
    let copy_frame = sandglass_abi::invocation::registers_flags::COPY_TRANSFER_FRAME;
    source
        .handle
        .at(&w.k)
        .context()
        .set(&*w.k, isa::PLAIN, 1234);
    w.invoke(
        target.tcb,
        label::TCB_COPY_REGISTERS,
        &[copy_frame],
        &[source.tcb],
    )
    .expect("copied");
    assert_eq!(w.k.machine.stalls_of(ONE), 1);
    assert_eq!(target.handle.at(&w.k).context().get(isa::PLAIN), 1234);
}

#[test]
fn a_domain_can_be_set_for_a_thread_that_runs_elsewhere() {
    let mut w = World::new();
    let thread = start_on(&mut w, ONE, 10);
    w.take_looks();
    w.invoke(slot::DOMAIN, label::DOMAIN_SET, &[0], &[thread.tcb])
        .expect("a domain");
    assert_eq!(w.k.machine.stalls_of(ONE), 1);
    assert_eq!(thread.handle.at(&w.k).place(), Place::Ready);
    w.take_looks();
    assert_eq!(runs_on(&w, ONE), Some(thread.handle));
}

#[cfg(feature = "debug")]
#[test]
fn the_debug_kernel_says_where_a_thread_belongs() {
    let mut w = World::new();
    let thread = start_on(&mut w, TWO, 10);
    let affinity = Syscall::DebugGetThreadAffinity;
    w.syscall(affinity, thread.tcb, 0, MessageInfo::default(), &[]);
    assert_eq!(w.registers().get(isa::CAP), 2);
    assert_eq!(w.k.machine.take_console(), b"");
    w.syscall(affinity, slot::CNODE, 0, MessageInfo::default(), &[]);
    assert!(!w.k.machine.take_console().is_empty(), "that is no thread");
    w.syscall(Syscall::DebugSendIPI, 99, 0, MessageInfo::default(), &[]);
    assert!(!w.k.machine.take_console().is_empty(), "no such core");
    w.syscall(
        Syscall::DebugDumpScheduler,
        0,
        0,
        MessageInfo::default(),
        &[],
    );
    let dump = String::from_utf8(w.k.machine.take_console()).expect("text");
    assert_eq!(dump.matches("core ").count(), CORES);
}

/// 01, section 1: they are unknown system calls there.
#[cfg(not(feature = "debug"))]
#[test]
fn the_release_kernel_does_not_know_the_debug_calls_for_several_cores() {
    for call in [Syscall::DebugSendIPI, Syscall::DebugGetThreadAffinity] {
        let mut w = World::new();
        let root = w.running().expect("the root task");
        w.syscall(call, slot::TCB, 0, MessageInfo::default(), &[]);
        assert_eq!(root.at(&w.k).state(), State::Inactive, "{call:?} faults");
    }
}
