//! Allocation of slots of one CNode.

use alloc::vec::Vec;

use sandglass_abi::boot::SlotRegion;

/// Which slots of a CNode are free: every slot from `next` to `end`, and those given back.
#[derive(Clone, Debug)]
pub struct SlotAllocator {
    next: u64,
    end: u64,
    freed: Vec<u64>,
}

impl SlotAllocator {
    pub const fn new(empty: SlotRegion) -> Self {
        Self {
            next: empty.start,
            end: empty.end,
            freed: Vec::new(),
        }
    }

    /// A free slot; `None` if there is none.
    pub fn allocate(&mut self) -> Option<u64> {
        self.freed.pop().or_else(|| self.allocate_range(1))
    }

    /// The first of `count` consecutive free slots, never used before.
    pub fn allocate_range(&mut self, count: u64) -> Option<u64> {
        let first = self.next;
        let end = first.checked_add(count)?;
        (end <= self.end).then(|| self.next = end)?;
        Some(first)
    }

    /// Gives back a slot, which must be empty by now and have been allocated here.
    pub fn free(&mut self, slot: u64) {
        self.freed.push(slot);
    }

    /// The first slot that was never used.
    pub const fn high_water_mark(&self) -> u64 {
        self.next
    }

    /// Adds the slots up to `end`, after those there are.
    pub(super) fn extend(&mut self, end: u64) {
        self.end = self.end.max(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_unique_until_given_back() {
        let mut slots = SlotAllocator::new(SlotRegion { start: 5, end: 9 });
        assert_eq!(
            (slots.allocate(), slots.allocate_range(2)),
            (Some(5), Some(6))
        );
        assert_eq!(slots.allocate_range(2), None);
        assert_eq!((slots.allocate(), slots.allocate()), (Some(8), None));
        slots.free(6);
        assert_eq!((slots.allocate(), slots.allocate()), (Some(6), None));
        slots.extend(10);
        assert_eq!((slots.allocate(), slots.allocate()), (Some(9), None));
        assert_eq!(slots.allocate_range(u64::MAX), None);
    }
}
