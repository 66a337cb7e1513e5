//! What the components of a system tell each other in memory: who is where, so that attacks come at the right moment. Nobody
//! who attacks writes anything that others rely on.

use core::sync::atomic::{AtomicU64, Ordering};

use sandglass::Environment;

/// Of honest clients.
pub const HONEST: usize = 8;

/// The memory `board`. Everything is 0 at first.
#[repr(C)]
pub struct Board {
    /// What the victim is to do next, and the number of that order.
    pub order: AtomicU64,
    pub number: AtomicU64,
    /// The last order that the victim has called the gate for, and the last one that it was answered.
    pub called: AtomicU64,
    pub done: AtomicU64,
    /// At which moment the judge wants to know of the victim's request, one of [`moment`]; 0: at none.
    pub awaited: AtomicU64,
    /// The last order whose request was finished.
    pub finished: AtomicU64,
    /// The slot of the victim's capability of the gate.
    pub slot: AtomicU64,
    /// The first slots of the gate's capabilities of its clients' threads and contexts.
    pub clients: [AtomicU64; 2],
    /// Answers to honest clients.
    pub answers: [AtomicU64; HONEST],
}

/// Where the victim's request is.
pub mod moment {
    /// Not there yet: that of a flooder has begun to be served.
    pub const BEFORE: u64 = 1;
    /// In the gate, while another one is in service.
    pub const QUEUED: u64 = 2;
    pub const SERVED: u64 = 3;
}

impl Board {
    /// At the beginning of an operation: whether the judge wants to know.
    pub fn begins(&self, is_flood: bool) -> bool {
        is_flood && get(&self.awaited) == moment::BEFORE
    }

    /// In the middle of an operation, for the victim's order or for nobody's: what moment it is, if the judge wants to know. It
    /// hears of the one that it has missed, too.
    pub fn moment(&self, order: u64) -> Option<u64> {
        let (awaited, number) = (get(&self.awaited), get(&self.number));
        match awaited {
            moment::QUEUED | moment::SERVED if order == number => Some(moment::SERVED),
            moment::QUEUED if get(&self.called) == number => Some(moment::QUEUED),
            _ => None,
        }
    }
}

/// That of this component.
pub fn board(env: &Environment) -> &'static Board {
    let memory = env.memory("board");
    // SAFETY: the launcher mapped it for good, a page, page-aligned; any content of an atomic is valid.
    unsafe { &*memory.as_mut_ptr().cast::<Board>() }
}

pub fn get(cell: &AtomicU64) -> u64 {
    cell.load(Ordering::Acquire)
}

pub fn set(cell: &AtomicU64, value: u64) {
    cell.store(value, Ordering::Release);
}
