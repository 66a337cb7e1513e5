//! Processor time: budgets, replenishment, release, yielding.

use sandglass_abi::boot::slot;
use sandglass_abi::error::ErrorNumber;
use sandglass_abi::fault;
use sandglass_abi::invocation as label;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::arch::Register;
use sandglass_kernel::event::{Event, Trap};
use sandglass_kernel::object::tcb::{Place, State};
use sandglass_kernel::time::refills::Refills;
use sandglass_testkit::isa::{self, SYSCALL_INSTRUCTION_BYTES};
use sandglass_testkit::service::service;
use sandglass_testkit::world::{Thread, World, KERNEL_PATH, US};

const ALL: u64 = 0b1111;
const SPORADIC: u64 = 1;

/// Address of a thread's context, as in `World::ran`.
fn payer(w: &World, thread: Thread) -> u64 {
    w.context(thread.context).address().get()
}

/// The most that `context` ran in any window of `length` ticks. Windows that start with a run are
/// enough: any other contains no more than the next one of these.
fn most_in_any_window(w: &World, context: u64, length: u64) -> u64 {
    let runs: Vec<_> = w.ran.iter().filter(|run| run.2 == context).collect();
    let inside = |from: u64| {
        let to = from + length;
        runs.iter()
            .map(|&&(a, b, _)| b.min(to).saturating_sub(a.max(from)))
            .sum()
    };
    let starts = runs.iter().map(|run| run.0);
    let ends = runs.iter().map(|run| run.1.saturating_sub(length));
    starts.chain(ends).map(inside).max().unwrap_or(0)
}

#[test]
fn a_spinning_thread_gets_its_budget_in_every_period_and_no_more() {
    let mut w = World::new();
    let thread = w.start_thread(100, 300, 1000);
    w.sleep();
    w.pass(20_000 * US);
    let context = payer(&w, thread);
    let most = most_in_any_window(&w, context, 1000 * US);
    assert!(most <= 300 * US + KERNEL_PATH, "{most} ticks in one window");
    let total = w.usage(0, u64::MAX)[&context];
    // Twenty periods; each costs a kernel path or two of the budget.
    assert!(
        total >= 20 * (300 * US - 3 * KERNEL_PATH),
        "only {total} ticks in 20 periods"
    );
}

/// 04, section 5.4: with a signal a passive thread gets the notification's context; what has not
/// been used of it starts anew only if it is sporadic.
#[test]
fn a_context_that_comes_with_a_signal_starts_anew_only_if_it_is_sporadic() {
    for flags in [0, SPORADIC] {
        let mut w = World::new();
        let notification = w.make(types::NOTIFICATION, 0);
        let thread = w.make_thread(50, 8);
        w.configure(thread.context, 100, 1_000, 0, flags);
        let bind = label::SCHED_CONTEXT_BIND;
        w.bind(thread);
        w.resume(thread);
        let wakes = w.sleep();
        w.wait(notification);
        w.wake(wakes);
        let unbind = label::SCHED_CONTEXT_UNBIND;
        w.invoke(thread.context, unbind, &[], &[]).expect("passive");
        w.invoke(thread.context, bind, &[], &[notification])
            .expect("bound");
        w.pass(3_000 * US);
        let context = w.context(thread.context).at(&w.k);
        let before = context.head().time;
        w.syscall(Syscall::Send, notification, 0, MessageInfo::default(), &[]);
        assert_eq!(
            thread.handle.at(&w.k).sched_context(),
            Some(w.context(thread.context))
        );
        let now = w.k.core().now();
        let expected = if flags == SPORADIC { now } else { before };
        assert_eq!(w.context(thread.context).at(&w.k).head().time, expected);
    }
}

/// 04, sections 5.3 and 5.4: the refills of a thread that runs as soon as a signal wakes it start anew then: a sporadic context's
/// because the thread wakes, another's because it is chosen.
#[test]
fn a_context_starts_anew_whose_thread_wakes_above_the_one_that_signals() {
    for flags in [0, SPORADIC] {
        let mut w = World::new();
        let gate = w.make(types::NOTIFICATION, 0);
        let sleeper = w.make_thread(100, 8);
        w.configure(sleeper.context, 100, 1_000, 0, flags);
        w.bind(sleeper);
        w.resume(sleeper);
        let below = w.start_thread(50, 1_000, 1_000);
        w.sleep();
        assert_eq!(w.running(), Some(sleeper.handle));
        w.wait(gate);
        w.pass(3_000 * US);
        assert_eq!(w.running(), Some(below.handle));
        w.syscall(Syscall::Send, gate, 0, MessageInfo::default(), &[]);
        assert_eq!(w.running(), Some(sleeper.handle));
        let head = w.context(sleeper.context).at(&w.k).head();
        assert_eq!(head.time, w.k.core().now(), "flags {flags}");
    }
}

/// 04, section 8.5: a thread is released in time though the timer left that out while a server above it ran on its client's
/// time: the client is below it, and is preempted.
#[test]
fn a_release_that_a_server_left_out_preempts_its_client() {
    let mut w = World::new();
    let s = service(&mut w);
    w.wake(s.root_wakes_by);
    let between = w.start_thread(150, 100, 2_000);
    w.wait(s.root_wakes_by);
    w.pass(300 * US);
    assert_eq!(w.running(), Some(s.client.handle));
    let due = w.context(between.context).at(&w.k).head().time;
    w.call(s.endpoint, &[]);
    // Where the server goes on, the timer is programmed for it.
    w.wake(s.root_wakes_by);
    w.wait(s.root_wakes_by);
    assert_eq!(w.running(), Some(s.server.handle));
    assert!(w.k.core().armed() > due);
    w.reply_recv(s.endpoint, s.reply, &[]);
    assert_eq!(w.running(), Some(s.client.handle));
    assert!(w.now() < due);
    w.pass(due + 50 * US - w.now());
    assert_eq!(w.running(), Some(between.handle));
}

/// 04, section 7: a thread that waits is only given a context whose head may be used now.
#[test]
fn a_thread_that_waits_is_given_a_context_only_when_that_is_released() {
    let mut w = World::new();
    let notification = w.make(types::NOTIFICATION, 0);
    let threads = [w.make_thread(50, 8), w.make_thread(40, 8)];
    for thread in threads {
        w.configure(thread.context, 100, 1_000, 0, 0);
        w.bind(thread);
        w.resume(thread);
    }
    let [waits, yields] = threads;
    let wakes = w.sleep();
    w.wait(notification);
    assert_eq!(w.running(), Some(yields.handle));
    w.syscall(Syscall::Yield, 0, 0, MessageInfo::default(), &[]);
    w.wake(wakes);
    for thread in threads {
        let unbind = label::SCHED_CONTEXT_UNBIND;
        w.invoke(thread.context, unbind, &[], &[]).expect("unbound");
    }
    let bind = label::SCHED_CONTEXT_BIND;
    let refused = w.invoke(yields.context, bind, &[], &[waits.tcb]);
    let refused = refused.expect_err("it is not released").error;
    assert_eq!(refused, ErrorNumber::IllegalOperation);
    w.invoke(waits.context, bind, &[], &[waits.tcb])
        .expect("it is released");
}

#[test]
fn a_sporadic_thread_keeps_its_budget_while_it_sleeps_and_no_more() {
    let mut w = World::new();
    let thread = w.make_thread(250, 8);
    w.configure(thread.context, 200, 1000, 8, SPORADIC);
    w.bind(thread);
    w.resume(thread);
    let timer = w.make(types::NOTIFICATION, 0);
    let ticker = w.start_thread(200, 100, 300);
    w.sleep();
    // The ticker signals at the start of each of its periods; the thread runs 50 µs and waits.
    for _ in 0..2000 {
        if w.running() == Some(ticker.handle) {
            w.syscall(Syscall::Send, timer, 0, MessageInfo::new(0, 0, 0, 1), &[]);
            w.syscall(Syscall::Yield, 0, 0, MessageInfo::default(), &[]);
        } else if w.running() == Some(thread.handle) {
            w.pass(50 * US);
            if w.running() == Some(thread.handle) {
                w.wait(timer);
            }
        } else {
            w.pass(10 * US);
        }
    }
    let most = most_in_any_window(&w, payer(&w, thread), 1000 * US);
    assert!(most <= 200 * US + KERNEL_PATH, "{most} ticks in one window");
    assert!(most >= 150 * US, "it runs at most {most} ticks");
}

/// A virtual machine may be paused while its clock goes on: the thread that ran then is charged
/// with more than a kernel's path. Its refills sum up to its budget all the same (ABI 04, section 2.3).
#[test]
fn a_machine_that_stood_still_makes_no_budget() {
    for minutes in [1, 100] {
        let mut w = World::new();
        let thread = w.start_thread(100, 2_000, 10_000);
        w.sleep();
        assert_eq!(w.running(), Some(thread.handle));
        w.k.machine.advance(minutes * 60_000_000 * US);
        w.event(Event::Trap(Trap::Timer));
        let refills = Refills::of(&w.k, w.context(thread.context));
        let sum: u64 = refills.iter().map(|refill| refill.amount).sum();
        assert_eq!(sum, 2_000 * US);
    }
}

#[test]
fn a_timeout_handler_is_told_badge_and_consumption() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let reply = w.make(types::REPLY, 0);
    let handler = w.mint(endpoint, ALL, 99).expect("minted");
    let thread = w.make_thread(100, 8);
    let words = [100, 1000, 0, 4711, 0];
    w.invoke(
        isa::SCHED_CONTROL,
        label::SCHED_CONTROL_CONFIGURE_FLAGS,
        &words,
        &[thread.context],
    )
    .expect("configured");
    w.invoke(thread.tcb, label::TCB_SET_TIMEOUT_ENDPOINT, &[], &[handler])
        .expect("a handler");
    w.bind(thread);
    w.resume(thread);
    let root = w.running().expect("the root task");
    w.recv(endpoint, reply);
    assert_eq!(w.running(), Some(thread.handle));
    w.pass(150 * US);
    assert_eq!(w.running(), Some(root), "the handler runs");
    let registers = w.registers();
    assert_eq!(
        MessageInfo::from_raw(registers.info()).label(),
        fault::TIMEOUT
    );
    assert_eq!(
        registers.cap_register(),
        99,
        "badge of the handler's endpoint"
    );
    let message = w.message_of(root);
    assert_eq!(message[0], 4711, "badge of the context");
    assert!(
        (99..=101).contains(&message[1]),
        "{} µs consumed of 100",
        message[1]
    );
    assert!(matches!(
        thread.handle.at(&w.k).state(),
        State::BlockedOnReply { .. }
    ));
    assert_eq!(
        thread.handle.at(&w.k).sched_context(),
        Some(w.context(thread.context))
    );
    // Reconfigured before the reply, it goes on at once.
    w.configure(thread.context, 100, 1000, 0, 0);
    w.reply_recv(endpoint, reply, &[]);
    assert_eq!(w.running(), Some(thread.handle));
}

#[test]
fn many_low_budgets_that_fall_due_do_not_disturb_a_high_thread() {
    // The number of timer events of the high thread's run does not depend on the herd.
    let events = |herd: usize| {
        let mut w = World::new();
        let high = w.start_thread(200, 9_000, 10_000);
        let threads: Vec<_> = (0..herd).map(|_| w.make_thread(10, 8)).collect();
        for thread in &threads {
            w.configure(thread.context, 20, 1000, 0, 0);
            w.bind(*thread);
            w.resume(*thread);
        }
        w.sleep();
        while w.running() == Some(high.handle) {
            w.pass(10 * US);
        }
        // Everybody exhausts its budget in turn; then the high thread runs, and all fall due.
        while w.running() != Some(high.handle) {
            w.pass(10 * US);
        }
        let begin = w.ran.len();
        while w.running() == Some(high.handle) {
            w.pass(100 * US);
        }
        let context = payer(&w, high);
        let run = &w.ran[begin..];
        let gap = run
            .windows(2)
            .filter(|pair| pair[0].2 == context && pair[1].2 == context)
            .map(|pair| pair[1].0 - pair[0].1)
            .max();
        (run.iter().filter(|run| run.2 == context).count(), gap)
    };
    let few = events(2);
    assert_eq!(
        few,
        events(50),
        "stretches of the high thread, and the longest gap between them"
    );
}

#[test]
fn a_released_thread_is_found_wherever_it_is_named() {
    let mut w = World::new();
    let thread = w.start_thread(10, 100, 1000);
    let notification = w.sleep();
    w.pass(200 * US);
    assert_eq!(thread.handle.at(&w.k).place(), Place::Release);
    // The root task spins above it while its time comes.
    w.wake(notification);
    w.pass(5_000 * US);
    w.invoke(thread.tcb, label::TCB_SUSPEND, &[], &[])
        .expect("suspended");
    assert_eq!(thread.handle.at(&w.k).place(), Place::None);
    assert_eq!(thread.handle.at(&w.k).state(), State::Inactive);
    w.resume(thread);
    w.wait(notification);
    assert_eq!(w.running(), Some(thread.handle));
}

/// The release queue is common to all domains (04, section 11).
#[test]
fn a_thread_that_is_put_into_a_domain_still_waits_for_its_refill() {
    let mut w = World::new();
    let thread = w.start_thread(10, 100, 1000);
    let notification = w.sleep();
    w.pass(200 * US);
    assert_eq!(thread.handle.at(&w.k).place(), Place::Release);
    w.wake(notification);
    w.invoke(slot::DOMAIN, label::DOMAIN_SET, &[0], &[thread.tcb])
        .expect("domain 0");
    w.wait(notification);
    w.pass(200 * US);
    assert_eq!(w.running(), None, "its budget does not come back at once");
    w.pass(600 * US);
    assert_eq!(w.running(), Some(thread.handle), "after its period it does");
}

/// A thread whose time has come counts as released, moved or not: to name it is no reason to
/// commit (04, section 3; docs, deliberate difference 8).
#[test]
fn naming_a_released_thread_commits_no_time() {
    let mut w = World::new();
    let thread = w.start_thread(10, 100, 1000);
    let notification = w.sleep();
    w.pass(200 * US);
    w.wake(notification);
    w.pass(2_000 * US);
    let consumed = |w: &mut World| {
        w.invoke(slot::SCHED_CONTEXT, label::SCHED_CONTEXT_CONSUMED, &[], &[])
            .expect("time")
    };
    let _ = consumed(&mut w);
    let (tcb, authority) = (thread.tcb, slot::TCB);
    w.invoke(tcb, label::TCB_SET_PRIORITY, &[11], &[authority])
        .expect("set");
    assert_eq!(consumed(&mut w), [0]);
}

#[test]
fn a_thread_that_configures_its_own_context_has_the_new_budget_at_once() {
    let mut w = World::new();
    let root = w.running();
    for (budget, period) in [(100, 1000), (5000, 5000), (300, 1000), (40, 1000)] {
        // What is left of the time before would limit the first period.
        w.configure(slot::SCHED_CONTEXT, 5000, 5000, 0, 0);
        w.configure(slot::SCHED_CONTEXT, budget, period, 0, 0);
        let entered = w.k.core().now();
        assert_eq!(w.k.core().budget_end(&w.k), entered + budget * US);
        // A microsecond early, or not (04, section 1).
        let end = entered + budget * US;
        assert_eq!(w.k.machine.deadline(), end - isa::PRECISION);
        // With less than 20 µs it could not enter the kernel again.
        w.pass((budget - 30) * US);
        assert_eq!(w.running(), root, "{budget} in {period}");
    }
    w.pass(30 * US);
    assert_eq!(w.running(), None, "40 in 1000");
}

/// Who is stopped while it waits to be told is not told any more; who waits for a context that is
/// gone, is told.
#[test]
fn a_yield_ends_with_either_side() {
    for suspends in [true, false] {
        let mut w = World::new();
        a_yield_ends(&mut w, suspends);
    }
}

fn a_yield_ends(w: &mut World, suspends: bool) {
    let other = w.start_thread(100, 5_000, 10_000);
    let yielder = w.start_thread(100, 5_000, 10_000);
    let controlled = label::TCB_SET_MC_PRIORITY;
    w.invoke(yielder.tcb, controlled, &[255], &[slot::TCB])
        .expect("may yield");
    let wakes = w.sleep();
    assert_eq!(w.running(), Some(yielder.handle));
    w.invoke_blocking(other.context, label::SCHED_CONTEXT_YIELD_TO);
    assert_eq!(w.running(), Some(other.handle));
    let context = w.context(other.context);
    assert_eq!(context.at(&w.k).yield_from(), Some(yielder.handle));
    w.wake(wakes);
    if suspends {
        w.invoke(yielder.tcb, label::TCB_SUSPEND, &[], &[])
            .expect("suspended");
        assert_eq!(context.at(&w.k).yield_from(), None);
    } else {
        w.delete(other.context).expect("deleted");
    }
    assert_eq!(yielder.handle.at(&w.k).yield_to(), None);
}

#[test]
fn yield_to_reports_what_the_other_consumed() {
    let mut w = World::new();
    let thread = w.start_thread(255, 5_000, 10_000);
    let root = w.running().expect("the root task");
    w.invoke_blocking(thread.context, label::SCHED_CONTEXT_YIELD_TO);
    assert_eq!(w.running(), Some(thread.handle));
    w.pass(2_000 * US);
    w.sleep_of(thread);
    assert_eq!(w.running(), Some(root));
    let consumed = w.result(root).expect("the result")[0];
    assert!((1_990..=2_020).contains(&consumed), "{consumed} µs");
    let again = w
        .invoke(thread.context, label::SCHED_CONTEXT_CONSUMED, &[], &[])
        .expect("time");
    assert!(again[0] <= 5, "the count starts anew: {again:?}");
}

/// Where the other cannot run now, the count starts anew by whatever system call; only the message is
/// for Call (01, section 6; 04, section 9.2 step 4).
#[test]
fn a_yield_to_that_nobody_waits_for_starts_the_count_anew() {
    for call in [Syscall::Send, Syscall::NBSend, Syscall::Call] {
        let mut w = World::new();
        let root = w.running().expect("the root task");
        let thread = w.start_thread(10, 1_000, 10_000);
        let notification = w.sleep();
        w.pass(2_000 * US);
        w.wake(notification);
        let info = MessageInfo::new(label::SCHED_CONTEXT_YIELD_TO, 0, 0, 0);
        w.syscall(call, thread.context, 0, info, &[]);
        if call == Syscall::Call {
            let told = w.result(root).expect("the thread waits for its refill");
            assert!((990..=1_020).contains(&told[0]), "{told:?} µs");
        } else {
            let left = root.at(&w.k).context().info();
            assert_eq!(left, info.raw(), "{call:?} is told nothing");
        }
        let again = w
            .invoke(thread.context, label::SCHED_CONTEXT_CONSUMED, &[], &[])
            .expect("time");
        assert_eq!(again, [0], "{call:?}");
    }
}

/// Until it is told, a Call has succeeded with nothing to tell, and has returned: suspended, the
/// thread goes on behind it, and the count is as it was (04, section 9.2).
#[test]
fn a_yielding_thread_has_returned_with_nothing() {
    let mut w = World::new();
    let other = w.start_thread(100, 5_000, 10_000);
    let yielder = w.start_thread(100, 5_000, 10_000);
    let controlled = label::TCB_SET_MC_PRIORITY;
    w.invoke(yielder.tcb, controlled, &[255], &[slot::TCB])
        .expect("may yield");
    let wakes = w.sleep();
    assert_eq!(w.running(), Some(yielder.handle));
    let registers = yielder.handle.at(&w.k).context();
    let behind = registers.get(Register::NextIp) + SYSCALL_INSTRUCTION_BYTES;
    w.invoke_blocking(other.context, label::SCHED_CONTEXT_YIELD_TO);
    assert_eq!(w.running(), Some(other.handle));
    assert_eq!(w.result(yielder.handle), Ok(vec![]));
    w.pass(1_000 * US);
    w.wake(wakes);
    w.invoke(yielder.tcb, label::TCB_SUSPEND, &[], &[])
        .expect("suspended");
    assert_eq!(w.result(yielder.handle), Ok(vec![]));
    let registers = yielder.handle.at(&w.k).context();
    assert_eq!(registers.get(Register::FaultIp), behind);
    let consumed = w
        .invoke(other.context, label::SCHED_CONTEXT_CONSUMED, &[], &[])
        .expect("time");
    assert!((990..=1_020).contains(&consumed[0]), "{consumed:?} µs");
}

#[test]
fn parameters_out_of_range_are_refused_with_the_range() {
    let mut w = World::new();
    let context = w.make(types::SCHED_CONTEXT, 7);
    let max = (u64::MAX / isa::TICKS_PER_UNIT) / 8;
    let configured = |w: &mut World, words: [u64; 5]| {
        w.invoke(
            isa::SCHED_CONTROL,
            label::SCHED_CONTROL_CONFIGURE_FLAGS,
            &words,
            &[context],
        )
        .expect_err("refused")
    };
    for (words, range) in [
        ([19, 1000, 0, 0, 0], [20, max]),
        ([max + 1, 1000, 0, 0, 0], [20, max]),
        ([100, max + 1, 0, 0, 0], [20, max]),
        ([100, 99, 0, 0, 0], [20, 99]),
        ([100, 1000, 1, 0, 0], [0, 0]),
    ] {
        let refused = configured(&mut w, words);
        assert_eq!(refused.error, ErrorNumber::RangeError, "{words:?}");
        assert_eq!(refused.details, range, "{words:?}");
    }
}

/// 04, section 6.4: a long operation that stopped its own caller is charged when it is preempted; a
/// slice is over then.
#[test]
fn a_slice_is_over_when_its_thread_is_stopped_in_a_long_operation() {
    let mut w = World::new();
    let memory = w.make(types::UNTYPED, 16);
    w.make_endpoints(memory, 200);
    let tcb = w.fresh_slot();
    w.retype(memory, types::TCB, 0, tcb, 1).expect("a thread");
    let spaces = [0, 0, 0];
    let frame = w.make(isa::types::PAGE, 0);
    let caps = [slot::CNODE, slot::VSPACE, frame];
    w.invoke(tcb, label::TCB_CONFIGURE, &spaces, &caps)
        .expect("the spaces");
    w.invoke(tcb, label::TCB_SET_PRIORITY, &[50], &[slot::TCB])
        .expect("a priority");
    let context = w.make(types::SCHED_CONTEXT, 8);
    w.configure(context, 10_000, 10_000, 0, 0);
    let handle = w.cap(tcb).word().get().expect("a thread");
    let thread = Thread {
        tcb,
        context,
        handle,
    };
    w.bind(thread);
    w.resume(thread);
    w.sleep();
    assert_eq!(w.running(), Some(handle));
    w.pass(3_000 * US);
    w.k.machine.set_interrupt_pending(true);
    let info = MessageInfo::new(label::CNODE_REVOKE, 0, 0, 2);
    w.syscall(Syscall::Call, slot::CNODE, 0, info, &[memory, 64]);
    w.k.machine.set_interrupt_pending(false);
    assert_eq!(w.running(), None);
    let context = w.context(context).at(&w.k);
    assert_eq!((context.slice_used(), context.thread()), (0, None));
    assert_eq!(context.head().amount, 10_000 * US);
}

#[test]
fn round_robin_threads_take_turns() {
    let mut w = World::new();
    let threads: Vec<_> = (0..3).map(|_| w.start_thread(50, 1000, 1000)).collect();
    w.sleep();
    w.pass(30_000 * US);
    let usage = w.usage(0, u64::MAX);
    for thread in threads {
        let share = usage[&payer(&w, thread)];
        assert!(share.abs_diff(10_000 * US) < 1_100 * US, "{share} of 30 ms");
    }
}

#[test]
fn idle_time_is_nobodys() {
    let mut w = World::new();
    w.sleep();
    assert_eq!(w.running(), None);
    w.pass(1_000 * US);
    w.event(Event::Trap(Trap::Timer));
    assert_eq!(w.running(), None);
}
