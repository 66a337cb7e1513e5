//! Who is in the kernel: a fair lock between cores, and a mailbox for each of them.
//!
//! Cores enter the kernel in the order in which they asked to, so a core waits for at most one turn
//! of each other core. Whoever is in the kernel can ask whether another core waits, and shorten a long
//! turn. A core that waits has its interrupts off; whoever is in the kernel may need
//! something of it all the same (that it forgets a translation, stores the FPU's registers, is no
//! more in user code), so it serves its mailbox while it waits. A core in user code is interrupted
//! to the same end.
//!
//! Only the core in the kernel posts, and it waits until what it asked for is done. So a mailbox
//! holds requests of one core at a time, is empty whenever nobody is in the kernel, and no core ever
//! waits for one that waits for it.
//!
//! The crate is the protocol and nothing else: what the lock protects is its user's. It is generic
//! over the atomic word, so that model checkers run this very code (`tests/`).

#![no_std]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU32, Ordering};

/// An atomic word of 32 bits: the machine's, or that of a model checker.
pub trait Word {
    /// Reads it.
    fn load(&self, order: Ordering) -> u32;
    /// Replaces it.
    fn store(&self, value: u32, order: Ordering);
    /// Adds one, around the end; returns what was there.
    fn increment(&self, order: Ordering) -> u32;
    /// Gives way to whoever a core waits for.
    fn pause();
}

impl Word for AtomicU32 {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u32 {
        AtomicU32::load(self, order)
    }

    #[inline(always)]
    fn store(&self, value: u32, order: Ordering) {
        AtomicU32::store(self, value, order);
    }

    #[inline(always)]
    fn increment(&self, order: Ordering) -> u32 {
        self.fetch_add(1, order)
    }

    #[inline(always)]
    fn pause() {
        core::hint::spin_loop();
    }
}

/// A cache line of its own, since each is polled by another core.
#[repr(align(64))]
pub struct Line<W>(W);

impl<W> Line<W> {
    pub const fn new(word: W) -> Self {
        Line(word)
    }
}

/// What is asked of a core: a set of bits whose meaning is the lock's user's. Never empty in a
/// mailbox that asks for something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Requests(pub u32);

/// The place of a core that has arrived and waits for its turn.
#[must_use]
#[derive(Debug)]
#[repr(transparent)]
pub struct Ticket(u32);

/// The permission to be in the kernel, until it is given back by [`Lock::leave`].
#[must_use]
#[derive(Debug)]
#[repr(transparent)]
pub struct Turn {
    ticket: u32,
}

impl Turn {
    /// Position in the order of all turns, from 0, around the end of 32 bits.
    pub fn ticket(&self) -> u32 {
        self.ticket
    }
}

/// A lock for `CORES` cores, numbered from 0.
pub struct Lock<W, const CORES: usize> {
    /// The ticket that is drawn next.
    next: Line<W>,
    /// The ticket whose turn it is.
    serving: Line<W>,
    /// What each core is asked for; 0 for nothing.
    mailboxes: [Line<W>; CORES],
}

impl<const CORES: usize> Lock<AtomicU32, CORES> {
    /// A lock with nobody in the kernel.
    pub const fn new() -> Self {
        Lock {
            next: Line(AtomicU32::new(0)),
            serving: Line(AtomicU32::new(0)),
            mailboxes: [const { Line(AtomicU32::new(0)) }; CORES],
        }
    }
}

impl<W, const CORES: usize> Lock<W, CORES> {
    /// A lock with nobody in the kernel, of words that are all 0.
    pub const fn of(next: Line<W>, serving: Line<W>, mailboxes: [Line<W>; CORES]) -> Self {
        Lock {
            next,
            serving,
            mailboxes,
        }
    }
}

impl<const CORES: usize> Default for Lock<AtomicU32, CORES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: Word, const CORES: usize> Lock<W, CORES> {
    /// A lock of words that `word` makes with a value.
    pub fn with(word: impl Fn(u32) -> W) -> Self {
        Lock {
            next: Line(word(0)),
            serving: Line(word(0)),
            mailboxes: core::array::from_fn(|_| Line(word(0))),
        }
    }

    /// A core arrives: its turn begins at once, unless somebody is in the kernel. Then it is to
    /// [`wait`](Self::wait).
    ///
    /// # Errors
    /// Its place in the order.
    #[inline(always)]
    pub fn arrive(&self) -> Result<Turn, Ticket> {
        // Relaxed: the draw orders nothing but the turns.
        let ticket = self.next.0.increment(Ordering::Relaxed);
        if self.is_turn_of(ticket) {
            Ok(Turn { ticket })
        } else {
            Err(Ticket(ticket))
        }
    }

    /// Whether another core waits for its turn, asked by the one whose turn it is. A core that arrives
    /// is seen after a time, not at once.
    #[inline(always)]
    pub fn others_wait(&self) -> bool {
        // Relaxed, both: the answer orders nothing. The caller has written what is served, or read it
        // when its turn began.
        let drawn = self.next.0.load(Ordering::Relaxed);
        let served = self.serving.0.load(Ordering::Relaxed);
        drawn.wrapping_sub(served) > 1
    }

    #[inline(always)]
    fn is_turn_of(&self, ticket: u32) -> bool {
        // Acquire: what the core before did in the kernel is seen from here on.
        self.serving.0.load(Ordering::Acquire) == ticket
    }

    /// Waits until it is the turn of `core`, which has arrived. Whatever the core is asked for meanwhile,
    /// `serve` does.
    pub fn wait(&self, core: usize, ticket: Ticket, mut serve: impl FnMut(Requests)) -> Turn {
        let Ticket(ticket) = ticket;
        while !self.is_turn_of(ticket) {
            self.serve(core, &mut serve);
            W::pause();
        }
        Turn { ticket }
    }

    /// The next core's turn begins.
    #[inline(always)]
    pub fn leave(&self, _turn: Turn) {
        // Relaxed: nobody writes it but the core whose turn it is. It reads what it serves, and does
        // not have to remember its ticket.
        let served = self.serving.0.load(Ordering::Relaxed);
        // Release: with what this core did in the kernel.
        self.serving
            .0
            .store(served.wrapping_add(1), Ordering::Release);
    }

    /// Does what `core`, not in the kernel, is asked for, if anything. Called at the interrupt that
    /// [`request`](Self::request) raises; a core that waits for its turn does it by itself. A core
    /// that must not go on in user code until the one that asked has left enters the kernel next.
    #[inline(always)]
    pub fn serve(&self, core: usize, mut serve: impl FnMut(Requests)) {
        let Some(mailbox) = self.mailboxes.get(core) else {
            return;
        };
        // Acquire: what the request is about was written before it.
        let asked = mailbox.0.load(Ordering::Acquire);
        if asked != 0 {
            serve(Requests(asked));
            // Release: what was done, and all that this core wrote before, is seen by who asked.
            mailbox.0.store(0, Ordering::Release);
        }
    }

    /// Asks each of `cores`, a set of bits, for `what`, and waits until all have done it. Called
    /// by the core whose turn it is, which must not be in the set. `interrupt` raises an interrupt
    /// at a core, which it takes as soon as it is in user code.
    pub fn request(&self, cores: u32, what: Requests, mut interrupt: impl FnMut(usize)) {
        let asked = || {
            let all = self.mailboxes.iter().enumerate();
            all.filter(|&(core, _)| cores >> core & 1 != 0)
        };
        for (core, mailbox) in asked() {
            // Release: with what the request is about.
            mailbox.0.store(what.0, Ordering::Release);
            interrupt(core);
        }
        for (_, mailbox) in asked() {
            // Acquire: what the core did, and the registers that it saved when it left user code.
            while mailbox.0.load(Ordering::Acquire) != 0 {
                W::pause();
            }
        }
    }
}
