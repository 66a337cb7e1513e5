//! Exhaustive exploration: every state that can be reached from a first one, each once, until
//! there is no new one.

use std::collections::hash_map::Entry;
use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::hash::Hash;

/// What is explored. Its states must be canonical: two that differ only in what no event ever
/// looks at (when it is, where a ring begins) are to be equal.
pub trait System {
    type State: Copy + Eq + Hash + Debug;
    type Event: Copy + Debug;

    /// Looks at `state`, once.
    ///
    /// # Errors
    /// What does not hold in it.
    fn visit(&mut self, state: &Self::State) -> Result<(), String>;

    /// All that may happen in `state`.
    fn events(&self, state: &Self::State) -> Vec<Self::Event>;

    /// The state after `event` in `state`.
    ///
    /// # Errors
    /// What the step has broken.
    fn step(&mut self, state: &Self::State, event: Self::Event) -> Result<Self::State, String>;
}

/// The extent of an exploration that has come to its end.
#[derive(Clone, Copy, Default)]
pub struct Extent {
    pub states: u64,
    pub transitions: u64,
}

impl Extent {
    pub fn add(&mut self, other: Extent) {
        self.states += other.states;
        self.transitions += other.transitions;
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "{} states, {} transitions",
            self.states, self.transitions
        )
    }
}

/// A state that was found: by which event from which other, by position.
struct Found<S: System> {
    state: S::State,
    from: Option<(usize, S::Event)>,
}

/// Explores all that `system` can reach from `first`, breadth first.
///
/// # Panics
/// If a promise is broken, with the shortest sequence of events that leads there.
pub fn explore<S: System>(system: &mut S, first: S::State) -> Extent {
    let mut places = HashMap::from([(first, 0)]);
    let mut found = vec![Found::<S> {
        state: first,
        from: None,
    }];
    let mut extent = Extent::default();
    let mut next = 0;
    while let Some(&Found { state, .. }) = found.get(next) {
        if let Err(broken) = system.visit(&state) {
            panic!("{broken}\nin {state:?}, after\n{}", trace(&found, next));
        }
        for event in system.events(&state) {
            extent.transitions += 1;
            let after = match system.step(&state, event) {
                Ok(after) => after,
                Err(broken) => panic!(
                    "{broken}\nin {state:?} by {event:?}, after\n{}",
                    trace(&found, next)
                ),
            };
            if let Entry::Vacant(place) = places.entry(after) {
                place.insert(found.len());
                let from = Some((next, event));
                found.push(Found { state: after, from });
            }
        }
        next += 1;
    }
    extent.states = found.len() as u64;
    extent
}

/// The events that lead from the first state to that at `place`, a line for each with the state
/// that it was in.
fn trace<S: System>(found: &[Found<S>], place: usize) -> String {
    let mut lines = Vec::new();
    let mut at = place;
    while let Some((from, event)) = found[at].from {
        lines.push(format!("{:?} by {event:?}", found[from].state));
        at = from;
    }
    lines.reverse();
    lines.join("\n")
}

/// Which of the ticks before a moment were used: the latest is bit 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct History(u64);

impl History {
    /// `ticks` pass, all of them used or none.
    #[must_use]
    pub fn after(self, ticks: u64, used: bool) -> Self {
        match ticks {
            0 => self,
            64.. => History(if used { u64::MAX } else { 0 }),
            _ => History(self.0 << ticks | if used { (1 << ticks) - 1 } else { 0 }),
        }
    }

    /// Forgets all but the last `ticks`.
    #[must_use]
    pub fn last(self, ticks: u64) -> Self {
        History(
            self.0
                & 1u64
                    .checked_shl(ticks as u32)
                    .map_or(u64::MAX, |bit| bit - 1),
        )
    }

    /// How many of the last `ticks` were used.
    pub fn used(self, ticks: u64) -> u64 {
        u64::from(self.last(ticks).0.count_ones())
    }
}

/// The latest tick last.
impl Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:b}", self.0)
    }
}

/// Whether the explorations are to be the long ones, which `SANDGLASS_EXPLORE=long` asks for.
pub fn long() -> bool {
    std::env::var("SANDGLASS_EXPLORE").is_ok_and(|extent| extent == "long")
}
