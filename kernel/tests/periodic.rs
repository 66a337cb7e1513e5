//! Threads that nobody disturbs, period after period: what they get, and when.
//!
//! Kernel paths take no time here unless a test says how much, so that what is found is exact.

use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::event::{Event, Trap};
use sandglass_testkit::isa::PRECISION;
use sandglass_testkit::world::{Thread, World, US};

const SPORADIC: u64 = 1;
const PERIODS: u64 = 10_000;

/// A world in which only one thread of 300 of 1000 µs is awake, and runs from now on.
fn alone(flags: u64) -> (World, Thread) {
    let mut w = World::new();
    w.path = 0;
    let thread = w.make_thread(100, 8);
    w.configure(thread.context, 300, 1000, 0, flags);
    w.bind(thread);
    w.resume(thread);
    w.sleep();
    assert_eq!(w.running(), Some(thread.handle));
    (w, thread)
}

/// Nobody runs until the timer fires, `late` ticks after its time.
fn wait_for_release(w: &mut World, late: u64) {
    assert_eq!(w.running(), None);
    let deadline = w.k.machine.deadline();
    w.k.machine.advance(deadline + late - w.now());
    w.event(Event::Trap(Trap::Timer));
}

fn give_up(w: &mut World) {
    w.syscall(Syscall::Yield, 0, 0, MessageInfo::default(), &[]);
}

/// A thread that has done its work and yields comes back exactly one period after it began, if
/// the least budget is left when it does.
#[test]
fn who_yields_begins_exactly_a_period_later() {
    for flags in [0, SPORADIC] {
        let (mut w, thread) = alone(flags);
        let first = w.now();
        for i in 0..PERIODS {
            assert_eq!(w.now(), first + i * 1000 * US, "period {i}, flags {flags}");
            w.pass((1 + i % 280) * US);
            assert_eq!(w.running(), Some(thread.handle));
            give_up(&mut w);
            wait_for_release(&mut w, 0);
        }
    }
}

/// Whoever enters the kernel with less than the least budget left has had its turn. What is left
/// joins the next refill, which comes earlier by as much (04, section 4): the budget is kept.
#[test]
fn what_is_less_than_the_least_budget_comes_with_the_next_refill() {
    for flags in [0, SPORADIC] {
        let (mut w, thread) = alone(flags);
        for i in 0..PERIODS {
            let left = (1 + i % 19) * US;
            let begin = w.now();
            w.pass(300 * US - left);
            if w.running() == Some(thread.handle) {
                give_up(&mut w);
            }
            wait_for_release(&mut w, 0);
            assert_eq!(w.now(), begin + 1000 * US - left, "flags {flags}");
            assert_eq!(w.k.machine.deadline(), w.now() + 300 * US - PRECISION);
        }
    }
}

/// A release that is noticed late makes the next one later for a constant-bandwidth context, which
/// starts anew when it is used; a sporadic one keeps its times (04, sections 5.3 and 5.4).
#[test]
fn only_a_sporadic_context_makes_up_for_a_late_release() {
    for flags in [0, SPORADIC] {
        let (mut w, thread) = alone(flags);
        let first = w.now();
        let mut sum = 0;
        for i in 1..PERIODS {
            w.pass(100 * US);
            give_up(&mut w);
            let late = i * 7919 % US;
            wait_for_release(&mut w, late);
            assert_eq!(w.running(), Some(thread.handle));
            sum += late;
            let behind = if flags == SPORADIC { late } else { sum };
            assert_eq!(w.now(), first + i * 1000 * US + behind, "period {i}");
        }
    }
}

/// The timer fires a microsecond before the end of a budget, or not before it, by the architecture. That microsecond joins
/// the next refill, which comes earlier by as much (04, sections 1 and 4): a thread that never stops has a
/// period and a budget that are shorter by a microsecond, exactly, so that its share is smaller by
/// less than a microsecond in a period.
#[test]
fn who_never_stops_has_all_but_a_microsecond_of_budget_and_period() {
    for flags in [0, SPORADIC] {
        let (mut w, thread) = alone(flags);
        let first = w.now();
        for i in 0..PERIODS {
            let begin = w.now();
            let (budget, period) = (300 * US - PRECISION, 1000 * US - PRECISION);
            assert_eq!(begin, first + i * period, "period {i}, flags {flags}");
            assert_eq!(w.k.machine.deadline(), begin + budget);
            w.pass(budget);
            assert_ne!(w.running(), Some(thread.handle));
            wait_for_release(&mut w, 0);
        }
    }
}

/// What the kernel takes to answer the timer is taken from that microsecond: a thread whose timer
/// is answered a microsecond late has its whole budget in exactly its period.
#[test]
fn who_is_stopped_at_the_very_end_has_its_whole_budget_in_its_period() {
    for flags in [0, SPORADIC] {
        let (mut w, _) = alone(flags);
        let first = w.now();
        for i in 0..PERIODS {
            assert_eq!(w.now(), first + i * 1000 * US, "period {i}, flags {flags}");
            w.k.machine.advance(300 * US);
            w.event(Event::Trap(Trap::Timer));
            wait_for_release(&mut w, 0);
        }
    }
}

/// A sporadic context that is not in use starts anew when its thread is woken (04, section 5.4), whether that runs at once,
/// or waits behind an equal or a more urgent thread.
#[test]
fn who_is_woken_starts_anew_even_if_others_run() {
    for (priority, runs) in [(99, false), (100, false), (101, true)] {
        let mut w = World::new();
        w.path = 0;
        let notification = w.make(types::NOTIFICATION, 0);
        let [waiter, signaller] = [(priority, SPORADIC), (100, 0)].map(|(priority, flags)| {
            let thread = w.make_thread(priority, 8);
            w.configure(thread.context, 300, 1000, 0, flags);
            w.bind(thread);
            thread
        });
        w.resume(waiter);
        let root_wakes_by = w.sleep();
        assert_eq!(w.running(), Some(waiter.handle));
        w.wait(notification);
        w.wake(root_wakes_by);
        w.resume(signaller);
        w.wait(root_wakes_by);
        assert_eq!(w.running(), Some(signaller.handle));
        w.pass(10 * US);
        w.syscall(Syscall::Send, notification, 0, MessageInfo::default(), &[]);
        assert_eq!(w.running() == Some(waiter.handle), runs, "{priority}");
        let now = w.k.core().now();
        let head = w.context(waiter.context).at(&w.k).head();
        assert_eq!(head.time, now, "{priority}");
    }
}
