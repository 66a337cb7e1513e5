//! A state of the kernel with its one small budget, and what may happen to it.

use std::fmt;

use crate::explore::History;

/// Most refills of the contexts that are explored.
pub const MOST: usize = 4;
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Who {
    Root,
    Thread,
    Nobody,
}

/// The state of the thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Life {
    Runnable,
    Waits,
    Stopped,
}

/// The scheduler's queue that the thread is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Queued {
    Not,
    Ready,
    Release,
}

/// A refill, its time in ticks from now on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Relative {
    pub amount: u8,
    pub time: i8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    pub runs: Who,
    pub life: Life,
    pub bound: bool,
    pub queued: Queued,
    pub refills: [Relative; MOST],
    pub count: u8,
    /// Ticks that the thread has run and not paid for.
    pub unpaid: u8,
    /// When the timer fires, in ticks from now on; `None` if that is for the root task.
    pub deadline: Option<i8>,
    pub used: History,
}

impl State {
    pub fn queue(&self) -> &[Relative] {
        &self.refills[..usize::from(self.count)]
    }

    pub fn head(&self) -> Relative {
        self.refills[0]
    }

    /// Whether the thread would run if nobody else did.
    pub fn could_run(&self) -> bool {
        self.life == Life::Runnable && self.bound && self.head().time <= 0
    }

    /// A tick later.
    pub fn passed(&self) -> State {
        let mut after = *self;
        for refill in &mut after.refills[..usize::from(self.count)] {
            refill.time -= 1;
        }
        after.deadline = after.deadline.map(|deadline| deadline - 1);
        let used = self.runs == Who::Thread;
        after.unpaid += u8::from(used);
        after.used = after.used.after(1, used);
        after
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for refill in self.queue() {
            write!(f, "{}@{} ", refill.amount, refill.time)?;
        }
        let State {
            runs,
            life,
            bound,
            queued,
            unpaid,
            deadline,
            used,
            ..
        } = self;
        write!(
            f,
            "{runs:?} runs, {life:?}, bound {bound}, {queued:?}, unpaid {unpaid}, deadline \
             {deadline:?}, used {used:?}"
        )
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A tick passes in user code, or nobody runs.
    Pass,
    Timer,
    /// An interrupt that nobody waits for.
    Interrupt,
    WakeRoot,
    WakeThread,
    /// The thread gives up the rest of its head.
    Yield,
    /// Whoever runs waits to be woken.
    Wait,
    Suspend,
    Resume,
    Unbind,
    Bind,
    /// The context is configured as it was.
    Configure,
}
