//! The queue beside a list that is searched.

use proptest::prelude::*;
use sandglass_partitions::queue::{BitmapQueue, LEAST_SLOTS, MOST_SLOTS};

use sandglass_partitions::queue::Owned;

const ELEMENTS: usize = 12;

/// What is in the queue, in the order in which it came.
#[derive(Default)]
struct Model(Vec<(u64, usize)>);

impl Model {
    fn first(&self) -> Option<(u64, usize)> {
        // The first of those with the least value.
        self.0.iter().copied().min_by_key(|&(value, _)| value)
    }

    fn remove(&mut self, element: usize) -> bool {
        let before = self.0.len();
        self.0.retain(|&(_, other)| other != element);
        self.0.len() < before
    }
}

/// What to do: insert so far above the least value there is, or remove.
fn steps() -> impl Strategy<Value = Vec<(Option<u64>, usize)>> {
    let ahead = prop_oneof![0u64..4, 0u64..=LEAST_SLOTS as u64, Just(LEAST_SLOTS as u64)];
    prop::collection::vec((prop::option::weighted(0.6, ahead), 0..ELEMENTS), 0..300)
}

proptest! {
    /// The least value is first, and of equal ones that which came first, wherever in the numbers the values are and
    /// however often they pass from one half to the other.
    #[test]
    fn the_queue_is_an_ordered_list(steps in steps(), base in 0u64..1 << 40) {
        let mut memory = Owned::new(LEAST_SLOTS, ELEMENTS);
        let mut queue = BitmapQueue::new(memory.lend());
        let mut model = Model::default();
        let mut least = base;
        for (ahead, element) in steps {
            match ahead {
                Some(ahead) => {
                    least = model.first().map_or(least, |(value, _)| value);
                    if model.remove(element) {
                        queue.requeue(least + ahead, element);
                    } else if ahead % 2 == 0 {
                        queue.insert(least + ahead, element);
                    } else {
                        queue.requeue(least + ahead, element);
                    }
                    model.0.push((least + ahead, element));
                }
                None => {
                    let first = model.first().map(|(_, first)| first);
                    let element = first.filter(|first| first % 2 == element % 2).unwrap_or(element);
                    prop_assert_eq!(queue.remove(element), model.remove(element));
                }
            }
            prop_assert_eq!(queue.first(), model.first());
            for element in 0..ELEMENTS {
                let value = model.0.iter().find(|of| of.1 == element).map(|of| of.0);
                prop_assert_eq!(queue.contains(element), value.is_some());
                let same = model.0.iter().filter(|of| Some(of.0) == value).count();
                prop_assert!(value.is_none() || queue.is_alone(element) == (same == 1));
            }
        }
    }
}

/// Values pass from half to half without end, and three levels of integers find every one of them.
#[test]
fn values_wrap_around_in_queues_of_every_size() {
    let mut slots = LEAST_SLOTS;
    while slots <= MOST_SLOTS {
        let mut memory = Owned::new(slots, 2);
        let mut queue = BitmapQueue::new(memory.lend());
        let step = slots as u64 / 3 + 1;
        queue.insert(0, 0);
        queue.insert(step, 1);
        for turn in 0..20 {
            let element = turn as usize % 2;
            assert_eq!(queue.first(), Some((turn * step, element)), "{slots} slots");
            assert!(queue.remove(element));
            queue.insert((turn + 2) * step, element);
        }
        slots *= 2;
    }
}

#[test]
#[should_panic(expected = "too far")]
fn values_that_are_too_far_apart_are_not_mixed_up() {
    let mut memory = Owned::new(LEAST_SLOTS, 2);
    let mut queue = BitmapQueue::new(memory.lend());
    queue.insert(63, 0);
    queue.insert(63 + LEAST_SLOTS as u64 + 1, 1);
}
