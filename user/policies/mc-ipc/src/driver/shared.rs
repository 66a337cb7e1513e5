//! The memory that a gate shares with its own threads. Only the gate changes it, but for the answer, tolls that are paid, and
//! periods of tables.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::kernel::WORDS;
use super::sender::Signals;
use crate::protocol::ClientId;

/// A message in shared memory.
#[derive(Debug)]
struct Words {
    label: AtomicU64,
    count: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl Words {
    fn new() -> Self {
        Self {
            label: AtomicU64::new(0),
            count: AtomicU64::new(0),
            words: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// What is behind the last word that fits is lost.
    fn put(&self, label: u64, words: &[u64]) {
        let count = words.len().min(WORDS);
        for (cell, word) in self.words.iter().zip(words) {
            cell.store(*word, Ordering::Relaxed);
        }
        self.label.store(label, Ordering::Relaxed);
        // With this, the words are there for whoever sees the count.
        self.count.store(count as u64, Ordering::Release);
    }

    fn get(&self, words: &mut [u64; WORDS]) -> (u64, usize) {
        let count = self.count.load(Ordering::Acquire) as usize;
        let count = count.min(WORDS);
        for (word, cell) in words.iter_mut().zip(&self.words[..count]) {
            *word = cell.load(Ordering::Relaxed);
        }
        (self.label.load(Ordering::Relaxed), count)
    }
}

/// Whose context the server has: all in one word, so that it is read in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payer {
    /// A request is in service.
    pub is_active: bool,
    pub client: Option<ClientId>,
}

impl Payer {
    /// As one word.
    const fn raw(self) -> u64 {
        let client = match self.client {
            Some(client) => client.0 as u64 + 1,
            None => 0,
        };
        (self.is_active as u64) << 63 | client
    }

    const fn from_raw(raw: u64) -> Self {
        let client = (raw & 0xffff_ffff) as usize;
        Self {
            is_active: raw >> 63 != 0,
            client: if client == 0 {
                None
            } else {
                Some(ClientId(client - 1))
            },
        }
    }
}

/// On which thread the work of a server is done: whoever pays for it runs that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Server,
    /// The server waits at another gate: its spinner there.
    Waiting,
    /// The server waits at another gate, and it pays there: that gate's server.
    Inner,
    /// None, for a moment: it is changing.
    Nobody,
}

impl Target {
    /// As a word of a message.
    pub const fn raw(self) -> u64 {
        match self {
            Target::Server => 0,
            Target::Waiting => 1,
            Target::Inner => 2,
            Target::Nobody => 3,
        }
    }

    /// What a word means; nobody, if it is none of these.
    pub const fn of(raw: u64) -> Target {
        match raw {
            0 => Target::Server,
            1 => Target::Waiting,
            2 => Target::Inner,
            _ => Target::Nobody,
        }
    }
}

/// A request for the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    pub client: ClientId,
    pub label: u64,
    pub count: usize,
    pub words: [u64; WORDS],
}

impl Job {
    /// The words of the request.
    pub fn request(&self) -> &[u64] {
        &self.words[..self.count]
    }
}

/// What the gate and its own threads share.
#[derive(Debug)]
pub struct Shared {
    payer: AtomicU64,
    /// On which thread the server's work is done: see [`Target`].
    target: AtomicU64,
    /// Of each client: its budget was used up, and it has not run since.
    exhausted: Box<[AtomicBool]>,
    /// Of each client: its answer is held back until its spinner has run for the toll.
    tolls: Box<[AtomicBool]>,
    /// Of each core: periods of its table that have begun. Signals of several come as one.
    ticks: Box<[AtomicU64]>,
    job_of: AtomicU64,
    request: Words,
    answer: Words,
}

impl Shared {
    /// For so many clients.
    pub fn new(clients: usize) -> Self {
        let flags = || -> Box<[AtomicBool]> {
            let flags: Vec<_> = (0..clients).map(|_| AtomicBool::new(false)).collect();
            flags.into_boxed_slice()
        };
        let ticks: Vec<_> = (0..Signals::CORES).map(|_| AtomicU64::new(0)).collect();
        Self {
            payer: AtomicU64::new(0),
            target: AtomicU64::new(Target::Server.raw()),
            exhausted: flags(),
            tolls: flags(),
            ticks: ticks.into_boxed_slice(),
            job_of: AtomicU64::new(0),
            request: Words::new(),
            answer: Words::new(),
        }
    }

    /// Whose context the server has.
    pub fn payer(&self) -> Payer {
        Payer::from_raw(self.payer.load(Ordering::Acquire))
    }

    pub(super) fn set_payer(&self, payer: Payer) {
        self.payer.store(payer.raw(), Ordering::Release);
    }

    /// On which thread the server's work is done.
    pub fn target(&self) -> Target {
        Target::of(self.target.load(Ordering::Acquire))
    }

    pub(super) fn set_target(&self, target: Target) {
        self.target.store(target.raw(), Ordering::Release);
    }

    /// The client's budget was used up, and it has not run since.
    pub fn is_exhausted(&self, client: ClientId) -> bool {
        self.exhausted[client.0].load(Ordering::Acquire)
    }

    pub(super) fn set_exhausted(&self, client: ClientId, is_exhausted: bool) {
        self.exhausted[client.0].store(is_exhausted, Ordering::Release);
    }

    pub(super) fn owe_toll(&self, client: ClientId) {
        self.tolls[client.0].store(true, Ordering::Release);
    }

    /// Whether a client has to pay a toll: tells so once.
    pub(super) fn take_toll(&self, client: ClientId) -> bool {
        self.tolls[client.0].swap(false, Ordering::AcqRel)
    }

    /// A period of a core's table begins: by that one's thread.
    pub(super) fn count_tick(&self, core: usize) {
        self.ticks[core].fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn ticks(&self, core: usize) -> u64 {
        self.ticks[core].load(Ordering::Acquire)
    }

    pub(super) fn put_job(&self, client: ClientId, label: u64, words: &[u64]) {
        self.job_of.store(client.0 as u64, Ordering::Relaxed);
        self.request.put(label, words);
    }

    pub(super) fn job(&self) -> Job {
        let mut words = [0; WORDS];
        let (label, count) = self.request.get(&mut words);
        let client = ClientId(self.job_of.load(Ordering::Relaxed) as usize);
        Job {
            client,
            label,
            count,
            words,
        }
    }

    pub(super) fn put_answer(&self, label: u64, words: &[u64]) {
        self.answer.put(label, words);
    }

    /// Label and number of words.
    pub(super) fn answer(&self, words: &mut [u64; WORDS]) -> (u64, usize) {
        self.answer.get(words)
    }
}
