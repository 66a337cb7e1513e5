//! Domains (04, section 11): of a kernel that has one, and, in a profile that has them, of one with several (09, section 5).

use sandglass_abi::boot::slot;
use sandglass_abi::error::ErrorNumber;
use sandglass_abi::invocation as label;
use sandglass_abi::invocation::tcb_flags::FPU_DISABLED;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_abi::sched::domain::{DOMAINS, MAX_DURATION, SCHEDULE_LENGTH};
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::arch::MessageRegister;
use sandglass_kernel::event::{Event, Trap};
use sandglass_testkit::isa::{self, FPU_WORDS};
use sandglass_testkit::world::{Refused, Thread, World};

/// Entries of the schedule.
const LENGTH: u64 = SCHEDULE_LENGTH as u64;

fn refused(error: ErrorNumber, details: &[u64]) -> Result<Vec<u64>, Refused> {
    Err(Refused {
        error,
        details: details.to_vec(),
    })
}

#[test]
fn threads_are_in_the_first_domain() {
    let mut w = World::new();
    let thread = w.make_thread(50, 8);
    assert_eq!(thread.handle.at(&w.k).domain(), 0);
    let set = |w: &mut World, domain, caps: &[u64]| {
        w.invoke(slot::DOMAIN, label::DOMAIN_SET, &[domain], caps)
    };
    assert_eq!(set(&mut w, 0, &[thread.tcb]), Ok(vec![]));
    let argument = |i| refused(ErrorNumber::InvalidArgument, &[i]);
    assert_eq!(set(&mut w, DOMAINS, &[thread.tcb]), argument(0));
    let endpoint = w.make(types::ENDPOINT, 0);
    assert_eq!(set(&mut w, 0, &[endpoint]), argument(1));
    let short = refused(ErrorNumber::TruncatedMessage, &[]);
    assert_eq!(set(&mut w, 0, &[]), short);
}

#[test]
fn a_ready_thread_whose_domain_is_set_comes_first_among_its_equals() {
    let mut w = World::new();
    let first = w.start_thread(50, 1_000_000, 1_000_000);
    w.start_thread(50, 1_000_000, 1_000_000);
    w.invoke(slot::DOMAIN, label::DOMAIN_SET, &[0], &[first.tcb])
        .expect("its domain");
    w.sleep();
    assert_eq!(w.running(), Some(first.handle));
}

#[test]
fn all_entries_of_the_schedule_but_the_last_can_be_set() {
    let mut w = World::new();
    let configure = |w: &mut World, words: [u64; 3]| {
        w.invoke(slot::DOMAIN, label::DOMAIN_SCHEDULE_CONFIGURE, &words, &[])
    };
    let range = |last| refused(ErrorNumber::RangeError, &[0, last]);
    let (end, other) = (LENGTH - 1, DOMAINS);
    assert_eq!(configure(&mut w, [end, 0, 5]), range(end - 1), "the end");
    assert_eq!(
        configure(&mut w, [0, other, 5]),
        range(DOMAINS - 1),
        "another domain"
    );
    let long = refused(ErrorNumber::InvalidArgument, &[2]);
    assert_eq!(configure(&mut w, [0, 0, MAX_DURATION + 1]), long);
    assert_eq!(configure(&mut w, [0, 0, 0]), long, "the start is no end");
    assert_eq!(configure(&mut w, [0, 0, MAX_DURATION]), Ok(vec![]));
    assert_eq!(configure(&mut w, [0, 0, 1]), Ok(vec![]));
    let entry = w.k.domains.entry(0).expect("an entry");
    assert_eq!((entry.domain, entry.duration), (0, 1));
}

#[test]
fn the_schedule_starts_at_an_entry_that_is_no_end() {
    let mut w = World::new();
    let start = |w: &mut World, index| {
        w.invoke(
            slot::DOMAIN,
            label::DOMAIN_SCHEDULE_SET_START,
            &[index],
            &[],
        )
    };
    assert_eq!(start(&mut w, 0), Ok(vec![]));
    let end = refused(ErrorNumber::InvalidArgument, &[0]);
    assert_eq!(start(&mut w, LENGTH - 1), end);
    let range = refused(ErrorNumber::RangeError, &[0, LENGTH - 1]);
    for index in [LENGTH, u64::MAX] {
        assert_eq!(start(&mut w, index), range, "{index}");
    }
    assert_eq!(w.k.domains.start(), 0);
}

/// Lengths of the turns of domains 1 and 2, in ticks.
const TURNS: [u64; 2] = [3_000_000, 1_000_000];
/// By how much a turn may end early, and how long an event may take, in ticks.
const EARLY: u64 = 20_000;

/// A thread in each of the domains 1 and 2, with these budgets and a period of 2 ms, and a schedule of these alone, which
/// begins now.
fn two_domains(w: &mut World, budgets: [u64; 2]) -> [Thread; 2] {
    let mut threads = [(1, budgets[0]), (2, budgets[1])].map(|(domain, budget)| {
        // The longer the turn, the lower.
        let thread = w.start_thread(10 * domain, budget, 2_000);
        w.invoke(slot::DOMAIN, label::DOMAIN_SET, &[domain], &[thread.tcb])
            .expect("a domain");
        thread
    });
    for (i, ticks) in (0..).zip(TURNS) {
        let words = [i, i + 1, ticks];
        w.invoke(slot::DOMAIN, label::DOMAIN_SCHEDULE_CONFIGURE, &words, &[])
            .expect("an entry");
    }
    w.ran.clear();
    w.call_once(slot::DOMAIN, label::DOMAIN_SCHEDULE_SET_START, &[0], &[]);
    threads.sort_by_key(|thread| thread.handle.at(&w.k).domain());
    threads
}

/// When the context in `slot` ran without a break.
fn stretches(w: &World, slot: u64) -> Vec<(u64, u64)> {
    let own = w.context(slot).address().get();
    let mut stretches: Vec<(u64, u64)> = Vec::new();
    for &(from, to, context) in w.ran.iter().filter(|run| run.0 < run.1) {
        match stretches.last_mut() {
            _ if context != own => {}
            Some(last) if from - last.1 < EARLY => last.1 = to,
            _ => stretches.push((from, to)),
        }
    }
    stretches
}

#[test]
fn each_domain_has_its_turns_to_itself() {
    if DOMAINS == 1 {
        return;
    }
    let mut w = World::new();
    let threads = two_domains(&mut w, [2_000, 2_000]);
    let start = w.now();
    w.pass(3 * (TURNS[0] + TURNS[1]));
    for (thread, turn) in threads.iter().zip(TURNS) {
        let stretches = stretches(&w, thread.context);
        assert!(stretches.len() >= 3, "{stretches:?}");
        for (from, to) in &stretches[..3] {
            let length = to - from;
            assert!((turn - EARLY..=turn + EARLY).contains(&length), "{length}");
        }
    }
    let used: u64 = w.usage(start, w.now()).values().sum();
    assert!(w.now() - start - used < 10 * EARLY, "somebody always runs");
}

/// Its refill comes in the turn of the other domain, and there it waits.
#[test]
fn a_budget_that_comes_back_waits_for_its_domain() {
    if DOMAINS == 1 {
        return;
    }
    let mut w = World::new();
    let [one, two] = two_domains(&mut w, [500, 100]);
    let start = w.now();
    w.pass(3 * (TURNS[0] + TURNS[1]));
    // Turns end early, each a little, so that the later ones begin before their time.
    let slack = 2 * EARLY;
    let in_round = |at: u64| (at + slack - start) % (TURNS[0] + TURNS[1]);
    let (ones, twos) = (stretches(&w, one.context), stretches(&w, two.context));
    assert!(ones.len() >= 5 && twos.len() == 3, "{ones:?} {twos:?}");
    for (from, to) in ones {
        assert!(in_round(from) < TURNS[0] + slack && to - from <= 500_000 + EARLY);
    }
    for (from, to) in twos {
        assert!(in_round(from) >= TURNS[0] && to - from <= 100_000 + EARLY);
    }
}

#[test]
fn who_is_woken_in_another_domain_waits_for_its_turn() {
    if DOMAINS == 1 {
        return;
    }
    let mut w = World::new();
    let thread = w.start_thread(255, 1_000, 1_000);
    w.invoke(slot::TCB, label::TCB_SET_PRIORITY, &[100], &[slot::TCB])
        .expect("it runs");
    let signal = w.sleep();
    w.invoke(slot::DOMAIN, label::DOMAIN_SET, &[1], &[thread.tcb])
        .expect("a domain");
    w.wake(signal);
    assert_ne!(w.running(), Some(thread.handle));
    let words = [0, 1, TURNS[0]];
    w.invoke(slot::DOMAIN, label::DOMAIN_SCHEDULE_CONFIGURE, &words, &[])
        .expect("an entry");
    w.call_once(slot::DOMAIN, label::DOMAIN_SCHEDULE_SET_START, &[0], &[]);
    assert_eq!(w.running(), Some(thread.handle));
}

/// Sets entry `index` of the schedule.
fn schedule(w: &mut World, index: u64, domain: u64, ticks: u64) {
    let words = [index, domain, ticks];
    w.invoke(slot::DOMAIN, label::DOMAIN_SCHEDULE_CONFIGURE, &words, &[])
        .expect("an entry");
}

/// Puts `thread` into `domain`.
fn put(w: &mut World, thread: Thread, domain: u64) {
    w.invoke(slot::DOMAIN, label::DOMAIN_SET, &[domain], &[thread.tcb])
        .expect("a domain");
}

/// The schedule starts over at once.
fn start_over(w: &mut World) {
    w.call_once(slot::DOMAIN, label::DOMAIN_SCHEDULE_SET_START, &[0], &[]);
}

/// 04, section 11: a thread is of the domain of who makes it.
#[test]
fn who_is_made_in_a_domain_is_of_it() {
    if DOMAINS == 1 {
        return;
    }
    let domain = DOMAINS / 2;
    let mut w = World::new();
    let maker = w.start_thread(60, 1_000, 1_000);
    put(&mut w, maker, domain);
    schedule(&mut w, 0, domain, MAX_DURATION);
    start_over(&mut w);
    assert_eq!(w.running(), Some(maker.handle));
    let made = w.make_thread(50, 8);
    assert_eq!(u64::from(made.handle.at(&w.k).domain()), domain);
}

#[test]
fn a_ready_thread_leaves_the_queue_of_its_domain() {
    if DOMAINS == 1 {
        return;
    }
    let mut w = World::new();
    let gone = w.start_thread(60, 1_000, 1_000);
    let stays = w.start_thread(50, 1_000, 1_000);
    put(&mut w, gone, 1);
    w.sleep();
    assert_eq!(w.running(), Some(stays.handle));
    w.sleep_of(stays);
    assert_eq!(w.running(), None, "its domain has no turn");
}

#[test]
fn a_thread_that_waits_for_its_refill_waits_in_its_new_domain() {
    if DOMAINS == 1 {
        return;
    }
    let mut w = World::new();
    let thread = w.start_thread(255, 500, 10_000);
    let own = [100];
    w.invoke(slot::TCB, label::TCB_SET_PRIORITY, &own, &[slot::TCB])
        .expect("it runs");
    w.ran.clear();
    w.pass(600_000);
    assert_ne!(w.running(), Some(thread.handle), "it has used its budget");
    let first = stretches(&w, thread.context)[0].0;
    put(&mut w, thread, 1);
    schedule(&mut w, 0, 1, 50_000_000);
    start_over(&mut w);
    w.ran.clear();
    w.pass(20_000_000);
    let later = stretches(&w, thread.context);
    assert_eq!(later.len(), 2, "a budget in 10 ms");
    assert!(later[0].0 - first >= 10_000_000 - EARLY, "{later:?}");
}

/// Who is woken by the event in which its domain's turn ends runs when the next one comes.
#[test]
fn who_is_woken_as_a_turn_ends_is_not_lost() {
    if DOMAINS == 1 {
        return;
    }
    let mut w = World::new();
    let root = w.running();
    let (handler, signal) = (
        w.issue_irq(5).expect("issued"),
        w.make(types::NOTIFICATION, 0),
    );
    w.invoke(handler, label::IRQ_HANDLER_SET_NOTIFICATION, &[], &[signal])
        .expect("set");
    schedule(&mut w, 0, 0, 1_000_000);
    schedule(&mut w, 1, 1, 1_000_000);
    start_over(&mut w);
    w.wait(signal);
    // The timer has not fired yet.
    w.k.machine.advance(1_000_000);
    w.event(Event::Trap(Trap::Interrupt { irq: isa::irq(5) }));
    assert_eq!(w.running(), None, "the other domain has nobody");
    w.pass(1_000_000);
    assert_eq!(w.running(), root);
}

/// The root task, which does without the FPU, in domain 0, and another thread in domain 1, whose registers are in the FPU; it is
/// the turn of domain 0.
fn with_the_fpu_of_another_domain(w: &mut World) -> Thread {
    let root = w.running().expect("the root task");
    w.invoke(slot::TCB, label::TCB_SET_FLAGS, &[0, FPU_DISABLED], &[])
        .expect("flags");
    let thread = w.start_thread(50, 1_000, 1_000);
    w.invoke(slot::DOMAIN, label::DOMAIN_SET, &[1], &[thread.tcb])
        .expect("a domain");
    for (index, domain) in [(0, 1), (1, 0)] {
        let words = [index, domain, TURN];
        w.invoke(slot::DOMAIN, label::DOMAIN_SCHEDULE_CONFIGURE, &words, &[])
            .expect("an entry");
    }
    w.call_once(slot::DOMAIN, label::DOMAIN_SCHEDULE_SET_START, &[0], &[]);
    assert_eq!(w.running(), Some(thread.handle));
    w.k.machine.set_fpu_registers([0x77; FPU_WORDS]);
    w.pass(TURN);
    assert_eq!(w.running(), Some(root), "its domain's turn");
    thread
}

/// Ticks of an entry.
const TURN: u64 = 1_000_000;

/// 07, section 4: the registers of a thread outlive that it does without the FPU for a while, whoever's turn it was.
#[test]
fn the_fpu_is_taken_from_a_thread_of_another_domain_with_its_registers() {
    if DOMAINS == 1 {
        return;
    }
    let mut w = World::new();
    let thread = with_the_fpu_of_another_domain(&mut w);
    for words in [[0, FPU_DISABLED], [FPU_DISABLED, 0]] {
        w.invoke(thread.tcb, label::TCB_SET_FLAGS, &words, &[])
            .expect("flags");
        assert_eq!(w.k.core().fpu_owner(), None);
    }
    w.pass(TURN);
    assert_eq!(w.running(), Some(thread.handle));
    assert!(w.k.machine.fpu_enabled());
    assert_eq!(w.k.machine.fpu_registers(), [0x77; FPU_WORDS]);
}

/// 04, section 9.2: a thread that does not run because of its domain alone is not below its caller, and not on another core. So the
/// caller, which goes on at once, gets the result that it gets where it had to wait: by a Send, too.
#[test]
fn a_yield_by_a_send_has_the_same_result_whatever_the_domain() {
    for domain in 0..DOMAINS.min(2) {
        let mut w = World::new();
        let thread = w.start_thread(255, 1_000, 10_000);
        w.invoke(slot::DOMAIN, label::DOMAIN_SET, &[domain], &[thread.tcb])
            .expect("a domain");
        let caller = w.running();
        let info = MessageInfo::new(label::SCHED_CONTEXT_YIELD_TO, 0, 0, 1);
        w.syscall(Syscall::Send, thread.context, 0, info, &[0x1234]);
        // In this domain it runs first, until it stops.
        if w.running() == Some(thread.handle) {
            w.sleep_of(thread);
        }
        assert_eq!(w.running(), caller);
        let context = w.registers();
        let info = MessageInfo::from_raw(context.info());
        assert_eq!((info.label(), info.length()), (0, 1), "domain {domain}");
        let consumed = context.message(MessageRegister::Mr0);
        assert_ne!(consumed, 0x1234, "domain {domain}");
        assert_eq!(context.cap_register(), 0, "badge, domain {domain}");
    }
}
