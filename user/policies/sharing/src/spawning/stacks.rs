//! Which stacks there are, and what to do about a request that finds all of them busy.

use alloc::vec::Vec;

/// What becomes of such a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// A thread is made for it, with this number.
    Spawn(usize),
    /// There is nothing left to make one of: the thread that makes the others serves it itself, and
    /// requests queue meanwhile.
    Serve,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is no thread yet.
    Free,
    /// There is, for good: done with one request, it waits for the next.
    Made,
    /// It could not be made, and is not tried again: trying costs a client time.
    Lost,
}

/// The stacks that can be made, by number.
#[derive(Clone, Debug)]
pub struct Stacks(Vec<State>);

impl Stacks {
    /// At most `limit`, none of which is made.
    pub fn new(limit: usize) -> Self {
        Self(alloc::vec![State::Free; limit])
    }

    /// Decides about a request for which no thread waited.
    pub fn decide(&self) -> Decision {
        let free = self.0.iter().position(|state| *state == State::Free);
        free.map_or(Decision::Serve, Decision::Spawn)
    }

    /// Notes that the thread `number` was made, or that it cannot be.
    pub fn tried(&mut self, number: usize, is_made: bool) {
        let state = self.0.get_mut(number);
        if let Some(state) = state.filter(|state| **state == State::Free) {
            *state = if is_made { State::Made } else { State::Lost };
        }
    }

    /// Threads that were made.
    pub fn made(&self) -> usize {
        let states = self.0.iter();
        states.filter(|state| **state == State::Made).count()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn without_memory_requests_are_served_one_by_one() {
        assert_eq!(Stacks::new(0).decide(), Decision::Serve);
    }

    proptest! {
        /// Whatever fails, each number is tried once, and then no more.
        #[test]
        fn every_stack_is_tried_once(outcomes in prop::collection::vec(any::<bool>(), 0..20)) {
            let mut stacks = Stacks::new(outcomes.len());
            for (number, &is_made) in outcomes.iter().enumerate() {
                prop_assert_eq!(stacks.decide(), Decision::Spawn(number));
                stacks.tried(number, is_made);
            }
            prop_assert_eq!(stacks.decide(), Decision::Serve);
            let made = outcomes.iter().filter(|is_made| **is_made).count();
            prop_assert_eq!(stacks.made(), made);
            // What is known of a stack stays so.
            for (number, &is_made) in outcomes.iter().enumerate() {
                stacks.tried(number, !is_made);
            }
            prop_assert_eq!((stacks.decide(), stacks.made()), (Decision::Serve, made));
        }
    }
}
