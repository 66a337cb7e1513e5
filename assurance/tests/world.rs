//! The world is made in lock step.

use sandglass_assurance::pair::Checks;
use sandglass_assurance::world;
use sandglass_kernel::time::schedule;
use sandglass_model::state::State;

#[test]
fn the_world_is_made_in_lock_step() {
    let pair = world::create(Checks::All).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(pair.follows());
}

/// The release queue is a list with equals in it: threads that wait for the same tick, of one priority.
#[test]
fn all_who_wait_for_the_same_tick_are_seen() {
    let pair = world::create(Checks::None).unwrap_or_else(|failure| panic!("{failure}"));
    let (k, core) = (&pair.k, pair.k.core());
    let before = pair.state().expect("the world is settled");
    let time = core.now() + 1_000_000;
    let mut waiting = 0;
    while let Some(thread) = core.ready().take_first(k) {
        thread.at(k).set_priority(k, 1);
        schedule::wait_for_release(k, thread, time);
        waiting += 1;
    }
    assert!(waiting >= 2, "{waiting} were ready");
    let after = pair.state().expect("whoever waits is where it was");
    let of = |state: &State| state.queues().release.len();
    assert_eq!(of(&after), of(&before) + waiting);
}
