//! The ordered queue, and the release queues over it, against sorted vectors.

mod world;

use proptest::prelude::*;
use sandglass_kernel::mem::queue::{Key, Queue};
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::tcb::Tcb;
use sandglass_kernel::time::release::ReleaseQueues;
use world::World;

const THREADS: u64 = 64;

/// What is in a queue, in order.
type Model = Vec<(Key, Ref<Tcb>)>;

/// A thread enters a queue with a rank and a priority, or leaves it.
#[derive(Clone, Copy, Debug)]
enum Step {
    Insert(usize, u64, u8),
    Remove(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let thread = || 0..THREADS as usize;
    // Few ranks and priorities, so that there are many equals.
    let priority = prop_oneof![0u8..4, Just(127), Just(128), Just(255)];
    let step = prop_oneof![
        3 => (thread(), 0u64..12, priority).prop_map(|(t, rank, p)| Step::Insert(t, rank, p)),
        2 => thread().prop_map(Step::Remove),
    ];
    prop::collection::vec(step, 1..300)
}

/// Applies `step` to a queue by `insert` and `remove`, and to the model.
fn apply(
    w: &World,
    model: &mut Model,
    threads: &[Ref<Tcb>],
    step: Step,
    insert: impl Fn(Ref<Tcb>, u64),
    remove: impl Fn(Ref<Tcb>),
) {
    let (Step::Insert(i, ..) | Step::Remove(i)) = step;
    let thread = threads[i];
    let position = model.iter().position(|entry| entry.1 == thread);
    match (step, position) {
        (Step::Insert(_, rank, priority), None) => {
            thread.at(&w.k).set_priority(priority);
            insert(thread, rank);
            model.push((thread.at(&w.k).links().key(), thread));
            model.sort_by_key(|entry| entry.0);
        }
        (Step::Remove(_), Some(at)) => {
            remove(thread);
            model.remove(at);
        }
        _ => {}
    }
}

fn world() -> (World, Vec<Ref<Tcb>>) {
    let mut w = World::new();
    let threads = (0..THREADS).map(|_| w.make_thread(0, 7).handle).collect();
    (w, threads)
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

#[test]
fn a_queue_answers_like_a_sorted_vector() {
    let (w, threads) = world();
    proptest!(config(), |(steps in steps())| {
        let queue = Queue::new();
        let mut model = Model::new();
        for &step in &steps {
            let insert = |thread, rank| queue.insert(&w.k, thread, rank);
            apply(&w, &mut model, &threads, step, insert, |thread| queue.remove(&w.k, thread));
            prop_assert!(queue.is_consistent(&w.k), "inconsistent after {step:?}");
            prop_assert_eq!(queue.first(), model.first().map(|entry| entry.1));
            for pair in model.windows(2) {
                prop_assert_eq!(queue.first_after(&w.k, pair[0].0), Some(pair[1].1));
            }
        }
    });
}

#[test]
fn release_queues_answer_like_a_sorted_vector() {
    let (w, threads) = world();
    proptest!(config(), |(steps in steps())| {
        let queues = ReleaseQueues::new();
        let mut model = Model::new();
        let priority = |entry: &&(Key, Ref<Tcb>)| entry.1.at(&w.k).priority();
        for &step in &steps {
            let insert = |thread, rank| queues.insert(&w.k, thread, rank);
            apply(&w, &mut model, &threads, step, insert, |thread| queues.remove(&w.k, thread));
            prop_assert!(queues.is_consistent(&w.k), "inconsistent after {step:?}");
            for now in 0..12 {
                let due = model.iter().filter(|entry| entry.0.rank <= now);
                prop_assert_eq!(queues.highest_due(now), due.map(|e| priority(&e)).max());
            }
            for floor in [None, Some(0), Some(2), Some(127), Some(254), Some(255)] {
                let above = model.iter().find(|entry| Some(priority(entry)) > floor);
                let time = above.map_or(u64::MAX, |entry| entry.0.rank);
                prop_assert_eq!(queues.earliest_above(floor), time);
            }
        }
    });
}
