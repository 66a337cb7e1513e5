//! Partitions and threads tick by tick.

use sandglass_partitions::local::Kind;
use sandglass_partitions::periodic::{Order, Parameters};

/// A partition by period and budget. Times in ticks.
struct Partition {
    parameters: Parameters,
    period: u64,
    next_release: u64,
    deadline: u64,
    /// Negative: it has had more than it should.
    balance: i64,
    number: Option<u64>,
    /// When it came to wait for its release, and for the processor, among all that came to wait.
    arrivals: (u64, u64),
}

/// Partitions by period and budget.
pub struct Partitions {
    order: Order,
    granule: u64,
    partitions: Vec<Partition>,
    arrivals: u64,
    running: Option<usize>,
    now: u64,
    looked: bool,
}

/// As the library's, in numbers.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Partition, number, end.
    pub window: Option<(usize, u64, u64)>,
    pub wake_at: Option<u64>,
    pub overrun: Option<(usize, u64)>,
    pub jobs: u32,
}

impl Partitions {
    pub fn new(order: Order, granule: u64, start: u64, parameters: &[Parameters]) -> Self {
        let partition = |(index, &parameters): (usize, &Parameters)| Partition {
            parameters,
            period: parameters.period * granule,
            next_release: start + parameters.offset * granule,
            deadline: 0,
            balance: 0,
            number: None,
            arrivals: (index as u64, 0),
        };
        Self {
            order,
            granule,
            partitions: parameters.iter().enumerate().map(partition).collect(),
            arrivals: parameters.len() as u64,
            running: None,
            now: start,
            looked: false,
        }
    }

    pub fn decide(&mut self, now: u64) -> Outcome {
        let mut outcome = Outcome {
            window: None,
            wake_at: None,
            overrun: None,
            jobs: 0,
        };
        if let Some(running) = self.running {
            let partition = &mut self.partitions[running];
            let had = partition.balance;
            partition.balance -= (now - self.now) as i64;
            if partition.balance <= 0 {
                outcome.jobs += 1;
            }
            let over = (now - self.now) as i64 - had;
            outcome.overrun = (over > 0).then_some((running, over as u64));
        }
        let from = self.now + u64::from(self.looked);
        for tick in from..=now {
            outcome.jobs += self.release(tick);
        }
        (self.now, self.looked) = (now, true);
        self.running = self.first();
        outcome.window = self.running.map(|index| {
            let partition = &self.partitions[index];
            let number = partition.number.unwrap();
            (index, number, now + partition.balance as u64)
        });
        let releases = self
            .partitions
            .iter()
            .map(|partition| partition.next_release);
        let ends = outcome.window.map(|(_, _, end)| end);
        outcome.wake_at = releases.chain(ends).min();
        outcome
    }

    fn release(&mut self, tick: u64) -> u32 {
        let is_due = |of: &&usize| self.partitions[**of].next_release == tick;
        let all: Vec<usize> = (0..self.partitions.len()).collect();
        let mut due: Vec<usize> = all.iter().filter(is_due).copied().collect();
        due.sort_by_key(|&index| self.partitions[index].arrivals.0);
        for &index in &due {
            self.arrivals += 1;
            let partition = &mut self.partitions[index];
            partition.arrivals = (self.arrivals, self.arrivals);
            partition.balance = partition.balance.min(0) + partition.parameters.budget as i64;
            partition.number = Some(partition.number.map_or(0, |number| number + 1));
            partition.next_release = tick + partition.period;
            partition.deadline = tick + partition.parameters.deadline * self.granule;
        }
        due.len() as u32
    }

    fn first(&self) -> Option<usize> {
        let mut ready: Vec<usize> = (0..self.partitions.len()).collect();
        ready.retain(|&index| self.partitions[index].balance > 0);
        ready.sort_by_key(|&index| {
            let partition = &self.partitions[index];
            let urgency = match self.order {
                Order::EarliestDeadline => partition.deadline,
                Order::FixedPriority => 255 - u64::from(partition.parameters.priority),
            };
            (urgency, partition.arrivals.1)
        });
        ready.first().copied()
    }
}

/// A thread of a partition. Times in ticks.
struct Thread {
    kind: Kind,
    /// Periodic: the next release. Sporadic: no release before.
    release: u64,
    has_job: bool,
    has_arrival: bool,
    /// It is known when it may be released: at `release`.
    waits: bool,
    missed: u64,
    /// When it came to wait for its release, for its arrival to be looked at, and for the processor.
    came: (u64, u64, u64),
}

/// The threads of a partition.
pub struct Threads {
    granule: u64,
    start: u64,
    slice: u64,
    threads: Vec<Thread>,
    came: u64,
    running: Option<usize>,
    /// Of best effort: who has a turn, and what is left of it.
    turn: Option<(usize, u64)>,
}

impl Threads {
    pub fn new(granule: u64, start: u64, slice: u64, kinds: &[Kind]) -> Self {
        let thread = |(index, &kind): (usize, &Kind)| {
            let offset = match kind {
                Kind::Periodic { offset, .. } => offset,
                _ => 0,
            };
            Thread {
                kind,
                release: start + offset * granule,
                has_job: kind == Kind::BestEffort,
                has_arrival: false,
                waits: matches!(kind, Kind::Periodic { .. }),
                missed: 0,
                came: (index as u64, 0, index as u64),
            }
        };
        Self {
            granule,
            start,
            slice,
            threads: kinds.iter().enumerate().map(thread).collect(),
            came: kinds.len() as u64,
            running: None,
            turn: None,
        }
    }

    pub fn missed(&self, thread: usize) -> u64 {
        self.threads[thread].missed
    }

    pub fn complete(&mut self, index: usize) {
        let came = self.next();
        let thread = &mut self.threads[index];
        if thread.has_job {
            thread.has_job = false;
            thread.came.1 = came;
            self.turn = self.turn.filter(|turn| turn.0 != index);
            self.running = self.running.filter(|running| *running != index);
        }
    }

    pub fn arrive(&mut self, index: usize) {
        let came = self.next();
        let thread = &mut self.threads[index];
        if !matches!(thread.kind, Kind::Periodic { .. }) && !thread.has_arrival {
            thread.has_arrival = true;
            thread.came.1 = came;
        }
    }

    pub fn charge(&mut self, ticks: u64) {
        if let Some((thread, left)) = self.turn.filter(|turn| self.running == Some(turn.0)) {
            self.turn = Some((thread, left.saturating_sub(ticks)));
        }
    }

    /// All that is due at `now`, then who runs, and until when.
    pub fn settle(&mut self, now: u64) -> (Option<usize>, Option<u64>) {
        while self.release(now) {}
        while self.look_at_arrival(now) {}
        if let Some((thread, 0)) = self.turn {
            self.threads[thread].came.2 = self.next();
            self.turn = None;
        }
        let mut ready = self.all(|thread| thread.has_job);
        ready.sort_by_key(|&index| (self.level(index), self.threads[index].came.2));
        self.running = ready.first().copied();
        let releases = self.threads.iter().filter(|thread| thread.waits);
        let release = releases.map(|thread| thread.release).min();
        let end = self.end_of_turn(now, &ready);
        (self.running, release.into_iter().chain(end).min())
    }

    fn end_of_turn(&mut self, now: u64, ready: &[usize]) -> Option<u64> {
        let thread = self.running?;
        if self.threads[thread].kind != Kind::BestEffort {
            return None;
        }
        let left = self
            .turn
            .filter(|turn| turn.0 == thread)
            .map_or(self.slice, |turn| turn.1);
        self.turn = Some((thread, left));
        let others = ready
            .iter()
            .filter(|&&other| self.threads[other].kind == Kind::BestEffort);
        (others.count() > 1).then_some(now + left)
    }

    fn release(&mut self, now: u64) -> bool {
        let mut due = self.all(|thread| thread.waits && thread.release <= now);
        due.sort_by_key(|&index| (self.threads[index].release, self.threads[index].came.0));
        let Some(&index) = due.first() else {
            return false;
        };
        let came = self.next();
        let granule = self.granule;
        let thread = &mut self.threads[index];
        let Kind::Periodic { period, .. } = thread.kind else {
            thread.waits = false;
            self.begin_arrived(index, now);
            return true;
        };
        thread.release += period * granule;
        thread.came.0 = came;
        if thread.has_job {
            thread.missed += 1;
        } else {
            thread.has_job = true;
            thread.came.2 = came;
        }
        true
    }

    fn look_at_arrival(&mut self, now: u64) -> bool {
        let mut arrived = self.all(|thread| thread.has_arrival && !thread.has_job && !thread.waits);
        arrived.sort_by_key(|&index| self.threads[index].came.1);
        let Some(&index) = arrived.first() else {
            return false;
        };
        if self.threads[index].release > now {
            let came = self.next();
            self.threads[index].waits = true;
            self.threads[index].came.0 = came;
        } else {
            self.begin_arrived(index, now);
        }
        true
    }

    fn begin_arrived(&mut self, index: usize, now: u64) {
        let came = self.next();
        let (granule, start) = (self.granule, self.start);
        let thread = &mut self.threads[index];
        thread.has_arrival = false;
        thread.has_job = true;
        thread.came.2 = came;
        if let Kind::Sporadic { interval, .. } = thread.kind {
            // The first instant of the grid that is far enough away.
            thread.release = start;
            while thread.release < now + interval * granule {
                thread.release += granule;
            }
        }
    }

    /// 0 is the most urgent.
    fn level(&self, index: usize) -> u64 {
        match self.threads[index].kind {
            Kind::Periodic { priority, .. } | Kind::Sporadic { priority, .. } => {
                255 - u64::from(priority)
            }
            Kind::BestEffort => 256,
        }
    }

    fn all(&self, which: impl Fn(&Thread) -> bool) -> Vec<usize> {
        let numbers = 0..self.threads.len();
        numbers
            .filter(|&index| which(&self.threads[index]))
            .collect()
    }

    fn next(&mut self) -> u64 {
        self.came += 1;
        self.came
    }
}
