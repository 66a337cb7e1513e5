//! Windows from periods and budgets: the partition with the earliest deadline, or with the highest priority, has the
//! processor while it has budget (Åsberg and Nolte; paper, section 4).
//!
//! A partition is released every period, and has its whole budget then; what was left of the one before is lost. Release
//! k is at `start + offset + k * period`, whatever happened before: nothing drifts. Of partitions with equal deadlines or
//! priorities, the one that was released first goes first, and one that was preempted keeps its place: that saves
//! switches (paper, section 5.4).
//!
//! Budget is time, not work: a partition in its window uses it up whether its threads run or not. So windows depend on
//! the parameters and on nothing that a thread does.
//!
//! A partition that had the processor for longer than its budget, because somebody looked late, has that much less the
//! next time. Whoever comes after it has its whole budget, from when it really begins.

use crate::decision::{earlier, Overrun, PartitionId, Refusal, Turn, Window};
use crate::queue::{BitmapQueue, Memory};

/// Which of the partitions with budget has the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// That with the earliest absolute deadline.
    EarliestDeadline,
    /// That with the highest priority.
    FixedPriority,
}

/// What is known of a partition beforehand. A granule is the time of which all periods, deadlines and offsets are
/// multiples, in ticks: the queues count in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// From one release to the next, in granules.
    pub period: u64,
    /// From a release to the deadline, in granules: at most the period.
    pub deadline: u64,
    /// From the start to the first release, in granules.
    pub offset: u64,
    /// Time in each period, in ticks.
    pub budget: u64,
    /// 255 is the highest; of no importance with [`Order::EarliestDeadline`].
    pub priority: u8,
}

/// A partition, and what becomes of its budget.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reservation {
    parameters: Parameters,
    /// The next one, in granules since the start.
    release: u64,
    /// Releases up to now.
    released: u64,
    /// Of the budget, in ticks.
    left: u64,
    /// What it has overrun, and not paid for yet, in ticks.
    debt: u64,
    /// Budgets of which something was left at the next release.
    unfinished: u64,
}

impl Reservation {
    /// A partition that has not been released yet.
    pub fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            release: parameters.offset,
            ..Self::default()
        }
    }

    /// Uses up budget, and says how much more was used than there was.
    #[inline]
    fn charge(&mut self, ticks: u64) -> u64 {
        let over = ticks.saturating_sub(self.left);
        self.left = self.left.saturating_sub(ticks);
        self.debt = self.debt.saturating_add(over);
        over
    }

    /// Gives the budget of the next period, less what is owed.
    fn replenish(&mut self) {
        let paid = self.debt.min(self.parameters.budget);
        self.unfinished += u64::from(self.left > 0);
        self.debt -= paid;
        self.left = self.parameters.budget - paid;
        self.released += 1;
        self.release = self.release.saturating_add(self.parameters.period);
    }

    /// The value of a partition with budget in the queue. Deadlines are in granules since the start.
    fn urgency(&self, order: Order) -> u64 {
        match order {
            Order::EarliestDeadline => {
                let released_at = self.release - self.parameters.period;
                released_at + self.parameters.deadline
            }
            Order::FixedPriority => u64::from(u8::MAX - self.parameters.priority),
        }
    }
}

/// Who has the processor.
#[derive(Clone, Copy, Debug)]
struct Running {
    partition: usize,
    /// Ticks; all before is charged.
    since: u64,
}

/// The memory of the two queues.
#[derive(Debug)]
pub struct Queues<'m> {
    /// Slots: the longest period, in granules, and the latest offset.
    pub releases: Memory<'m>,
    /// Slots: the longest deadline and the longest time from a deadline to the next release, together, in granules;
    /// or 256, for priorities.
    pub ready: Memory<'m>,
}

/// Partitions by period, deadline and budget.
///
/// Invariants: every partition is in `releases`; in `ready` are those with budget, and no others.
#[derive(Debug)]
pub struct Periodic<'m> {
    order: Order,
    /// In ticks.
    granule: u64,
    /// In ticks.
    start: u64,
    partitions: &'m mut [Reservation],
    releases: BitmapQueue<'m>,
    ready: BitmapQueue<'m>,
    running: Option<Running>,
}

impl<'m> Periodic<'m> {
    /// Partitions that count from the time `start`, in ticks; a granule has `granule` ticks.
    ///
    /// # Errors
    /// A parameter is out of its range, or the queues are too small.
    ///
    /// # Panics
    /// The memory of a queue is not as its fields say.
    pub fn new(
        order: Order,
        granule: u64,
        start: u64,
        partitions: &'m mut [Reservation],
        queues: Queues<'m>,
    ) -> Result<Self, Refusal> {
        let mut releases = BitmapQueue::new(queues.releases);
        let ready = BitmapQueue::new(queues.ready);
        check(order, granule, partitions, &releases, &ready)?;
        for (index, partition) in partitions.iter().enumerate() {
            releases.insert(partition.release, index);
        }
        Ok(Self {
            order,
            granule,
            start,
            partitions,
            releases,
            ready,
            running: None,
        })
    }

    /// Who has the processor from `now` on, which does not go back. O(1), and O(1) more for each release since it was
    /// asked last.
    #[inline]
    pub fn decide(&mut self, now: u64) -> Turn {
        let overrun = self.charge(now);
        let ended = self.end_used_up();
        let (released, next_release) = self.release_due(now);
        let window = self.choose(now);
        let end = window.map(|window| window.until);
        Turn {
            window,
            wake_at: earlier(end, next_release),
            overrun,
            jobs: ended + released,
        }
    }

    /// How many budgets of a partition were not used up at its next release: it did not get the processor for as long as
    /// it should.
    ///
    /// # Panics
    /// There is no such partition.
    pub fn unfinished(&self, partition: PartitionId) -> u64 {
        self.partitions[partition.0].unfinished
    }

    /// What a partition has overrun and will be short of, in ticks.
    ///
    /// # Panics
    /// There is no such partition.
    pub fn debt(&self, partition: PartitionId) -> u64 {
        self.partitions[partition.0].debt
    }

    fn charge(&mut self, now: u64) -> Option<Overrun> {
        let Running { partition, since } = self.running?;
        let ticks = self.partitions[partition].charge(now.saturating_sub(since));
        (ticks > 0).then_some(Overrun {
            partition: PartitionId(partition),
            ticks,
        })
    }

    /// Takes the partition that had the processor out of the queue, if it has no budget any more; how many that are.
    #[inline]
    fn end_used_up(&mut self) -> u32 {
        let ended = self.running.take().map(|running| running.partition);
        let Some(ended) = ended.filter(|&partition| self.partitions[partition].left == 0) else {
            return 0;
        };
        self.ready.remove(ended);
        1
    }

    /// Releases in their order those whose time has come; how many, and when the next one is.
    #[inline]
    fn release_due(&mut self, now: u64) -> (u32, Option<u64>) {
        let mut released = 0;
        while let Some((release, index)) = self.releases.first() {
            let at = self.time_of(release);
            if at > now {
                return (released, Some(at));
            }
            self.release(index);
            released += 1;
        }
        (released, None)
    }

    fn release(&mut self, index: usize) {
        self.ready.remove(index);
        let partition = &mut self.partitions[index];
        partition.replenish();
        self.releases.requeue(partition.release, index);
        if partition.left > 0 {
            self.ready.insert(partition.urgency(self.order), index);
        }
    }

    #[inline]
    fn choose(&mut self, now: u64) -> Option<Window> {
        let (_, index) = self.ready.first()?;
        self.running = Some(Running {
            partition: index,
            since: now,
        });
        let partition = &self.partitions[index];
        Some(Window {
            partition: PartitionId(index),
            number: partition.released - 1,
            until: now.saturating_add(partition.left),
        })
    }

    /// Ticks.
    const fn time_of(&self, granules: u64) -> u64 {
        self.start
            .saturating_add(granules.saturating_mul(self.granule))
    }
}

fn check(
    order: Order,
    granule: u64,
    partitions: &[Reservation],
    releases: &BitmapQueue<'_>,
    ready: &BitmapQueue<'_>,
) -> Result<(), Refusal> {
    if granule == 0 {
        return Err(Refusal::Granule);
    }
    let (needed, has) = (partitions.len(), releases.capacity().min(ready.capacity()));
    if has < needed {
        return Err(Refusal::Room { needed, has });
    }
    for (index, partition) in partitions.iter().enumerate() {
        check_one(index, &partition.parameters, granule, releases.span())?;
    }
    let apart = spread(order, partitions);
    let span = ready.span();
    if apart > span {
        return Err(Refusal::Spread { apart, span });
    }
    Ok(())
}

fn check_one(
    partition: usize,
    parameters: &Parameters,
    granule: u64,
    span: u64,
) -> Result<(), Refusal> {
    let &Parameters {
        period,
        deadline,
        offset,
        budget,
        ..
    } = parameters;
    let longest = span;
    if !(1..=longest).contains(&period) {
        return Err(Refusal::Period { partition, longest });
    }
    if offset > longest {
        return Err(Refusal::Offset { partition, longest });
    }
    if !(1..=period).contains(&deadline) {
        let longest = period;
        return Err(Refusal::Deadline { partition, longest });
    }
    let longest = deadline.saturating_mul(granule);
    if !(1..=longest).contains(&budget) {
        return Err(Refusal::Budget { partition, longest });
    }
    Ok(())
}

/// How far apart the values of two partitions with budget can be. When a partition is released, the earliest deadline that
/// another still has is that of its last release, which was at most a period ago.
fn spread(order: Order, partitions: &[Reservation]) -> u64 {
    if order == Order::FixedPriority {
        return u64::from(u8::MAX);
    }
    let parameters = || partitions.iter().map(|partition| partition.parameters);
    let oldest = parameters().map(|of| of.period - of.deadline).max();
    let newest = parameters().map(|of| of.deadline).max();
    oldest.unwrap_or(0) + newest.unwrap_or(0)
}
