//! A binary heap of elements that know their own places in it, so that any of them can be taken out or given another
//! key. It allocates nothing: the heap is woven into the slice of its elements.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The part of an element that belongs to the heap. All zeros: the element is not in it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Node {
    /// Which element has the place in the heap whose number is this element's index.
    holder: u32,
    /// This element's place, counted from 1; 0: it is not in the heap.
    place: u32,
}

impl Node {
    pub const fn is_queued(self) -> bool {
        self.place != 0
    }
}

/// Something that can be in a heap.
pub trait Element {
    /// The least is first. Keys of elements in one heap differ, or their order does not matter.
    type Key: Ord;

    fn key(&self) -> Self::Key;
    fn node(&self) -> Node;
    fn node_mut(&mut self) -> &mut Node;
}

/// The element with the least key of a [`Heap`] of these. O(1).
pub fn first<T: Element>(elements: &[T], len: u32) -> Option<usize> {
    let top = elements.first().filter(|_| len > 0)?;
    Some(top.node().holder as usize)
}

/// A heap of some of `elements`, of which there are at most 2^32 - 1.
///
/// Invariants, with `holder(p)` = `elements[p].node().holder` for places p below `len`:
/// `elements[holder(p)].node().place == p + 1`; no key is below that of its parent.
#[derive(Debug)]
pub struct Heap<'a, T> {
    pub elements: &'a mut [T],
    /// How many elements are in the heap: they have the places below that.
    pub len: &'a mut u32,
}

impl<T: Element> Heap<'_, T> {
    /// Puts an element where its key, which may have changed, belongs. O(log n).
    pub fn put(&mut self, element: usize) {
        let place = match self.elements[element].node().place.checked_sub(1) {
            Some(place) => place as usize,
            None => {
                let last = *self.len as usize;
                *self.len += 1;
                self.set(last, element);
                last
            }
        };
        let place = self.rise(place);
        self.sink(place);
    }

    /// Takes an element out, if it is in. O(log n).
    pub fn remove(&mut self, element: usize) {
        let Some(place) = self.elements[element].node().place.checked_sub(1) else {
            return;
        };
        *self.len -= 1;
        self.elements[element].node_mut().place = 0;
        let last = self.holder(*self.len as usize);
        if last != element {
            self.set(place as usize, last);
            let place = self.rise(place as usize);
            self.sink(place);
        }
    }

    fn holder(&self, place: usize) -> usize {
        self.elements[place].node().holder as usize
    }

    fn set(&mut self, place: usize, element: usize) {
        self.elements[place].node_mut().holder = element as u32;
        self.elements[element].node_mut().place = place as u32 + 1;
    }

    fn is_before(&self, a: usize, b: usize) -> bool {
        self.elements[self.holder(a)].key() < self.elements[self.holder(b)].key()
    }

    fn swap(&mut self, a: usize, b: usize) {
        let (at_a, at_b) = (self.holder(a), self.holder(b));
        self.set(a, at_b);
        self.set(b, at_a);
    }

    fn rise(&mut self, mut place: usize) -> usize {
        while place > 0 && self.is_before(place, (place - 1) / 2) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        place
    }

    fn sink(&mut self, mut place: usize) {
        let len = *self.len as usize;
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            if left >= len {
                return;
            }
            let least = match right < len && self.is_before(right, left) {
                true => right,
                false => left,
            };
            if !self.is_before(least, place) {
                return;
            }
            self.swap(least, place);
            place = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[derive(Clone, Copy, Default)]
    struct Item {
        time: u64,
        index: usize,
        node: Node,
    }

    impl Element for Item {
        type Key = (u64, usize);

        fn key(&self) -> Self::Key {
            (self.time, self.index)
        }

        fn node(&self) -> Node {
            self.node
        }

        fn node_mut(&mut self) -> &mut Node {
            &mut self.node
        }
    }

    const ITEMS: usize = 9;

    proptest! {
        #[test]
        fn the_heap_is_an_ordered_set(
            steps in prop::collection::vec((any::<bool>(), 0..ITEMS, 0u64..6), 0..200),
        ) {
            let mut items: [Item; ITEMS] = core::array::from_fn(|index| Item {
                index,
                ..Item::default()
            });
            let mut len = 0;
            let mut set = BTreeSet::new();
            for (put, index, time) in steps {
                set.retain(|&(_, other)| other != index);
                if put {
                    items[index].time = time;
                    set.insert((time, index));
                }
                let mut heap = Heap { elements: &mut items, len: &mut len };
                match put {
                    true => heap.put(index),
                    false => heap.remove(index),
                }
                prop_assert_eq!(first(&items, len), set.first().map(|&(_, index)| index));
                prop_assert_eq!(len as usize, set.len());
                for (index, item) in items.iter().enumerate() {
                    let queued = set.iter().any(|&(_, other)| other == index);
                    prop_assert_eq!(item.node.is_queued(), queued);
                }
            }
        }
    }
}
