//! Branches that cannot be taken.

/// Says that this branch cannot be taken. On a host it panics, so that a test which takes it fails; on the
/// bare machine, which has no panic, the code that follows leaves everything as it is.
macro_rules! never {
    ($why:literal) => {
        if cfg!(not(target_os = "none")) {
            panic!(concat!("this cannot be: ", $why));
        }
    };
}
