//! The one entry: an event happens at a time, and changes the state.

use crate::state::{State, Ticks};

/// Why the kernel was entered; the registers of the current thread are in the state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The system-call instruction.
    Syscall,
    /// `int vector`, which stands for an unknown system call (05, section 2.2).
    SoftwareInterrupt { vector: u8 },
    /// A processor exception of the current thread.
    Exception { number: u32, code: u32 },
    /// A page fault of the current thread.
    PageFault { address: u64, code: u32 },
    /// A device interrupt.
    Interrupt { irq: u8 },
    /// The timer.
    Timer,
}

/// What `event`, at the time `now`, does to the state.
pub fn handle(state: &mut State, event: Event, now: Ticks) {
    let _ = (state, event, now);
    todo!("model-ipc")
}
