//! One context as a system whose states are finitely many: see the head of the tests.

use std::fmt;

use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::sched_context::Refill;
use sandglass_kernel::object::sched_context::SchedContext;
use sandglass_kernel::time::refills::Refills;
use sandglass_kernel::Kernel;
use sandglass_testkit::refills;

use crate::explore::{History, System};

/// Most refills of the contexts that are explored.
pub const MOST: usize = 5;

/// A configuration, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    pub budget: u64,
    pub period: u64,
    pub max: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    ConstantBandwidth,
    /// Its thread, when it could run, may be kept from it by others for up to that many ticks.
    Sporadic {
        late: i64,
    },
}

impl Kind {
    fn is_late(self) -> bool {
        matches!(self, Kind::Sporadic { late: 1.. })
    }
}

/// A refill, its time in ticks from now on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Relative {
    amount: u8,
    time: i8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Use {
    /// By the thread that runs.
    Now,
    /// Its thread could run or waits for the refill.
    Waiting,
    /// Its thread, that of a sporadic context, is blocked.
    Asleep,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    refills: [Relative; MOST],
    count: u8,
    in_use: Use,
    /// Which parameters are in force.
    parameters: u8,
    /// The ticks before the head's time that were used.
    used: History,
    /// Those of them in which the second parameters were in force.
    second: History,
}

impl State {
    fn head(&self) -> Relative {
        self.refills[0]
    }

    fn queue(&self) -> &[Relative] {
        &self.refills[..usize::from(self.count)]
    }

    fn is_ready(&self) -> bool {
        self.head().time <= 0
    }
}

/// The refills as amount and time.
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for refill in self.queue() {
            write!(f, "{}@{} ", refill.amount, refill.time)?;
        }
        let State {
            used,
            second,
            in_use,
            parameters,
            ..
        } = self;
        write!(
            f,
            "in use {in_use:?}, parameters {parameters} (1 in {second:?}), used {used:?}"
        )
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// The context is used for so many ticks, which are charged.
    Use(u64),
    /// It is used for so many ticks, and then the thread gives up what is left of the head.
    Yield(u64),
    /// Its thread is preempted, or blocks if nothing follows from that.
    Leave,
    /// The thread of a sporadic context blocks.
    Sleep,
    /// That thread wakes, or the context is bound to another one.
    Wake,
    /// The scheduler chooses the thread.
    Choose,
    /// A tick passes while the context is not in use.
    Pass,
    /// The context of a runnable thread is configured.
    Update(u8),
}

/// One context and what may happen to it.
pub struct Algorithm<'k> {
    k: &'k Kernel,
    context: Ref<SchedContext>,
    kind: Kind,
    parameters: &'k [Parameters],
    /// Ticks by which a use may exceed the head: the kernel's path.
    overrun: u64,
    /// Where the ring of refills begins, different for every step: nothing depends on it.
    first: u8,
}

impl<'k> Algorithm<'k> {
    /// A context that is configured with the first of `parameters`. The kernel's path may be
    /// longer than what is left of a refill by `overrun` ticks.
    pub fn new(
        k: &'k Kernel,
        context: Ref<SchedContext>,
        kind: Kind,
        parameters: &'k [Parameters],
        overrun: u64,
    ) -> Self {
        Algorithm {
            k,
            context,
            kind,
            parameters,
            overrun,
            first: 0,
        }
    }

    /// Configures the context; the state that it is in then.
    pub fn configured(&mut self) -> State {
        let now = 1000;
        self.k.core().set_now(self.k, now);
        let Parameters {
            max,
            budget,
            period,
        } = self.parameters[0];
        self.refills().start(max, budget, period);
        let mut first = State {
            refills: Default::default(),
            count: 0,
            in_use: Use::Waiting,
            parameters: 0,
            used: History::default(),
            second: History::default(),
        };
        self.read(&mut first, now).expect("a new context");
        first
    }

    /// What is in force in `state`.
    fn force(&self, state: &State) -> Parameters {
        self.parameters[usize::from(state.parameters)]
    }

    fn longest(&self) -> u64 {
        let periods = self.parameters.iter().map(|p| p.period);
        periods.max().expect("parameters")
    }

    /// Ticks from any moment on in which the whole budget comes, if the `period` in force is this.
    /// What an overrun borrowed from a refill that is to come, comes a period after that; and so
    /// does what is behind the head of a context that is configured while it waits.
    fn settled(&self, period: u64) -> u64 {
        if self.overrun > 0 || self.parameters.len() > 1 {
            period + self.longest() + self.overrun
        } else {
            period
        }
    }

    fn min_budget(&self) -> u64 {
        self.k.constants.min_budget()
    }

    /// Puts the context into `state`.
    fn restore(&mut self, state: &State) {
        let now = self.k.core().now();
        let absolute = |refill: &Relative| Refill {
            amount: u64::from(refill.amount),
            time: now.wrapping_add_signed(i64::from(refill.time)),
        };
        let context = self.context.at(self.k);
        let Parameters { period, max, .. } = self.force(state);
        context.configure(self.k, period, max);
        self.first = (self.first + 1) % context.capacity();
        let queue = state.queue().iter().map(absolute);
        refills::put(self.k, self.context, self.first, queue);
    }

    fn refills(&self) -> Refills<'_> {
        Refills::of(self.k, self.context)
    }

    fn pass(&self, ticks: u64) {
        self.k.core().set_now(self.k, self.k.core().now() + ticks);
    }

    /// Reads the queue into `state`, which has used its head up to the absolute time `used_up_to`.
    fn read(&self, state: &mut State, used_up_to: u64) -> Result<(), String> {
        let now = self.k.core().now();
        let passed = self.refills().head().time.checked_sub(used_up_to);
        let passed = passed.ok_or("the head is earlier than what was used before it")?;
        self.advance(state, passed);
        let max = self.force(state).max;
        let count = self.refills().count();
        if count > max {
            return Err(format!("{count} refills of {max}"));
        }
        state.count = count;
        state.refills = Default::default();
        for (place, refill) in state.refills.iter_mut().zip(self.refills().iter()) {
            let time = refill.time.wrapping_sub(now) as i64;
            *place = Relative {
                amount: refill.amount.try_into().map_err(|_| "too much")?,
                time: time.try_into().map_err(|_| "too far away")?,
            };
        }
        Ok(())
    }

    /// The time of the head moves on by `ticks` that are not used.
    fn advance(&self, state: &mut State, ticks: u64) {
        state.used = state.used.after(ticks, false).last(self.longest());
        let second = state.parameters > 0;
        state.second = state.second.after(ticks, second).last(self.longest());
    }

    /// Uses the context for `ticks` of its head and what follows, and charges `charged`.
    fn charge(&self, state: &mut State, ticks: u64, charged: u64) -> Result<(), String> {
        let from = self.refills().head().time;
        self.pass(ticks);
        self.refills().charge(charged);
        state.used = state.used.after(ticks, true);
        let second = state.parameters > 0;
        state.second = state.second.after(ticks, second).last(self.longest());
        self.check_window(state)?;
        self.read(state, from + ticks)
    }

    /// In the window of one period that ends now, at most the budget was used, and what the kernel
    /// took itself. Windows in which there were several parameters have the shortest period and
    /// the largest budget of them.
    fn check_window(&self, state: &State) -> Result<(), String> {
        let Parameters { budget, period, .. } = self.force(state);
        let (mut length, mut allowed) = (period, budget);
        let second = state.second.used(period);
        let other = match state.parameters {
            0 => second > 0,
            _ => second < period,
        };
        if let (true, [first, second]) = (other, self.parameters) {
            length = first.period.min(second.period);
            allowed = first.budget.max(second.budget);
        }
        let used = state.used.used(length);
        if used > allowed + self.overrun {
            return Err(format!("{used} of {allowed} used in {length} ticks"));
        }
        Ok(())
    }

    /// What holds between any two operations.
    fn check(&self, state: &State) -> Result<(), String> {
        let Parameters { budget, .. } = self.force(state);
        let queue = state.queue();
        let sum: u64 = queue.iter().map(|refill| u64::from(refill.amount)).sum();
        if sum != budget {
            return Err(format!("{sum} ticks of {budget}: {queue:?}"));
        }
        if u64::from(state.head().amount) < self.min_budget() {
            return Err(format!("a head below the least budget: {queue:?}"));
        }
        let end = |refill: Relative| i64::from(refill.time) + i64::from(refill.amount);
        let overlap = |pair: &[Relative]| end(pair[0]) > i64::from(pair[1].time);
        if queue.windows(2).any(overlap) {
            return Err(format!("refills overlap: {queue:?}"));
        }
        let within = self.settled(self.force(state).period);
        if queue
            .iter()
            .any(|refill| i64::from(refill.time) > within as i64)
        {
            return Err(format!("a refill later than {within} ticks: {queue:?}"));
        }
        if self.kind == Kind::ConstantBandwidth && state.in_use == Use::Now && state.head().time < 0
        {
            return Err(format!("the head in use does not start now: {queue:?}"));
        }
        Ok(())
    }

    /// The canonical form: the times of refills that are ready and will start anew do not matter.
    fn canonical(&self, state: &mut State) {
        if state.in_use == Use::Now && !state.is_ready() {
            state.in_use = Use::Waiting;
        }
        let starts_anew = match self.kind {
            Kind::ConstantBandwidth => state.in_use == Use::Waiting,
            Kind::Sporadic { .. } => state.in_use == Use::Asleep,
        };
        if starts_anew {
            let earliest = self.earliest();
            let forgotten = i64::from(earliest) - i64::from(state.head().time);
            self.advance(state, forgotten.max(0) as u64);
            for refill in &mut state.refills {
                refill.time = refill.time.max(earliest);
            }
        }
    }

    /// Times before this one are not told apart where a ready refill will start anew. That a
    /// configuration takes such a refill as starting now is not taken for granted, so it has the
    /// times of one period.
    fn earliest(&self) -> i8 {
        if self.parameters.len() > 1 {
            -(self.longest() as i8)
        } else {
            0
        }
    }

    /// Whether a tick may pass without the context being used.
    fn may_pass(&self, state: &State) -> bool {
        match (self.kind, state.in_use) {
            (_, Use::Now) => false,
            (Kind::Sporadic { late }, Use::Waiting) => i64::from(state.head().time) > -late,
            _ => true,
        }
    }
}

impl System for Algorithm<'_> {
    type State = State;
    type Event = Event;

    /// From here on undisturbed, the thread gets its whole budget in every period.
    fn visit(&mut self, state: &State) -> Result<(), String> {
        if self.overrun > 0 || self.kind.is_late() {
            return Ok(());
        }
        self.restore(state);
        if state.in_use == Use::Asleep {
            self.refills().unblock();
        }
        let Parameters { budget, period, .. } = self.force(state);
        let begin = self.k.core().now() + self.settled(period);
        let mut got = [0; 3];
        while self.k.core().now() < begin + 3 * period {
            let refills = self.refills();
            let now = self.k.core().now().max(refills.head().time);
            self.k.core().set_now(self.k, now);
            if self.kind == Kind::ConstantBandwidth {
                refills.unblock();
            }
            let amount = refills.head().amount;
            for tick in (now..now + amount).filter(|tick| *tick >= begin) {
                if let Some(got) = got.get_mut(((tick - begin) / period) as usize) {
                    *got += 1;
                }
            }
            self.pass(amount);
            refills.charge(amount);
        }
        if got != [budget; 3] {
            return Err(format!("undisturbed it gets {got:?} in its periods"));
        }
        Ok(())
    }

    fn events(&self, state: &State) -> Vec<Event> {
        let mut events = Vec::new();
        let head = u64::from(state.head().amount);
        match state.in_use {
            Use::Now => {
                events.extend((1..=head + self.overrun).map(Event::Use));
                events.extend((0..head).map(Event::Yield));
                events.push(Event::Leave);
            }
            Use::Waiting if state.is_ready() => events.push(Event::Choose),
            Use::Waiting => {}
            Use::Asleep => events.push(Event::Wake),
        }
        if self.may_pass(state) {
            events.push(Event::Pass);
        }
        if self.kind != Kind::ConstantBandwidth && state.in_use == Use::Waiting {
            events.push(Event::Sleep);
        }
        if self.parameters.len() > 1 && state.in_use != Use::Asleep {
            events.extend((0..self.parameters.len()).map(|i| Event::Update(i as u8)));
        }
        events
    }

    fn step(&mut self, state: &State, event: Event) -> Result<State, String> {
        self.restore(state);
        let mut after = *state;
        let from = self.refills().head().time;
        match event {
            Event::Use(ticks) => self.charge(&mut after, ticks, ticks)?,
            Event::Yield(ticks) => {
                self.charge(&mut after, ticks, u64::from(state.head().amount))?;
            }
            Event::Leave => after.in_use = Use::Waiting,
            Event::Sleep => after.in_use = Use::Asleep,
            Event::Wake => {
                self.refills().unblock();
                self.read(&mut after, from)?;
                after.in_use = Use::Waiting;
            }
            Event::Choose => {
                if self.kind == Kind::ConstantBandwidth {
                    self.refills().unblock();
                }
                self.read(&mut after, from)?;
                after.in_use = Use::Now;
            }
            Event::Pass => {
                self.pass(1);
                self.read(&mut after, from)?;
            }
            Event::Update(i) => {
                let Parameters {
                    budget,
                    period,
                    max,
                } = self.parameters[usize::from(i)];
                self.refills().update(max, budget, period);
                after.parameters = i;
                self.read(&mut after, from)?;
            }
        }
        // Refills that are ready and start anew when they are used have no times of their own.
        if !(matches!(event, Event::Pass | Event::Leave | Event::Sleep)) {
            self.check(&after)?;
        }
        self.canonical(&mut after);
        Ok(after)
    }
}
