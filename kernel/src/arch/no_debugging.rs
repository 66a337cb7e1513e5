//! Of kernels without the hardware-debug API (05, section 2.6): there is nothing of it.

/// What a thread has set to be watched: nothing.
pub struct State;

impl State {
    pub const fn new() -> Self {
        State
    }
}

/// What the processor reports of it: nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {}

impl Event {
    /// Which kind it is.
    pub fn reason(self) -> u64 {
        match self {}
    }
}
