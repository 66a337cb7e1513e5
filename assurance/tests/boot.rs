//! The state after boot.

use sandglass_assurance::census::Anchor;
use sandglass_assurance::{abstraction, boot, invariants};

#[test]
fn every_invariant_holds_after_boot() {
    let k = boot::boot();
    invariants::sweep(&k, Anchor::of(&k)).unwrap();
}

#[test]
fn the_state_after_boot_is_abstract() {
    let k = boot::boot();
    let state = abstraction::of(&k, Anchor::of(&k)).unwrap();
    assert_eq!(state.threads.len(), 1);
    assert!(abstraction::windows(&state).agree(&state.memory, &state.memory));
}
