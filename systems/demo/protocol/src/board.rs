//! The memory in which each component shows the recorder what it did.

use core::sync::atomic::AtomicU64;

use crate::trace::Trace;
use crate::twin::Twin;

/// Number of clients: A and B.
pub const CLIENTS: usize = 2;

/// Most releases of the control task in one run.
pub const MAX_RELEASES: usize = 1024;

/// Shared memory of a fixed layout.
///
/// # Safety
/// Made of `AtomicU64` only (so that any content is valid), in `repr(C)`.
pub unsafe trait Board: Sized + 'static {
    /// The board in `len` bytes of memory at `memory`.
    ///
    /// # Panics
    /// If the memory is too small or not aligned: the description of the system is wrong.
    ///
    /// # Safety
    /// The memory must be mapped for good, writable if the board is written, and used as this
    /// board by everybody.
    unsafe fn in_memory(memory: *mut u8, len: u64) -> &'static Self {
        assert!(
            len >= size_of::<Self>() as u64 && memory.cast::<Self>().is_aligned(),
            "a board needs {} bytes, not {len}",
            size_of::<Self>()
        );
        // SAFETY: large enough and aligned; any content is valid, and atomics may be shared.
        unsafe { &*memory.cast() }
    }
}

/// Words of the server's state: [`ServerState`].
const SERVER_WORDS: usize = 3 + CLIENTS;

/// How far the server is: of the request that it works on, and altogether.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerState {
    /// Whose request; 0 before the first one.
    pub badge: u64,
    /// The client's name for the request.
    pub ticket: u64,
    /// Bytes of it that are finished.
    pub done: u64,
    /// Bytes that were ever finished, for each client.
    pub total: [u64; CLIENTS],
}

impl ServerState {
    pub const fn words(self) -> [u64; SERVER_WORDS] {
        let [a, b] = self.total;
        [self.badge, self.ticket, self.done, a, b]
    }

    pub const fn from_words([badge, ticket, done, a, b]: [u64; SERVER_WORDS]) -> Self {
        Self {
            badge,
            ticket,
            done,
            total: [a, b],
        }
    }
}

/// The server's and its timeout handler's.
#[derive(Debug)]
#[repr(C)]
pub struct ServerBoard {
    /// Published by the server only.
    pub state: Twin<SERVER_WORDS>,
    /// Timeouts handled, for each client. These three are the handler's.
    pub rollbacks: [AtomicU64; CLIENTS],
    /// Ticks from the receipt of one of these timeouts to the server waiting again: all, and the longest.
    pub handling_total: AtomicU64,
    pub handling_longest: AtomicU64,
    pub server_trace: Trace,
    pub handler_trace: Trace,
}

/// A client's.
#[derive(Debug)]
#[repr(C)]
pub struct ClientBoard {
    /// Bytes that the client knows are done, and their digest.
    pub acknowledged: Twin<2>,
    pub trace: Trace,
}

/// The control task's.
#[derive(Debug)]
#[repr(C)]
pub struct ControlBoard {
    /// Releases completed.
    pub releases: AtomicU64,
    /// Of these, completed after the deadline.
    pub misses: AtomicU64,
    /// Time executed for them, ticks.
    pub busy: AtomicU64,
    /// Output of the control law, so that its work has a result.
    pub output: AtomicU64,
    /// From release to completion, ns.
    pub responses: [AtomicU64; MAX_RELEASES],
    pub trace: Trace,
}

/// The burner's.
#[derive(Debug)]
#[repr(C)]
pub struct BurnerBoard {
    /// Looks at the clock.
    pub rounds: AtomicU64,
    pub trace: Trace,
}

// SAFETY: atomics in `repr(C)`, `Twin` and `Trace` included.
unsafe impl Board for ServerBoard {}
// SAFETY: as above.
unsafe impl Board for ClientBoard {}
// SAFETY: as above.
unsafe impl Board for ControlBoard {}
// SAFETY: as above.
unsafe impl Board for BurnerBoard {}

/// Bytes that each board's memory must have: enough for the largest, in pages.
pub const BOARD_BYTES: usize = 32 << 10;
const _: () = assert!(
    size_of::<ServerBoard>() <= BOARD_BYTES
        && size_of::<ClientBoard>() <= BOARD_BYTES
        && size_of::<ControlBoard>() <= BOARD_BYTES
        && size_of::<BurnerBoard>() <= BOARD_BYTES
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_state_round_trips() {
        let state = ServerState {
            badge: 1,
            ticket: 2,
            done: 3,
            total: [4, 5],
        };
        assert_eq!(ServerState::from_words(state.words()), state);
    }

    #[test]
    #[should_panic(expected = "a board needs")]
    fn memory_that_is_too_small_is_no_board() {
        let mut memory = [0u64; 4];
        // SAFETY: refused before it is used.
        unsafe { ClientBoard::in_memory(memory.as_mut_ptr().cast(), 32) };
    }
}
