//! The clock moves inside events: at preemption points, and when another core is made to leave user code.
//! Whatever moved it, nobody runs on time that is not theirs yet (docs/src/architecture/events.md).

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
use sandglass_abi::object as types;
use sandglass_kernel::event::{Event, Trap};
use sandglass_kernel::time::refills::Refills;
use sandglass_testkit::isa;
use sandglass_testkit::world::{World, US};

const HIGH: u8 = 101;

/// `waiters` threads wait at each of `endpoints`, one of them of a priority above that of whoever
/// deletes it, which preempts it for a moment. The root task goes on.
fn queue_receivers(w: &mut World, endpoints: &[u64], waiters: u64) {
    for _ in endpoints {
        for i in 0..waiters {
            let priority = if i == 0 { HIGH.into() } else { 50 };
            w.start_thread(priority, 1_000, 10_000);
        }
    }
    let sleep = w.sleep();
    // Those of high priority run first.
    let high = endpoints.iter().map(|&endpoint| (endpoint, 1));
    let low = endpoints.iter().map(|&endpoint| (endpoint, waiters - 1));
    for (endpoint, threads) in high.chain(low) {
        for _ in 0..threads {
            w.call(endpoint, &[]);
        }
    }
    assert_eq!(w.running(), None);
    w.wake(sleep);
}

/// A thread that may use 1 ms in every 10 ms deletes endpoints with queues, each when it has little more
/// than the least budget left, so that a look behind the last step finds that there is less. It goes on only
/// with the least budget, and runs for its budget, however many steps a deletion takes and whichever of them are followed by a look.
#[test]
fn a_deletion_that_ends_at_its_last_look_costs_no_more_than_the_budget() {
    const BUDGET: u64 = 1_000;
    const PERIOD: u64 = 10_000;
    /// What each look takes, and the least budget with a little more, in ticks.
    const LOOK: u64 = 5 * US;
    const LEAST: u64 = 12 * US;
    let deletions = (2..=9).flat_map(|waiters| (1..=10).map(move |looks| (waiters, looks)));
    for (waiters, looks) in deletions {
        let left = looks * LOOK + LEAST;
        let mut w = World::new();
        let endpoints: Vec<u64> = (0..4).map(|_| w.make(types::ENDPOINT, 0)).collect();
        queue_receivers(&mut w, &endpoints, waiters);
        let thread = w.start_thread(100, BUDGET, PERIOD);
        w.sleep();
        assert_eq!(w.running(), Some(thread.handle));
        let context = w.context(thread.context);
        let start = w.now();
        w.k.machine.set_ticks_per_look(LOOK);
        for &endpoint in &endpoints {
            let end = w.k.core().budget_end(&w.k);
            if w.running() != Some(thread.handle) || end < w.now() + left {
                break;
            }
            w.pass(end - w.now() - left);
            assert_eq!(w.running(), Some(thread.handle), "it has {left} ticks left");
            let words = [endpoint, 64];
            w.call_once(slot::CNODE, label::CNODE_DELETE, &words, &[]);
            if w.running().is_some_and(|r| r.at(&w.k).priority() == HIGH) {
                // Whoever was woken has nothing to do any more, and stops.
                w.event(Event::Trap(Trap::Exception(isa::data_fault(0))));
            }
            let head = Refills::of(&w.k, context).head();
            let runs = w.running() == Some(thread.handle);
            assert!(!runs || head.time <= w.now(), "it runs on time to come");
            let lasts = w.now() + w.k.constants.min_budget() <= w.k.core().budget_end(&w.k);
            assert!(!runs || lasts, "it runs on less than the least budget");
        }
        w.k.machine.set_ticks_per_look(0);
        w.pass((start + PERIOD * US).saturating_sub(w.now()));
        let ran = w.usage(start, start + PERIOD * US);
        let used = ran.get(&context.address().get()).copied().unwrap_or(0);
        assert!(used <= (BUDGET + 20) * US, "it ran {} us", used / US);
    }
}
