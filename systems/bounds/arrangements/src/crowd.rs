//! Threads that wait at objects, and the states of their budgets.

use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;

use crate::machine::{Call, Machine, Program, Refused};
use crate::order::Order;
use crate::parameters::Arrangement;
use crate::workshop::{Budget, Workshop};

/// Lowest priority, above that of the root task while it lets others run.
const LOWEST: u64 = 10;

/// Budgets that are used up come back so late that nobody sees it, µs; and so far apart.
const LATE_US: u64 = 3_600_000_000;
const APART_US: u64 = 100;
/// What they have, µs: enough for a system call.
const BUDGET_US: u64 = 100;

/// A budget of which what was used comes back late.
const SPORADIC: Budget = Budget {
    budget_us: 1_000_000,
    period_us: LATE_US,
    extra_refills: 0,
    sporadic: true,
};

/// A budget in as many pieces as the kernel uses; they come back after a period, which is longer
/// than it takes to make them.
const PIECES: u64 = 128;
const FRAGMENTED: Budget = Budget {
    budget_us: 1_000,
    period_us: 10_000,
    extra_refills: PIECES,
    sporadic: true,
};
/// Threads that have such: more than are handled between two looks for interrupts.
const FRAGMENTED_THREADS: u64 = 32;

/// The state of the budget of a thread that waits. It is never used up: the kernel lets nobody
/// come to where it waits on such, and binds none to a thread that waits (ABI 03, section 6.2).
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Round robin.
    Full,
    /// Of a period of its own, used in part.
    Sporadic,
    /// In as many pieces as can be, all of them due.
    Fragmented,
    /// The thread has none.
    None,
}

/// A thread that waits, and its context.
#[derive(Clone, Copy)]
pub struct Member {
    pub tcb: u64,
    pub context: u64,
}

/// A budget that, used up, comes back late, as number `place` of many.
pub const fn late(place: u64) -> Budget {
    Budget {
        budget_us: BUDGET_US,
        period_us: LATE_US + place * APART_US,
        extra_refills: 0,
        sporadic: true,
    }
}

/// The priority at place `place` of `count`, where there are `distinct` different ones.
pub const fn priority(place: u64, count: u64, distinct: u64) -> u64 {
    LOWEST + place * distinct / if count > 0 { count } else { 1 }
}

/// Where the objects of a thread are made.
#[derive(Clone, Copy)]
pub struct Memories {
    pub tcb: u64,
    pub context: u64,
}

impl Memories {
    /// All of them in one memory.
    pub const fn of(memory: u64) -> Self {
        Self {
            tcb: memory,
            context: memory,
        }
    }
}

/// Makes threads one after the other.
pub struct Crowd {
    count: u64,
    priorities: Order,
    distinct: u64,
    budgets: &'static str,
    releases: Order,
    seed: u64,
    /// The context on which they come to where they wait.
    starter: u64,
    /// What wakes those that cut their budgets into pieces.
    alarm: u64,
    /// When the last of the pieces has come back, in ticks.
    whole_at: u64,
    /// Threads that were found to be among the first.
    in_front: u64,
}

impl Crowd {
    /// Of `count` threads, as the arrangement says.
    pub fn new<M: Machine>(
        workshop: &mut Workshop<M>,
        arrangement: &Arrangement,
        count: u64,
    ) -> Result<Self, Refused> {
        Ok(Self {
            count,
            priorities: Order::named(arrangement.value("priorities")),
            distinct: arrangement.number("distinct").max(1),
            budgets: arrangement.value("budgets"),
            releases: Order::named(arrangement.value("releases")),
            seed: arrangement.number("seed"),
            starter: workshop.make_long_context()?,
            alarm: workshop.make(types::NOTIFICATION, 0, 1)?,
            whole_at: 0,
            in_front: 0,
        })
    }

    /// Priority of thread `i`.
    fn priority(&self, i: u64) -> u64 {
        let place = self.priorities.place(i, self.count, self.seed);
        priority(place, self.count, self.distinct)
    }

    /// State of the budget of thread `i`. Only some have theirs in pieces: to cut them takes time.
    fn state(&mut self, i: u64) -> State {
        let in_pieces = match self.budgets {
            "fragmented" => true,
            "by-turns" => i.is_multiple_of(2),
            _ => false,
        };
        if in_pieces && self.is_in_front(i) {
            return State::Fragmented;
        }
        match self.budgets {
            "sporadic" | "fragmented" => State::Sporadic,
            "none" => State::None,
            _ => State::Full,
        }
    }

    /// Whether thread `i`, which is asked about in its turn, is among the first of the queue: these are
    /// let go one after the other.
    fn is_in_front(&mut self, i: u64) -> bool {
        let place = self.priorities.place(i, self.count, self.seed);
        let is_first = if self.count / self.distinct < FRAGMENTED_THREADS {
            self.priorities != Order::Same && self.count - 1 - place < FRAGMENTED_THREADS
        } else {
            // Among equals those that came first.
            self.priority(i) == priority(self.count - 1, self.count, self.distinct)
        };
        let is_first = is_first || self.priorities == Order::Same;
        let is_in_front = is_first && self.in_front < FRAGMENTED_THREADS;
        self.in_front += u64::from(is_in_front);
        is_in_front
    }

    /// Thread `i` waits by `call`. The root task runs below all others.
    pub fn wait<M: Machine>(
        &mut self,
        workshop: &mut Workshop<M>,
        i: u64,
        call: Call,
        memories: Memories,
    ) -> Result<Member, Refused> {
        let state = self.state(i);
        let tcb = workshop.make_of(memories.tcb, types::TCB, 0, 1)?;
        let pieces = if state == State::Fragmented {
            PIECES
        } else {
            0
        };
        let context = workshop.make_context_of(memories.context, pieces)?;
        workshop.prepare(tcb, self.priority(i))?;
        match state {
            State::Full => workshop.configure(context, Budget::LONG)?,
            State::Sporadic => workshop.configure(context, SPORADIC)?,
            State::Fragmented => self.cut(workshop, tcb, context)?,
            State::None => {}
        }
        if matches!(state, State::Full | State::Sporadic) {
            workshop.bind(context, tcb)?;
            workshop.start(tcb, call)?;
            return Ok(Member { tcb, context });
        }
        workshop.bind(self.starter, tcb)?;
        workshop.start(tcb, call)?;
        workshop.unbind(self.starter)?;
        if state == State::Fragmented {
            workshop.bind(context, tcb)?;
        }
        Ok(Member { tcb, context })
    }

    /// Thread `i` waits for its budget, all of which is used up. The root task runs below all
    /// others.
    pub fn wait_for_time<M: Machine>(
        &self,
        workshop: &mut Workshop<M>,
        i: u64,
        memories: Memories,
    ) -> Result<Member, Refused> {
        let tcb = workshop.make_of(memories.tcb, types::TCB, 0, 1)?;
        let context = workshop.make_context_of(memories.context, 0)?;
        workshop.prepare(tcb, self.priority(i))?;
        let place = self.releases.place(i, self.count, self.seed + 1);
        workshop.configure(context, late(place))?;
        workshop.bind(context, tcb)?;
        workshop.start(tcb, Call::new(Syscall::Yield, 0))?;
        Ok(Member { tcb, context })
    }

    /// `context` is cut into pieces: at each signal its thread runs for a moment, and what it used
    /// comes back on its own.
    fn cut<M: Machine>(
        &mut self,
        workshop: &mut Workshop<M>,
        tcb: u64,
        context: u64,
    ) -> Result<(), Refused> {
        workshop.configure(context, FRAGMENTED)?;
        workshop.bind(context, tcb)?;
        let wait = Call::new(Syscall::Wait, self.alarm);
        workshop.machine.write(tcb, Program::Repeat, wait, true)?;
        for _ in 0..PIECES + 10 {
            workshop.machine.signal(self.alarm);
        }
        workshop.suspend(tcb)?;
        workshop.unbind(context)?;
        let period = workshop.machine.us_to_ticks(FRAGMENTED.period_us);
        self.whole_at = workshop.machine.now() + period;
        Ok(())
    }

    /// All that was cut has come back.
    pub fn settle<M: Machine>(&self, workshop: &mut Workshop<M>) {
        workshop.machine.pass_until(self.whole_at);
    }
}
