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

/// A number below 2^32 - 1, if there is one; stored with 1 added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Link(Option<NonZeroU32>);

impl Link {
    #[inline]
    fn to(number: usize) -> Self {
        Self(NonZeroU32::new(number as u32 + 1))
    }

    #[inline]
    fn number(self) -> Option<usize> {
        self.0.map(|number| number.get() as usize - 1)
    }
}

/// The elements with one value are a ring, which begins with this one.
type List = Link;

/// The lists of 64 values that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Bit i: list i is not empty.
    used: u64,
    lists: [List; 64],
}

impl Group {
    const EMPTY: Self = Self {
        used: 0,
        lists: [Link(None); 64],
    };
}

/// The part of an element that belongs to the queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Node {
    /// The list of an element that is in the queue.
    list: Link,
    /// Elements before and behind it in its list, around the ring; itself if there is no other.
    before: u32,
    behind: u32,
}

/// The memory of a queue.
#[derive(Debug)]
pub struct Memory<'m> {
    /// Two for 64 slots: a power of two of slots, from [`LEAST_SLOTS`] to [`MOST_SLOTS`].
    pub groups: &'m mut [Group],
    /// As many as [`integers`] says.
    pub bits: &'m mut [u64],
    /// One for each element; at most 2^32 - 1.
    pub nodes: &'m mut [Node],
}

/// The memory of a queue, on the heap, for who has one.
#[derive(Debug)]
pub struct Owned {
    groups: Vec<Group>,
    bits: Vec<u64>,
    nodes: Vec<Node>,
}

impl Owned {
    /// For a power of two of slots, from [`LEAST_SLOTS`] to [`MOST_SLOTS`].
    pub fn new(slots: usize, elements: usize) -> Self {
        Self {
            groups: vec![Group::EMPTY; 2 * slots / 64],
            bits: vec![0; integers(slots)],
            nodes: vec![Node::default(); elements],
        }
    }

    pub fn lend(&mut self) -> Memory<'_> {
        Memory {
            groups: &mut self.groups,
            bits: &mut self.bits,
            nodes: &mut self.nodes,
        }
    }

    /// For good.
    pub fn leak(self) -> Memory<'static> {
        Memory {
            groups: self.groups.leak(),
            bits: self.bits.leak(),
            nodes: self.nodes.leak(),
        }
    }
}

/// How many integers a queue of so many slots needs for the bits above those of the slots.
pub const fn integers(slots: usize) -> usize {
    2 * slots.div_ceil(64 * 64)
}

/// Half of a queue: the values of one epoch, which are those from a multiple of the number of slots to the next.
#[derive(Debug)]
struct Half<'m> {
    /// The least value of the epoch, if the half is not empty.
    start: u64,
    /// Bit i: `middle[i]` is not 0.
    top: u64,
    /// Bit j of integer i: group `64 * i + j` of the half has a list that is not empty.
    middle: &'m mut [u64],
}

impl<'m> Half<'m> {
    fn new(middle: &'m mut [u64]) -> Self {
        middle.fill(0);
        Self {
            start: 0,
            top: 0,
            middle,
        }
    }

    const fn is_empty(&self) -> bool {
        self.top == 0
    }

    /// The first group with a list that is not empty.
    #[inline(always)]
    fn first_group(&self) -> Option<usize> {
        let of_top = lowest(self.top)?;
        Some(of_top * 64 + lowest(self.middle[of_top])?)
    }

    /// The list of `slot` is not empty.
    #[inline(always)]
    fn mark(&mut self, slot: usize) {
        self.middle[slot / 4096] |= bit(slot / 64);
        self.top |= bit(slot / 4096);
    }

    /// No list of the group with the list of `slot` has anything in it.
    #[inline(always)]
    fn clear(&mut self, slot: usize) {
        let middle = &mut self.middle[slot / 4096];
        *middle &= !bit(slot / 64);
        if *middle == 0 {
            self.top &= !bit(slot / 4096);
        }
    }
}

/// The bit of this index in its integer.
const fn bit(index: usize) -> u64 {
    1 << (index % 64)
}

#[inline]
fn lowest(word: u64) -> Option<usize> {
    (word != 0).then(|| word.trailing_zeros() as usize)
}

/// A queue of elements, which are numbers from 0.
///
/// Invariants: a slot's bit is set if its list is not empty, and each bit above it then, too; an element is in the list
/// that its node names, and in none else; `first` is the first element of the least value.
///
/// What changes a queue is one function each, with all that it is made of inlined: a decision consists mostly of these, and
/// calls within them would be a large part of it.
#[derive(Debug)]
pub struct BitmapQueue<'m> {
    halves: [Half<'m>; 2],
    /// Those of the even half, and behind them those of the odd one.
    groups: &'m mut [Group],
    nodes: &'m mut [Node],
    /// The bits of a value that say the slot: one less than there are slots in a half.
    slots: u64,
    /// Looked for when it changes: it is asked for more often.
    first: Option<(u64, usize)>,
}

impl<'m> BitmapQueue<'m> {
    /// An empty queue.
    ///
    /// # Panics
    /// The memory is not as its fields say.
    pub fn new(memory: Memory<'m>) -> Self {
        let Memory {
            groups,
            bits,
            nodes,
        } = memory;
        let slots = groups.len() / 2 * 64;
        let is_size = slots.is_power_of_two() && (LEAST_SLOTS..=MOST_SLOTS).contains(&slots);
        assert!(is_size, "{slots} slots are no power of two from 64 to 2^18");
        assert_eq!(bits.len(), integers(slots), "the bits of {slots} slots");
        nodes.fill(Node::default());
        groups.fill(Group::EMPTY);
        let (even, odd) = bits.split_at_mut(bits.len() / 2);
        Self {
            halves: [Half::new(even), Half::new(odd)],
            groups,
            nodes,
            slots: slots as u64 - 1,
            first: None,
        }
    }

    /// How far apart the values of two elements may be.
    pub const fn span(&self) -> u64 {
        self.slots + 1
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
    #[inline(never)]
    pub fn insert(&mut self, value: u64, element: usize) {
        if self.contains(element) {
            panic_in_queue(element);
        }
        self.link(value, element);
        if self.first.is_none_or(|(least, _)| value < least) {
            self.first = Some((value, element));
        }
    }

    /// The first element of the least value, and that value. O(1).
    #[inline]
    pub const fn first(&self) -> Option<(u64, usize)> {
        self.first
    }

    /// Removes an element, if it is in the queue; whether it was. O(1).
    ///
    /// # Panics
    /// There is no such element.
    #[inline(never)]
    pub fn remove(&mut self, element: usize) -> bool {
        let was_there = self.unlink(element);
        if self.first.is_some_and(|(_, first)| first == element) {
            self.first = self.find_first();
        }
        was_there
    }

    /// Removes an element, if it is in the queue, and inserts it with this value. O(1).
    ///
    /// # Panics
    /// There is no such element, or the value is too far from another in the queue: more than [`Self::span`] may be.
    #[inline(never)]
    pub fn requeue(&mut self, value: u64, element: usize) {
        self.unlink(element);
        self.link(value, element);
        self.first = self.find_first();
    }

    /// Whether an element is in the queue. O(1).
    ///
    /// # Panics
    /// There is no such element.
    #[inline]
    pub fn contains(&self, element: usize) -> bool {
        self.nodes[element].list != Link(None)
    }

    /// Whether no other element has the value of this one, which is in the queue. O(1).
    ///
    /// # Panics
    /// There is no such element.
    #[inline]
    pub fn is_alone(&self, element: usize) -> bool {
        self.nodes[element].behind == element as u32
    }

    /// The half and the slot of a list.
    #[inline(always)]
    fn half(&mut self, list: usize) -> (&mut Half<'m>, usize) {
        let slots = self.slots as usize;
        (&mut self.halves[usize::from(list > slots)], list & slots)
    }

    #[inline(always)]
    fn link(&mut self, value: u64, element: usize) {
        let list = (value & (2 * self.slots + 1)) as usize;
        let start = value & !self.slots;
        let (half, slot) = self.half(list);
        if half.is_empty() {
            half.start = start;
        } else if half.start != start {
            panic_too_far(value);
        }
        let this = element as u32;
        let group = &mut self.groups[list / 64];
        let (before, behind) = match group.lists[list % 64].number() {
            None => {
                group.lists[list % 64] = Link::to(element);
                group.used |= bit(list);
                self.half(list).0.mark(slot);
                (this, this)
            }
            Some(head) => {
                let last = core::mem::replace(&mut self.nodes[head].before, this);
                self.nodes[last as usize].behind = this;
                (last, head as u32)
            }
        };
        self.nodes[element] = Node {
            list: Link::to(list),
            before,
            behind,
        };
    }

    #[inline(always)]
    fn unlink(&mut self, element: usize) -> bool {
        let node = &mut self.nodes[element];
        let Some(list) = core::mem::take(&mut node.list).number() else {
            return false;
        };
        let Node { before, behind, .. } = *node;
        let group = &mut self.groups[list / 64];
        if behind == element as u32 {
            group.lists[list % 64] = Link(None);
            group.used &= !bit(list);
            if group.used == 0 {
                let (half, slot) = self.half(list);
                half.clear(slot);
            }
            return true;
        }
        self.nodes[before as usize].behind = behind;
        self.nodes[behind as usize].before = before;
        let head = &mut group.lists[list % 64];
        if *head == Link::to(element) {
            *head = Link::to(behind as usize);
        }
        true
    }

    #[inline(always)]
    fn find_first(&self) -> Option<(u64, usize)> {
        let [even, odd] = &self.halves;
        let is_odd = even.is_empty() || (!odd.is_empty() && odd.start < even.start);
        let (half, before) = match is_odd {
            true => (odd, self.groups.len() / 2),
            false => (even, 0),
        };
        let of_half = half.first_group()?;
        let group = &self.groups[before + of_half];
        let list = lowest(group.used)?;
        let value = half.start + (of_half * 64 + list) as u64;
        Some((value, group.lists[list % 64].number()?))
    }
}

// Apart, so that who inserts keeps nothing for their messages.

#[cold]
#[inline(never)]
fn panic_in_queue(element: usize) -> ! {
    panic!("{element} is in the queue");
}

#[cold]
#[inline(never)]
fn panic_too_far(value: u64) -> ! {
    panic!("{value} is too far from the others");
}
