//! The world is made in lock step.

use sandglass_assurance::pair::Checks;
use sandglass_assurance::world;

#[test]
fn the_world_is_made_in_lock_step() {
    let pair = world::create(Checks::All).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(pair.follows());
}
