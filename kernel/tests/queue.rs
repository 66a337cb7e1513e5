//! The ordered queue against a sorted vector.

mod world;

use proptest::prelude::*;
use sandglass_kernel::mem::queue::{Key, Queue};
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::tcb::Tcb;
use world::World;

const THREADS: u64 = 64;

/// What is in the queue, in order.
type Model = Vec<(Key, Ref<Tcb>)>;

#[derive(Clone, Debug)]
enum Step {
    Insert {
        thread: usize,
        rank: u64,
        priority: u8,
    },
    Remove {
        thread: usize,
    },
    ChangePriority {
        thread: usize,
        priority: u8,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let thread = 0..THREADS as usize;
    // Few ranks and priorities, so that there are many equals.
    prop_oneof![
        3 => (thread.clone(), 0u64..12, 0u8..6)
            .prop_map(|(thread, rank, priority)| Step::Insert { thread, rank, priority }),
        2 => thread.clone().prop_map(|thread| Step::Remove { thread }),
        1 => (thread, 0u8..6)
            .prop_map(|(thread, priority)| Step::ChangePriority { thread, priority }),
    ]
}

fn apply(w: &World, queue: &Queue, model: &mut Model, threads: &[Ref<Tcb>], step: &Step) {
    let position = |model: &Model, thread| model.iter().position(|entry| entry.1 == thread);
    match *step {
        Step::Insert {
            thread,
            rank,
            priority,
        } => {
            let thread = threads[thread];
            if position(model, thread).is_none() {
                thread.at(&w.k).set_priority(priority);
                queue.insert(&w.k, thread, rank);
                model.push((thread.at(&w.k).links().key(), thread));
                model.sort_by_key(|entry| entry.0);
            }
        }
        Step::Remove { thread } => {
            if let Some(at) = position(model, threads[thread]) {
                queue.remove(&w.k, threads[thread]);
                model.remove(at);
            }
        }
        Step::ChangePriority { thread, priority } => {
            if position(model, threads[thread]).is_some() {
                threads[thread].at(&w.k).set_priority(priority);
                queue.priority_changed(&w.k, threads[thread]);
            }
        }
    }
}

#[test]
fn the_queue_answers_like_a_sorted_vector() {
    let mut w = World::new();
    let threads: Vec<_> = (0..THREADS).map(|_| w.make_thread(0, 7).handle).collect();
    let config = ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(steps in prop::collection::vec(step(), 1..300))| {
        let queue = Queue::new();
        let mut model = Model::new();
        for step in &steps {
            apply(&w, &queue, &mut model, &threads, step);
            prop_assert!(queue.is_consistent(&w.k), "inconsistent after {step:?}");
            prop_assert_eq!(queue.first(), model.first().map(|entry| entry.1));
            let priority = |entry: &(Key, Ref<Tcb>)| entry.1.at(&w.k).priority();
            prop_assert_eq!(queue.highest(&w.k), model.iter().map(priority).max());
            for limit in 0..6 {
                let first = model.iter().find(|entry| priority(entry) >= limit);
                prop_assert_eq!(queue.first_of_priority(&w.k, limit), first.map(|e| e.1));
            }
            for rank in 0..12 {
                let due = model.iter().filter(|entry| entry.0.rank <= rank).map(priority).max();
                prop_assert_eq!(queue.highest_up_to(&w.k, rank), due);
            }
            for pair in model.windows(2) {
                prop_assert_eq!(queue.first_after(&w.k, pair[0].0), Some(pair[1].1));
            }
        }
    });
}
