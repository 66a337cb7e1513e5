//! Whose window it is to be: the described plan, from when windows really ended.
//!
//! A straightforward simulation, which shares nothing with the scheduler: it looks at all partitions each time, and says
//! for any time what the state is then.

use sandglass_description::policy::partitions::{Form, Frame, Partition, Partitions};

/// A window that is to be. Times in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    pub partition: usize,
    pub number: u64,
    pub until: u64,
}

/// What is to be at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub turn: Option<Turn>,
    /// Who has had more than its window, and how much more.
    pub overrun: Option<(usize, u64)>,
}

/// The state of the plan.
pub enum Course {
    Periodic(Periodic),
    Cyclic(Cyclic),
}

impl Course {
    /// The course of a plan that counts from `start`, with so many ticks in a µs; `None` if there is none.
    pub fn of(partitions: &Partitions, start: u64, per_us: u64) -> Option<Self> {
        let by_deadline = match &partitions.form {
            Form::Deadlines => true,
            Form::Priorities => false,
            Form::Frames(frames) => {
                let count = partitions.partitions.len();
                return Some(Self::Cyclic(Cyclic::of(
                    frames.first()?,
                    count,
                    start,
                    per_us,
                )));
            }
        };
        let shares = partitions.partitions.iter();
        Some(Self::Periodic(Periodic {
            by_deadline,
            shares: shares.map(|of| Share::of(of, start, per_us)).collect(),
            running: None,
        }))
    }

    /// When the window changes next, as things stand.
    pub fn changes_at(&self) -> Option<u64> {
        match self {
            Self::Periodic(periodic) => periodic.changes_at(),
            Self::Cyclic(cyclic) => cyclic.changes_at(),
        }
    }

    /// What is to be from `at` on, which does not go back. Of partitions that are equal, `claimed` is taken.
    pub fn go_on(&mut self, at: u64, claimed: Option<usize>) -> Step {
        match self {
            Self::Periodic(periodic) => periodic.go_on(at, claimed),
            Self::Cyclic(cyclic) => cyclic.go_on(at),
        }
    }
}

/// A partition with period and budget. Times in ticks.
#[derive(Debug, Clone, Copy)]
struct Share {
    period: u64,
    deadline: u64,
    budget: u64,
    priority: u8,
    /// The next release.
    release: u64,
    released: u64,
    left: u64,
    debt: u64,
}

impl Share {
    fn of(partition: &Partition, start: u64, per_us: u64) -> Self {
        Self {
            period: (partition.period_us * per_us).max(1),
            deadline: partition.deadline_us * per_us,
            budget: partition.budget_us * per_us,
            priority: partition.priority,
            release: start + partition.offset_us * per_us,
            released: 0,
            left: 0,
            debt: 0,
        }
    }

    fn release_until(&mut self, at: u64) {
        while self.release <= at {
            *self = self.after_release();
        }
    }

    fn after_release(self) -> Self {
        let paid = self.debt.min(self.budget);
        Self {
            left: self.budget - paid,
            debt: self.debt - paid,
            release: self.release + self.period,
            released: self.released + 1,
            ..self
        }
    }

    fn last_release(&self) -> u64 {
        self.release - self.period
    }

    /// The smallest goes first; of equal ones, whoever was released first.
    fn rank(&self, by_deadline: bool) -> (u64, u64) {
        let urgency = match by_deadline {
            true => self.last_release() + self.deadline,
            false => u64::from(u8::MAX - self.priority),
        };
        (urgency, self.last_release())
    }
}

/// By deadline or by priority.
pub struct Periodic {
    by_deadline: bool,
    shares: Vec<Share>,
    /// Who has the processor, and since when.
    running: Option<(usize, u64)>,
}

impl Periodic {
    fn go_on(&mut self, at: u64, claimed: Option<usize>) -> Step {
        let overrun = self.charge(at);
        for share in &mut self.shares {
            share.release_until(at);
        }
        let first = self.first(claimed);
        self.running = first.map(|partition| (partition, at));
        let turn = first.map(|partition| Turn {
            partition,
            number: self.shares[partition].released - 1,
            until: at + self.shares[partition].left,
        });
        Step { turn, overrun }
    }

    fn charge(&mut self, at: u64) -> Option<(usize, u64)> {
        let (partition, since) = self.running?;
        let share = &mut self.shares[partition];
        let over = (at - since).saturating_sub(share.left);
        share.left = share.left.saturating_sub(at - since);
        share.debt += over;
        (over > 0).then_some((partition, over))
    }

    fn first(&self, claimed: Option<usize>) -> Option<usize> {
        let shares = self.shares.iter().enumerate();
        let ready = shares.filter(|(_, share)| share.left > 0);
        let rank = |(index, share): &(usize, &Share)| {
            (share.rank(self.by_deadline), claimed != Some(*index))
        };
        Some(ready.min_by_key(rank)?.0)
    }

    fn changes_at(&self) -> Option<u64> {
        let shares = self.shares.iter();
        let Some((running, since)) = self.running else {
            return shares.map(|share| next_budget(*share)).min();
        };
        let end = since + self.shares[running].left;
        let own = self.shares[running];
        let preempts = |(index, share): (usize, &Share)| {
            if index == running {
                return Some(share.release);
            }
            let mut then = *share;
            while then.release <= end {
                let at = then.release;
                then = then.after_release();
                if then.left > 0 && then.rank(self.by_deadline).0 < own.rank(self.by_deadline).0 {
                    return Some(at);
                }
            }
            None
        };
        let first = shares.enumerate().filter_map(preempts).min();
        Some(first.map_or(end, |first| first.min(end)))
    }
}

/// The first release after which a partition has something.
fn next_budget(mut share: Share) -> u64 {
    loop {
        let at = share.release;
        share = share.after_release();
        // One without budget is not described.
        if share.left > 0 || share.budget == 0 {
            return at;
        }
    }
}

/// By table. Times in ticks.
#[derive(Clone)]
pub struct Cyclic {
    length: u64,
    /// Partition, beginning in the frame, length.
    windows: Vec<(usize, u64, u64)>,
    debts: Vec<u64>,
    frame: u64,
    frame_start: u64,
    /// Windows of the frame that are past, or have begun.
    begun: usize,
    running: Option<Turn>,
    /// When the last one ended.
    ended: u64,
}

impl Cyclic {
    fn of(frame: &Frame, partitions: usize, start: u64, per_us: u64) -> Self {
        let windows = frame.windows.iter();
        let windows = windows.map(|of| {
            (
                of.partition as usize,
                of.at_us * per_us,
                of.length_us * per_us,
            )
        });
        Self {
            length: (frame.length_us * per_us).max(1),
            windows: windows.collect(),
            debts: vec![0; partitions],
            frame: 0,
            frame_start: start,
            begun: 0,
            running: None,
            ended: start,
        }
    }

    fn go_on(&mut self, at: u64) -> Step {
        let mut overrun = None;
        if let Some(turn) = self.running.take_if(|turn| turn.until <= at) {
            let over = at - turn.until;
            self.debts[turn.partition] += over;
            self.ended = at;
            overrun = (over > 0).then_some((turn.partition, over));
        }
        while self.running.is_none() && self.next_begin() <= at {
            let (_, turn) = self.begin();
            match turn.until <= at {
                true => self.ended = turn.until,
                false => self.running = Some(turn),
            }
        }
        Step {
            turn: self.running,
            overrun,
        }
    }

    /// When the next window begins, whether anything of it is left or not.
    fn next_begin(&self) -> u64 {
        let (frame, index) = match self.begun < self.windows.len() {
            true => (self.frame_start, self.begun),
            false => (self.frame_start + self.length, 0),
        };
        let offset = self.windows.get(index).map_or(0, |&(_, offset, _)| offset);
        (frame + offset).max(self.ended)
    }

    /// Takes the next window: when it begins, and what is left of it.
    fn begin(&mut self) -> (u64, Turn) {
        let at = self.next_begin();
        if self.begun >= self.windows.len() {
            self.frame += 1;
            self.frame_start += self.length;
            self.begun = 0;
        }
        // The rules of descriptions see to it that there is one, and of a partition that exists.
        let (partition, _, length) = self.windows[self.begun];
        self.begun += 1;
        let paid = self.debts[partition].min(length);
        self.debts[partition] -= paid;
        let turn = Turn {
            partition,
            number: self.frame,
            until: at + length - paid,
        };
        (at, turn)
    }

    fn changes_at(&self) -> Option<u64> {
        if let Some(turn) = self.running {
            return Some(turn.until);
        }
        let mut later = self.clone();
        // Windows that pay a debt with all that they have are passed over; a frame has several, and debts end.
        for _ in 0..self.windows.len() * 1000 {
            let (at, turn) = later.begin();
            if turn.until > at {
                return Some(at);
            }
            later.ended = at;
        }
        None
    }
}
