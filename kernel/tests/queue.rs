//! The ordered queue, and the release queues over it, against sorted vectors; the ready queues
//! against a deque for each priority.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::queue::{Key, Queue};
use sandglass_kernel::object::ready::ReadyQueues;
use sandglass_kernel::object::release::ReleaseQueues;
use sandglass_kernel::object::tcb::Tcb;
use sandglass_testkit::world::World;

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
    // Far apart as well as near each other.
    let rank =
        prop_oneof![3 => 0u64..12, 1 => (0u32..64).prop_map(|bit| 1 << bit), 1 => any::<u64>()];
    let step = prop_oneof![
        3 => (thread(), rank, priority).prop_map(|(t, rank, p)| Step::Insert(t, rank, p)),
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
            thread.at(&w.k).set_priority(&w.k, priority);
            insert(thread, rank);
            // Behind its equals.
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

/// Threads go into a queue with `insert`, and out; `next` finds who is behind another.
fn answers_like_a_sorted_vector(
    insert: impl Fn(&World, &Queue, Ref<Tcb>, u8),
    next: impl Fn(&World, &Queue, (Key, Ref<Tcb>)) -> Option<Ref<Tcb>>,
) {
    let (w, threads) = world();
    proptest!(config(), |(steps in steps())| {
        let queue = Queue::new();
        let mut model = Model::new();
        for &step in &steps {
            let insert = |thread, rank| insert(&w, &queue, thread, rank as u8);
            apply(&w, &mut model, &threads, step, insert, |thread| queue.remove(&w.k, thread));
            prop_assert!(queue.is_consistent(&w.k), "inconsistent after {step:?}");
            prop_assert_eq!(queue.first(), model.first().map(|entry| entry.1));
            for pair in model.windows(2) {
                prop_assert_eq!(next(&w, &queue, pair[0]), Some(pair[1].1));
            }
        }
    });
}

#[test]
fn a_queue_by_ranks_answers_like_a_sorted_vector() {
    answers_like_a_sorted_vector(
        |w, queue, thread, rank| queue.insert(&w.k, thread, rank),
        |w, _, (_, thread)| thread.at(&w.k).links().next(),
    );
}

#[test]
fn a_queue_by_numbered_ranks_answers_like_a_sorted_vector() {
    answers_like_a_sorted_vector(
        |w, queue, thread, rank| queue.insert_numbered(&w.k, thread, rank),
        |w, queue, (key, _)| queue.first_after(&w.k, key),
    );
}

/// A queue that is being emptied is a list: threads leave it from anywhere, and the first is taken, in the order in which they were.
/// When it is empty, it is a queue as before.
#[test]
fn a_queue_is_emptied_in_its_order_while_others_leave() {
    let (w, threads) = world();
    let leaves = prop::collection::vec(any::<(bool, u8)>(), 0..100);
    proptest!(config(), |(steps in steps(), leaves in leaves)| {
        let queue = Queue::new();
        for again in [false, true] {
            let mut model = Model::new();
            for &step in &steps {
                let insert = |thread, rank| queue.insert(&w.k, thread, rank as u8);
                apply(&w, &mut model, &threads, step, insert, |thread| queue.leave(&w.k, thread));
            }
            prop_assert!(queue.is_consistent(&w.k), "inconsistent, again: {again}");
            queue.begin_emptying(&w.k);
            prop_assert!(!queue.admits());
            for &(is_first, place) in &leaves {
                if is_first || model.is_empty() {
                    let first = (!model.is_empty()).then(|| model.remove(0).1);
                    prop_assert_eq!(queue.take_first(&w.k), first);
                } else {
                    let (_, thread) = model.remove(usize::from(place) % model.len());
                    queue.leave(&w.k, thread);
                }
                prop_assert_eq!(queue.first(), model.first().map(|entry| entry.1));
            }
            for (_, thread) in model {
                prop_assert_eq!(queue.take_first(&w.k), Some(thread));
            }
            prop_assert!(!queue.admits() && queue.is_empty());
            queue.end_emptying(&w.k);
            prop_assert!(queue.is_clear());
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
            let insert = |thread, time| queues.insert(&w.k, thread, time);
            apply(&w, &mut model, &threads, step, insert, |thread| queues.remove(&w.k, thread));
            prop_assert!(queues.is_consistent(&w.k), "inconsistent after {step:?}");
            let highest = model.iter().map(|entry| priority(&entry)).max();
            prop_assert_eq!(queues.highest(), highest);
            for floor in [None, Some(0), Some(2), Some(127), Some(254), Some(255)] {
                for now in 0..12 {
                    let due = model.iter().filter(|entry| entry.0.time() <= now);
                    let due = due.map(|e| priority(&e)).max().filter(|&due| Some(due) > floor);
                    prop_assert_eq!(queues.highest_due_above(now, floor), due);
                }
                let above = model.iter().find(|entry| Some(priority(entry)) > floor);
                let time = above.map_or(u64::MAX, |entry| entry.0.time());
                prop_assert_eq!(queues.earliest_above(floor), time);
            }
        }
    });
}

/// What happens to the ready queues; a thread that is in them leaves, one that is not enters.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// At the head, with this priority, or out.
    Enqueue(usize, u8),
    /// At the tail, with this priority, or out.
    Append(usize, u8),
    /// Whoever is first of all goes.
    Take,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let thread = || 0..THREADS as usize;
    // Both ends of each word of the bitmap.
    let priority = || prop::sample::select(vec![0u8, 1, 63, 64, 127, 128, 191, 192, 254, 255]);
    let turn = prop_oneof![
        3 => (thread(), priority()).prop_map(|(t, p)| Turn::Enqueue(t, p)),
        3 => (thread(), priority()).prop_map(|(t, p)| Turn::Append(t, p)),
        2 => Just(Turn::Take),
    ];
    prop::collection::vec(turn, 1..300)
}

#[test]
fn ready_queues_answer_like_a_deque_for_each_priority() {
    let (w, threads) = world();
    proptest!(config(), |(turns in turns())| {
        let queues = ReadyQueues::new();
        let mut model: BTreeMap<u8, VecDeque<Ref<Tcb>>> = BTreeMap::new();
        for &turn in &turns {
            let (thread, priority) = match turn {
                Turn::Take => {
                    let first = model.values_mut().next_back().and_then(VecDeque::pop_front);
                    prop_assert_eq!(queues.take_first(&w.k), first, "{:?}", turn);
                    model.retain(|_, queue| !queue.is_empty());
                    continue;
                }
                Turn::Enqueue(i, priority) | Turn::Append(i, priority) => (threads[i], priority),
            };
            let present = thread.at(&w.k).priority();
            if model.get(&present).is_some_and(|queue| queue.contains(&thread)) {
                queues.remove(&w.k, thread);
                model.entry(present).or_default().retain(|&other| other != thread);
                model.retain(|_, queue| !queue.is_empty());
            } else {
                thread.at(&w.k).set_priority(&w.k, priority);
                let queue = model.entry(priority).or_default();
                if matches!(turn, Turn::Enqueue(..)) {
                    queues.enqueue(&w.k, thread);
                    queue.push_front(thread);
                } else {
                    queues.append(&w.k, thread, w.k.core().now());
                    queue.push_back(thread);
                }
            }
            let highest = model.last_key_value().map(|(&priority, _)| priority);
            prop_assert_eq!(queues.highest(), highest, "after {:?}", turn);
            for (&priority, queue) in &model {
                let first = queues.first_of(priority);
                let links = std::iter::successors(first, |t| t.at(&w.k).ready_links().next());
                prop_assert!(links.eq(queue.iter().copied()), "order after {:?}", turn);
            }
            for floor in [0, 63, 64, 127, 254, 255] {
                prop_assert_eq!(queues.has_above(floor), highest > Some(floor));
                prop_assert_eq!(queues.has_from(floor), highest >= Some(floor));
            }
        }
    });
}

/// What is due beyond the greatest key is due with it: no period of these clocks is that long.
#[test]
fn keys_are_in_the_order_of_their_numbers() {
    const GREATEST: u64 = (1 << 63) - 1;
    proptest!(config(), |(first in any::<u64>(), second in any::<u64>())| {
        let [one, other] = [first, second].map(Key::new);
        prop_assert_eq!(one.number(), first.min(GREATEST));
        prop_assert_eq!(one.cmp(&other), first.min(GREATEST).cmp(&second.min(GREATEST)));
    });
}
