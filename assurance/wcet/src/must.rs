//! What is in a cache for sure (Ferdinand and Wilhelm, *Efficient and Precise Cache Behavior Prediction for Real-Time
//! Systems*, 1999: must analysis): lines, each with how many others of its set may have been used since.

use sandglass_cache::{Geometry, MOST_WAYS};

/// What is in a cache for sure, whatever it held before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Must {
    ways: usize,
    sets: usize,
    /// Of each set, as many as it has ways.
    held: Vec<Held>,
}

/// A line and its age, in one number, or [`NOTHING`]: an analysis has a great many of these.
type Held = u64;

const NOTHING: Held = u64::MAX;

/// An age is below the most ways that there are.
const AGE_BITS: u32 = MOST_WAYS.ilog2();

const fn held(line: u64, age: u64) -> Held {
    line << AGE_BITS | age
}

const fn line_of(held: Held) -> u64 {
    held >> AGE_BITS
}

const fn age_of(held: Held) -> u64 {
    held & (MOST_WAYS - 1)
}

impl Must {
    /// Nothing.
    pub fn new(geometry: Geometry) -> Self {
        let (ways, sets) = (geometry.ways as usize, geometry.sets as usize);
        Self {
            ways,
            sets,
            held: vec![NOTHING; ways * sets],
        }
    }

    fn range_of(&self, line: u64) -> std::ops::Range<usize> {
        let set = line as usize & (self.sets - 1);
        set * self.ways..(set + 1) * self.ways
    }

    /// How many others of its set may have been used since a line was; `None` if it may not be there.
    pub fn age(&self, line: u64) -> Option<u64> {
        let mut set = self.held[self.range_of(line)].iter();
        let known = set.find(|&&held| held != NOTHING && line_of(held) == line);
        known.map(|&held| age_of(held))
    }

    /// A line is used, and is there from now on. Whether it was there for sure.
    pub fn access(&mut self, line: u64) -> bool {
        let age = self.age(line);
        let ways = self.ways as u64;
        let range = self.range_of(line);
        let set = &mut self.held[range];
        for each in set.iter_mut().filter(|each| **each != NOTHING) {
            let mut others = age_of(*each);
            others += u64::from(others < age.unwrap_or(ways));
            *each = match line_of(*each) {
                other if other != line && others < ways => held(other, others),
                _ => NOTHING,
            };
        }
        // There is always one: of lines that are there for sure, at most n can have an age below n.
        if let Some(free) = set.iter_mut().find(|each| **each == NOTHING) {
            *free = held(line, 0);
        }
        age.is_some()
    }

    /// So many lines of a set are used that are none of those that are there for sure.
    pub fn age_set(&mut self, set: usize, by: u64) {
        let ways = self.ways;
        for each in &mut self.held[set * ways..(set + 1) * ways] {
            if *each != NOTHING {
                let age = age_of(*each) + by;
                *each = match age < ways as u64 {
                    true => held(line_of(*each), age),
                    false => NOTHING,
                };
            }
        }
    }

    /// So many lines are used, nobody knows which.
    pub fn age_all(&mut self, by: u64) {
        if by > 0 {
            (0..self.sets).for_each(|set| self.age_set(set, by));
        }
    }

    /// What is there for sure if either is. Whether that is less than before.
    pub fn join(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for at in 0..self.held.len() {
            let own = self.held[at];
            if own == NOTHING || own == other.held[at] {
                continue;
            }
            let joined = match other.age(line_of(own)) {
                Some(age) => held(line_of(own), age.max(age_of(own))),
                None => NOTHING,
            };
            changed |= joined != own;
            self.held[at] = joined;
        }
        changed
    }

    /// What is known of some lines, in an order in which what is equal is equal.
    #[must_use]
    pub fn only(&self, keep: impl Fn(u64) -> bool) -> Self {
        let kept = |&each: &Held| match each != NOTHING && keep(line_of(each)) {
            true => each,
            false => NOTHING,
        };
        let mut only = Self {
            held: self.held.iter().map(kept).collect(),
            ..*self
        };
        only.held
            .chunks_mut(self.ways)
            .for_each(<[_]>::sort_unstable);
        only
    }

    /// Forgets some lines, and takes over what is known of these from elsewhere.
    pub fn replace(&mut self, other: &Self, which: impl Fn(u64) -> bool) {
        *self = self.only(|line| !which(line));
        for &each in other.held.iter().filter(|&&each| each != NOTHING) {
            let line = line_of(each);
            let range = self.range_of(line);
            let free = self.held[range].iter_mut().find(|each| **each == NOTHING);
            if let Some(free) = free.filter(|_| which(line)) {
                *free = each;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry = Geometry {
        line: 16,
        sets: 2,
        ways: 2,
    };

    fn after(lines: &[u64]) -> Must {
        let mut must = Must::new(GEOMETRY);
        lines.iter().for_each(|&line| {
            must.access(line);
        });
        must
    }

    fn ages(must: &Must) -> [Option<u64>; 4] {
        [0, 2, 4, 1].map(|line| must.age(line))
    }

    #[test]
    fn what_is_used_grows_old_by_what_is_used_after_it_in_its_set() {
        assert_eq!(ages(&after(&[])), [None; 4]);
        assert_eq!(ages(&after(&[0, 1])), [Some(0), None, None, Some(0)]);
        assert_eq!(ages(&after(&[0, 2, 2])), [Some(1), Some(0), None, None]);
        assert_eq!(ages(&after(&[0, 2, 0])), [Some(0), Some(1), None, None]);
        assert_eq!(ages(&after(&[0, 2, 4])), [None, Some(1), Some(0), None]);
        let mut must = after(&[0, 1]);
        must.age_set(0, 1);
        assert_eq!(ages(&must), [Some(1), None, None, Some(0)]);
        must.age_all(1);
        assert_eq!(ages(&must), [None, None, None, Some(1)]);
    }

    #[test]
    fn where_ways_meet_only_what_both_have_is_there_with_the_greater_age() {
        let mut must = after(&[0, 2, 1]);
        assert!(must.join(&after(&[2, 0])));
        assert_eq!(ages(&must), [Some(1), Some(1), None, None]);
        assert!(!must.join(&after(&[0, 2])));
    }

    #[test]
    fn equal_knowledge_is_equal() {
        let (mut first, second) = (after(&[0, 2]), after(&[2]));
        first.replace(&second, |line| line == 2);
        let mut other = after(&[2, 0]);
        other.join(&after(&[0, 2]));
        other.replace(&second, |line| line == 2);
        assert_eq!(first.only(|_| true), other.only(|_| true));
        assert_eq!(ages(&first), [Some(1), Some(0), None, None]);
    }
}
