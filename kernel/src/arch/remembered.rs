//! What a thread remembers of its address space.

use super::abi::Space;

/// What a thread remembers: its address space, and in which state of all of them that was so. The state 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remembered {
    pub space: Space,
    pub state: u64,
}

impl Remembered {
    pub const NOTHING: Self = Remembered {
        space: Space::NONE,
        state: 0,
    };
}
