//! Bitmap queues (Åsberg and Nolte; paper, section 4.1 and Figure 6): elements by value, the least first, and first in, first
//! out among equal values. Inserting, finding the first and removing any element are O(1); nothing is allocated but, for who wants it, [`Owned`] memory at the start.
//!
//! A bit stands for a value that is in the queue, and a list for the elements that have it. Values grow without end, and
//! bits do not: there are two halves with the same number of slots, and value v belongs to slot v mod `slots` of half
//! (v / `slots`) mod 2. While one half is emptied, the other takes what comes after it. So the values that are in the
//! queue at a time must not be more than `slots` apart, and may be anything else: they never wrap around themselves.
//!
//! The paper looks for the least significant bit in one integer after the other. Here two levels above the bits say
//! which integers have any, so that three integers are looked at, however many slots there are.

use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU32;

/// Slots of a half, at least: those of one integer.
pub const LEAST_SLOTS: usize = 64;
/// Slots of a half, at most: three levels of integers.
pub const MOST_SLOTS: usize = 64 * 64 * 64;

/// An element's number, if there is one; stored with 1 added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Link(Option<NonZeroU32>);

impl Link {
    fn to(element: usize) -> Self {
        Self(NonZeroU32::new(element as u32 + 1))
    }

    fn element(self) -> Option<usize> {
        self.0.map(|number| number.get() as usize - 1)
    }
}

/// The elements with one value.
#[derive(Clone, Copy, Debug, Default)]
pub struct List {
    head: Link,
    tail: Link,
}

/// The part of an element that belongs to the queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Node {
    /// Of an element that is in the queue.
    value: Option<u64>,
    before: Link,
    behind: Link,
}

/// The memory of a queue.
#[derive(Debug)]
pub struct Memory<'m> {
    /// Two for each slot: a power of two of slots, from [`LEAST_SLOTS`] to [`MOST_SLOTS`].
    pub lists: &'m mut [List],
    /// As many as [`integers`] says.
    pub bits: &'m mut [u64],
    /// One for each element; at most 2^32 - 1.
    pub nodes: &'m mut [Node],
}

/// The memory of a queue, on the heap, for who has one.
#[derive(Debug)]
pub struct Owned {
    lists: Vec<List>,
    bits: Vec<u64>,
    nodes: Vec<Node>,
}

impl Owned {
    /// For a power of two of slots, from [`LEAST_SLOTS`] to [`MOST_SLOTS`].
    pub fn new(slots: usize, elements: usize) -> Self {
        Self {
            lists: vec![List::default(); 2 * slots],
            bits: vec![0; integers(slots)],
            nodes: vec![Node::default(); elements],
        }
    }

    pub fn lend(&mut self) -> Memory<'_> {
        Memory {
            lists: &mut self.lists,
            bits: &mut self.bits,
            nodes: &mut self.nodes,
        }
    }

    /// For good.
    pub fn leak(self) -> Memory<'static> {
        Memory {
            lists: self.lists.leak(),
            bits: self.bits.leak(),
            nodes: self.nodes.leak(),
        }
    }
}

/// How many integers a queue of so many slots needs for its bits.
pub const fn integers(slots: usize) -> usize {
    2 * (slots / 64 + slots.div_ceil(64 * 64))
}

/// Half of a queue: the values of one epoch, which is a value divided by the number of slots.
#[derive(Debug)]
struct Half<'m> {
    /// Of the values in it, if there are any.
    epoch: u64,
    /// Bit i: `middle[i]` is not 0.
    top: u64,
    /// Bit j of integer i: `low[64 * i + j]` is not 0.
    middle: &'m mut [u64],
    /// Bit k of integer j: list `64 * j + k` is not empty.
    low: &'m mut [u64],
    lists: &'m mut [List],
}

impl<'m> Half<'m> {
    fn new(bits: &'m mut [u64], lists: &'m mut [List]) -> Self {
        bits.fill(0);
        lists.fill(List::default());
        let (low, middle) = bits.split_at_mut(lists.len() / 64);
        Self {
            epoch: 0,
            top: 0,
            middle,
            low,
            lists,
        }
    }

    const fn is_empty(&self) -> bool {
        self.top == 0
    }

    /// The first slot that is not empty, if any is.
    #[inline]
    fn first(&self) -> Option<usize> {
        let of_top = lowest(self.top)?;
        let of_middle = of_top * 64 + lowest(*self.middle.get(of_top)?)?;
        Some(of_middle * 64 + lowest(*self.low.get(of_middle)?)?)
    }

    #[inline]
    fn mark(&mut self, slot: usize) {
        self.low[slot / 64] |= bit(slot);
        self.middle[slot / 4096] |= bit(slot / 64);
        self.top |= bit(slot / 4096);
    }

    #[inline]
    fn clear(&mut self, slot: usize) {
        self.low[slot / 64] &= !bit(slot);
        if self.low[slot / 64] == 0 {
            self.middle[slot / 4096] &= !bit(slot / 64);
        }
        if self.middle[slot / 4096] == 0 {
            self.top &= !bit(slot / 4096);
        }
    }
}

/// The bit of this index in its integer.
const fn bit(index: usize) -> u64 {
    1 << (index % 64)
}

fn lowest(word: u64) -> Option<usize> {
    (word != 0).then(|| word.trailing_zeros() as usize)
}

/// A queue of elements, which are numbers from 0.
///
/// Invariants: a slot's bit is set if its list is not empty; an element is in the list of its value if its node has one,
/// and in none else.
#[derive(Debug)]
pub struct BitmapQueue<'m> {
    halves: [Half<'m>; 2],
    nodes: &'m mut [Node],
    /// Slots of a half are 2 to the power of this.
    slot_bits: u32,
}

impl<'m> BitmapQueue<'m> {
    /// An empty queue.
    ///
    /// # Panics
    /// The memory is not as its fields say.
    pub fn new(memory: Memory<'m>) -> Self {
        let slots = memory.lists.len() / 2;
        let is_size = slots.is_power_of_two() && (LEAST_SLOTS..=MOST_SLOTS).contains(&slots);
        assert!(is_size, "{slots} slots are no power of two from 64 to 2^18");
        let needed = integers(slots);
        assert_eq!(memory.bits.len(), needed, "the bits of {slots} slots");
        memory.nodes.fill(Node::default());
        let (even_lists, odd_lists) = memory.lists.split_at_mut(slots);
        let (even_bits, odd_bits) = memory.bits.split_at_mut(needed / 2);
        Self {
            halves: [
                Half::new(even_bits, even_lists),
                Half::new(odd_bits, odd_lists),
            ],
            nodes: memory.nodes,
            slot_bits: slots.trailing_zeros(),
        }
    }

    /// How far apart the values of two elements may be.
    pub const fn span(&self) -> u64 {
        1 << self.slot_bits
    }

    /// How many elements it has room for.
    pub const fn capacity(&self) -> usize {
        self.nodes.len()
    }

    /// Inserts an element behind those of its value. O(1).
    ///
    /// # Panics
    /// There is no such element, it is in the queue already, or the value is too far from another in the queue: more
    /// than [`Self::span`] may be.
    #[inline]
    pub fn insert(&mut self, value: u64, element: usize) {
        assert_eq!(self.nodes[element].value, None, "{element} is in the queue");
        let (half, slot) = self.place(value);
        let half = &mut self.halves[half];
        let epoch = value >> self.slot_bits;
        if half.is_empty() {
            half.epoch = epoch;
        }
        assert_eq!(half.epoch, epoch, "{value} is too far from the others");
        let last = half.lists[slot].tail.element();
        match last {
            Some(last) => self.nodes[last].behind = Link::to(element),
            None => {
                half.lists[slot].head = Link::to(element);
                half.mark(slot);
            }
        }
        half.lists[slot].tail = Link::to(element);
        self.nodes[element] = Node {
            value: Some(value),
            before: last.map_or(Link(None), Link::to),
            behind: Link(None),
        };
    }

    /// The first element of the least value, and that value. O(1).
    #[inline]
    pub fn first(&self) -> Option<(u64, usize)> {
        let [even, odd] = &self.halves;
        let is_even = odd.is_empty() || (!even.is_empty() && even.epoch < odd.epoch);
        let half = if is_even { even } else { odd };
        let slot = half.first()?;
        let value = (half.epoch << self.slot_bits) + slot as u64;
        Some((value, half.lists[slot].head.element()?))
    }

    /// Removes an element, if it is in the queue; whether it was. O(1).
    ///
    /// # Panics
    /// There is no such element.
    #[inline]
    pub fn remove(&mut self, element: usize) -> bool {
        let Node {
            value,
            before,
            behind,
        } = core::mem::take(&mut self.nodes[element]);
        let Some(value) = value else {
            return false;
        };
        let (half, slot) = self.place(value);
        let half = &mut self.halves[half];
        match before.element() {
            Some(before) => self.nodes[before].behind = behind,
            None => half.lists[slot].head = behind,
        }
        match behind.element() {
            Some(behind) => self.nodes[behind].before = before,
            None => half.lists[slot].tail = before,
        }
        if half.lists[slot].head.element().is_none() {
            half.clear(slot);
        }
        true
    }

    /// Whether an element is in the queue. O(1).
    ///
    /// # Panics
    /// There is no such element.
    pub fn contains(&self, element: usize) -> bool {
        self.nodes[element].value.is_some()
    }

    /// Whether no other element has the value of this one. O(1).
    ///
    /// # Panics
    /// There is no such element.
    pub fn is_alone(&self, element: usize) -> bool {
        let node = self.nodes[element];
        node.before.element().is_none() && node.behind.element().is_none()
    }

    /// The half and the slot of a value.
    #[inline]
    const fn place(&self, value: u64) -> (usize, usize) {
        let half = (value >> self.slot_bits) & 1;
        let slot = value & (self.span() - 1);
        (half as usize, slot as usize)
    }
}
