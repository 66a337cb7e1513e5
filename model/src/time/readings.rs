//! What the clock showed during an event, which is atomic here.
//!
//! The kernel reads the clock on entry, and again at the preemption points of long operations and
//! behind every stall of another core (docs, "The clock moves inside events"). If the budget of the caller
//! does not last any more, the event ends there. A preempted operation that was repeated until it was
//! done is one event, at the first entry of which it began.

use super::account;
use crate::state::{CoreId, State, ThreadId, ThreadState, Ticks};

/// The readings of an event.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Readings {
    /// On entry, when the core had its turn.
    pub entry: Ticks,
    /// For how long the core waited for its turn before that.
    pub waited: Ticks,
    pub stalls: Vec<Stall>,
    /// When the effects of an operation happen that takes time: one of the readings.
    pub effect: Ticks,
    /// The last one.
    pub last: Ticks,
    /// The state in which the caller had no budget any more.
    over: Option<Box<State>>,
}

/// Another core was stalled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stall {
    pub core: CoreId,
    /// When it left user code.
    pub left: Ticks,
    /// What the clock showed behind that.
    pub then: Ticks,
}

impl Readings {
    /// One reading, on entry.
    pub fn at(now: Ticks) -> Readings {
        Readings {
            entry: now,
            effect: now,
            last: now,
            ..Readings::default()
        }
    }

    fn stall(&self, core: CoreId) -> Option<Stall> {
        self.stalls.iter().copied().find(|stall| stall.core == core)
    }
}

/// When `core`, which is being stalled, left user code.
pub fn left_user_code(s: &State, core: CoreId) -> Ticks {
    let left = s.readings.stall(core).map_or(s.core().now, |it| it.left);
    left.max(s.cores[core.0].now)
}

/// The clock is read again because `core` was stalled.
pub fn read_again(s: &mut State, core: CoreId) {
    let Some(stall) = s.readings.stall(core) else {
        return;
    };
    advance(s, stall.then);
    let may_go_on = account::can_pay(s, s.executing) && !account::is_turn_over(s);
    if !may_go_on && s.readings.over.is_none() {
        s.readings.over = Some(Box::new(s.clone()));
    }
}

/// It is `now`, if it was not already.
pub fn advance(s: &mut State, now: Ticks) {
    if now > s.core().now {
        account::update_time(s, now);
    }
}

/// The event of `caller`, who was running, is over: as it is, or as it was when the caller had no budget
/// any more, with whom it is then as after a preempted operation (04, section 6.4). Returns whether it
/// ended so.
pub fn conclude(s: &mut State, caller: Option<ThreadId>) -> bool {
    match s.readings.over.take() {
        Some(over) => {
            *s = *over;
            abandon(s, caller);
            true
        }
        None => {
            advance(s, s.readings.last);
            false
        }
    }
}

fn abandon(s: &mut State, caller: Option<ThreadId>) {
    let runnable = caller.filter(|caller| s.threads[caller].state.is_runnable());
    if let Some(caller) = runnable {
        s.thread_mut(caller).state = ThreadState::Restart;
    }
    let _ = account::settle(s);
}
