//! The tree of allocations and reservations, in storage of the caller's.
//!
//! A record is an allocation or a reservation; both are functions in the allocation above them. The points of all
//! functions in an allocation are one list, in the order of their intervals: what [`crate::demand`] follows.
//! Invariants:
//!
//! - a record that is in use is in the list of children of its parent, and its points are in its parent's list of
//!   points; roots have no parent;
//! - lists of points are in order; the functions in a list never exceed the parent's;
//! - a record that is leaving has nothing below it that is not.

use core::fmt;

use crate::allowance::{Allowance, Point};
use crate::capability::CapabilityId;
use crate::demand::{Change, Excess, Slack};
use crate::manager::ClientId;
use crate::server::Kind;
use crate::task::Task;

/// No record; no point.
pub(crate) const NONE: u32 = u32::MAX;

/// Names a record for as long as it is in use: never one that has its place later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl RecordId {
    /// As one word of a message.
    pub const fn to_word(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// The inverse of [`Self::to_word`]. What it names is checked where it is used.
    pub const fn of_word(word: u64) -> Self {
        Self {
            index: word as u32,
            generation: (word >> 32) as u32,
        }
    }
}

/// Names an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AllocationId(pub RecordId);

/// Names a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReservationId(pub RecordId);

/// Neighbours of a point in the list of its allocation.
#[derive(Clone, Copy, Debug)]
struct Links {
    next: u32,
    previous: u32,
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Free,
    /// All of a processor.
    Root {
        processor: u16,
    },
    Allocation,
    Reservation {
        task: Task,
        kind: Kind,
    },
}

/// Who made a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Maker {
    /// The capability by which it was made, and with which it goes.
    pub(crate) capability: CapabilityId,
    /// The client whose quota it is in.
    pub(crate) client: ClientId,
}

/// An allocation or a reservation; its function has at most `K` points.
#[derive(Clone, Debug)]
pub struct Record<const K: usize> {
    function: Allowance<K>,
    links: [Links; K],
    pub(crate) content: Content,
    pub(crate) maker: Maker,
    generation: u32,
    pub(crate) parent: u32,
    pub(crate) first_child: u32,
    /// Among the children of its parent, or among the free records.
    pub(crate) next: u32,
    previous: u32,
    /// The first point of what is in it.
    load: u32,
    /// It counts until this time has come and the processor has been idle then; nobody may use it any more.
    pub(crate) leaving: Option<u64>,
}

/// Memory (appendix A.3): at most 1 KiB for an allocation whose function has up to 20 points.
const _: () = assert!(size_of::<Record<20>>() <= 1024);

impl<const K: usize> Record<K> {
    /// What storage is made of.
    pub const FREE: Self = Self {
        function: Allowance::NOTHING,
        links: [Links {
            next: NONE,
            previous: NONE,
        }; K],
        content: Content::Free,
        maker: Maker {
            capability: CapabilityId::NONE,
            client: ClientId(0),
        },
        generation: 0,
        parent: NONE,
        first_child: NONE,
        next: NONE,
        previous: NONE,
        load: NONE,
        leaving: None,
    };

    pub(crate) fn function(&self) -> &Allowance<K> {
        &self.function
    }

    pub(crate) fn is_allocation(&self) -> bool {
        matches!(self.content, Content::Root { .. } | Content::Allocation)
    }
}

/// What an admission found: where the points of a new function belong. Valid until the next change.
#[must_use]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admission<const K: usize> {
    /// Of each point: the one in the list after which it comes.
    after: [u32; K],
}

/// The records.
#[derive(Debug)]
pub(crate) struct Records<'s, const K: usize> {
    slots: &'s mut [Record<K>],
    free: u32,
    /// Points that admissions have looked at: their cost.
    steps: u64,
}

impl<'s, const K: usize> Records<'s, K> {
    /// How many records can be told apart.
    pub(crate) const MOST: usize = NONE as usize / K;

    /// All are free.
    pub(crate) fn new(slots: &'s mut [Record<K>]) -> Self {
        let count = slots.len().min(Self::MOST);
        let slots = &mut slots[..count];
        for (index, slot) in slots.iter_mut().enumerate() {
            let generation = slot.generation;
            *slot = Record {
                next: if index + 1 == count {
                    NONE
                } else {
                    index as u32 + 1
                },
                generation,
                ..Record::FREE
            };
        }
        let free = if count == 0 { NONE } else { 0 };
        Self {
            slots,
            free,
            steps: 0,
        }
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn at(&self, index: u32) -> &Record<K> {
        &self.slots[index as usize]
    }

    pub(crate) fn id(&self, index: u32) -> RecordId {
        RecordId {
            index,
            generation: self.at(index).generation,
        }
    }

    /// The record of that name, if it is in use and not leaving.
    pub(crate) fn find(&self, id: RecordId) -> Option<u32> {
        let record = self.slots.get(id.index as usize)?;
        let is_meant = record.generation == id.generation
            && record.content != Content::Free
            && record.leaving.is_none();
        is_meant.then_some(id.index)
    }

    /// The processor that the record is about.
    pub(crate) fn processor(&self, index: u32) -> u16 {
        let mut record = self.at(index);
        loop {
            match record.content {
                Content::Root { processor } => return processor,
                _ => record = self.at(record.parent),
            }
        }
    }

    /// `index` is `ancestor`, or in it at any depth.
    pub(crate) fn is_within(&self, index: u32, ancestor: u32) -> bool {
        let mut current = index;
        while current != NONE {
            if current == ancestor {
                return true;
            }
            current = self.at(current).parent;
        }
        false
    }

    /// Invariants 1 and 2 for the allocation `parent`, with one more function in it. Changes nothing but the count of
    /// steps.
    ///
    /// # Errors
    /// What would be demanded beyond what is allowed.
    pub(crate) fn admit(
        &mut self,
        parent: u32,
        function: &Allowance<K>,
    ) -> Result<Admission<K>, Excess> {
        let mut steps = 0;
        let outcome = self.follow(parent, function.points(), &mut steps);
        self.steps += steps;
        outcome
    }

    fn follow(&self, parent: u32, new: &[Point], steps: &mut u64) -> Result<Admission<K>, Excess> {
        let record = self.at(parent);
        let allowed = record.function.points();
        let mut slack = Slack::default();
        let mut after = [NONE; K];
        let (mut in_allowed, mut in_new) = (0, 0);
        let (mut held, mut last) = (record.load, NONE);
        loop {
            let heads = [
                allowed.get(in_allowed).map(|point| point.at),
                new.get(in_new).map(|point| point.at),
                self.point(held).map(|point| point.at),
            ];
            let Some(at) = heads.into_iter().flatten().min() else {
                return slack.end().map(|()| Admission { after });
            };
            slack.reach(at);
            if heads[0] == Some(at) {
                slack.gain(Change::at(allowed, in_allowed));
                in_allowed += 1;
                *steps += 1;
            }
            if heads[1] == Some(at) {
                slack.lose(Change::at(new, in_new));
                after[in_new] = last;
                in_new += 1;
                *steps += 1;
            }
            while self.point(held).is_some_and(|point| point.at == at) {
                slack.lose(self.change(held));
                last = held;
                held = self.links(held).next;
                *steps += 1;
            }
            slack.look(at);
        }
    }

    /// A new record in `parent`, whose function was admitted there. `None`: no record is free.
    pub(crate) fn insert(
        &mut self,
        parent: u32,
        function: Allowance<K>,
        admission: Admission<K>,
        content: Content,
        maker: Maker,
    ) -> Option<u32> {
        let index = self.take(function, content, maker)?;
        self.adopt(parent, index);
        let mut before = NONE;
        for point in 0..self.at(index).function.points().len() {
            let id = point_id::<K>(index, point);
            let is_next = point > 0 && admission.after[point] == admission.after[point - 1];
            let place = if is_next {
                before
            } else {
                admission.after[point]
            };
            self.link(parent, place, id);
            before = id;
        }
        Some(index)
    }

    /// A root.
    pub(crate) fn insert_root(&mut self, processor: u16, maker: Maker) -> Option<u32> {
        let whole = Allowance::linear(crate::Rate::WHOLE);
        self.take(whole, Content::Root { processor }, maker)
    }

    /// Gives a record back that has nothing in it.
    pub(crate) fn remove(&mut self, index: u32) {
        let parent = self.at(index).parent;
        for point in 0..self.at(index).function.points().len() {
            self.unlink(parent, point_id::<K>(index, point));
        }
        self.abandon(parent, index);
        let free = self.free;
        let slot = &mut self.slots[index as usize];
        *slot = Record {
            generation: slot.generation.wrapping_add(1),
            next: free,
            ..Record::FREE
        };
        self.free = index;
    }

    /// From now on nobody may use it; it counts until `hold`, and longer.
    pub(crate) fn leave(&mut self, index: u32, hold: u64) {
        self.slots[index as usize].leaving = Some(hold);
    }

    /// The first of those in `top`, or `top`, after whose visit nothing in it is left to visit: what is in an
    /// allocation comes before it.
    pub(crate) fn deepest(&self, top: u32) -> u32 {
        let mut current = top;
        while self.at(current).first_child != NONE {
            current = self.at(current).first_child;
        }
        current
    }

    /// The next one in that order, up to `top`.
    pub(crate) fn after(&self, index: u32, top: u32) -> Option<u32> {
        if index == top {
            return None;
        }
        let record = self.at(index);
        Some(match record.next {
            NONE => record.parent,
            next => self.deepest(next),
        })
    }

    fn take(&mut self, function: Allowance<K>, content: Content, maker: Maker) -> Option<u32> {
        let index = self.free;
        let slot = self.slots.get_mut(index as usize)?;
        self.free = slot.next;
        *slot = Record {
            function,
            content,
            maker,
            generation: slot.generation,
            ..Record::FREE
        };
        Some(index)
    }

    fn adopt(&mut self, parent: u32, child: u32) {
        let first = self.at(parent).first_child;
        if let Some(first) = self.slots.get_mut(first as usize) {
            first.previous = child;
        }
        self.slots[parent as usize].first_child = child;
        let record = &mut self.slots[child as usize];
        (record.parent, record.next) = (parent, first);
    }

    fn abandon(&mut self, parent: u32, child: u32) {
        let (previous, next) = (self.at(child).previous, self.at(child).next);
        if let Some(next) = self.slots.get_mut(next as usize) {
            next.previous = previous;
        }
        match self.slots.get_mut(previous as usize) {
            Some(previous) => previous.next = next,
            None => self.slots[parent as usize].first_child = next,
        }
    }

    /// The point of that number; `None` at the end of a list.
    fn point(&self, id: u32) -> Option<&Point> {
        let record = self.slots.get(id as usize / K)?;
        record.function.points().get(id as usize % K)
    }

    fn change(&self, id: u32) -> Change {
        Change::at(
            self.slots[id as usize / K].function.points(),
            id as usize % K,
        )
    }

    fn links(&self, id: u32) -> Links {
        self.slots[id as usize / K].links[id as usize % K]
    }

    fn links_mut(&mut self, id: u32) -> Option<&mut Links> {
        let record = self.slots.get_mut(id as usize / K)?;
        Some(&mut record.links[id as usize % K])
    }

    /// Puts a point into the list of `parent`, after `place`, or first.
    fn link(&mut self, parent: u32, place: u32, id: u32) {
        let next = match self.links_mut(place) {
            Some(links) => core::mem::replace(&mut links.next, id),
            None => core::mem::replace(&mut self.slots[parent as usize].load, id),
        };
        if let Some(links) = self.links_mut(next) {
            links.previous = id;
        }
        if let Some(links) = self.links_mut(id) {
            *links = Links {
                next,
                previous: place,
            };
        }
    }

    fn unlink(&mut self, parent: u32, id: u32) {
        let Links { next, previous } = self.links(id);
        match self.links_mut(previous) {
            Some(links) => links.next = next,
            None => self.slots[parent as usize].load = next,
        }
        if let Some(links) = self.links_mut(next) {
            links.previous = previous;
        }
    }
}

const fn point_id<const K: usize>(record: u32, point: usize) -> u32 {
    record * K as u32 + point as u32
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}
