//! Windows from a table, in the manner of ARINC 653: a major frame that repeats, and in it windows of partitions, any
//! number for each. There may be several such schedules; another one takes effect when the next frame begins.
//!
//! Frame k begins at the sum of the lengths of those before it, and a window at its offset in the frame: nothing drifts.
//! A window that had the processor for longer than it should, because somebody looked late, is charged to its partition,
//! whose next windows are that much shorter. Until then what follows is later, and no shorter: it begins when the window
//! before it has really ended. A gap in the table absorbs that at once, the debtor's next window at the latest.
//! A window that begins late although nobody had the processor before it ends on time: it shortens itself.

use crate::decision::{Overrun, PartitionId, Refusal, Turn, Window};

/// A window of a table, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    pub partition: PartitionId,
    /// From the beginning of the frame.
    pub offset: u64,
    pub length: u64,
}

impl Placed {
    const fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule<'m> {
    /// The length of the major frame, in ticks.
    pub frame: u64,
    /// In order of time; they do not overlap.
    pub windows: &'m [Placed],
}

/// The number of a schedule, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleId(pub usize);

/// A schedule was named that does not exist. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchSchedule;

/// The frame at which the schedule is.
#[derive(Clone, Copy, Debug)]
struct Frame {
    schedule: usize,
    /// From 0.
    number: u64,
    /// Ticks.
    start: u64,
    /// Windows of it that have begun.
    begun: usize,
}

/// Partitions by table.
#[derive(Debug)]
pub struct Cyclic<'m> {
    schedules: &'m [Schedule<'m>],
    /// Of each partition: what it has overrun and not paid for yet, in ticks.
    debts: &'m mut [u64],
    /// The schedule of the next frame.
    requested: usize,
    frame: Frame,
    running: Option<Window>,
    /// When the last window ended.
    ended: u64,
}

impl<'m> Cyclic<'m> {
    /// The first schedule from the time `start` on, in ticks. There are as many partitions as `debts`.
    ///
    /// # Errors
    /// A schedule is no table.
    pub fn new(
        schedules: &'m [Schedule<'m>],
        debts: &'m mut [u64],
        start: u64,
    ) -> Result<Self, Refusal> {
        if schedules.is_empty() {
            return Err(Refusal::NoSchedule);
        }
        for (index, schedule) in schedules.iter().enumerate() {
            check(index, schedule, debts.len())?;
        }
        debts.fill(0);
        Ok(Self {
            schedules,
            debts,
            requested: 0,
            frame: Frame {
                schedule: 0,
                number: 0,
                start,
                begun: 0,
            },
            running: None,
            ended: start,
        })
    }

    /// Lets another schedule take effect when the next frame begins; of several requests the last one counts.
    ///
    /// # Errors
    /// There is no such schedule.
    pub fn switch_to(&mut self, schedule: ScheduleId) -> Result<(), NoSuchSchedule> {
        if schedule.0 >= self.schedules.len() {
            return Err(NoSuchSchedule);
        }
        self.requested = schedule.0;
        Ok(())
    }

    /// The schedule of this frame.
    pub const fn schedule(&self) -> ScheduleId {
        ScheduleId(self.frame.schedule)
    }

    /// What a partition has overrun and will be short of, in ticks.
    ///
    /// # Panics
    /// There is no such partition.
    pub fn debt(&self, partition: PartitionId) -> u64 {
        self.debts[partition.0]
    }

    /// Who has the processor from `now` on, which does not go back. O(1), and O(1) more for each window since it was asked
    /// last.
    pub fn decide(&mut self, now: u64) -> Turn {
        let was_running = self.running;
        let overrun = self.end(now);
        let mut jobs = u32::from(was_running.is_some() && self.running.is_none());
        while self.running.is_none() {
            let at = self.next_at();
            if at > now {
                return Turn {
                    window: None,
                    wake_at: Some(at),
                    overrun,
                    jobs,
                };
            }
            self.running = self.advance(now);
            jobs += 1;
        }
        Turn {
            window: self.running,
            wake_at: self.running.map(|window| window.until),
            overrun,
            jobs,
        }
    }

    /// Ends the window that has the processor, if its time is over.
    fn end(&mut self, now: u64) -> Option<Overrun> {
        let window = self.running.take_if(|window| window.until <= now)?;
        self.ended = now;
        let ticks = now - window.until;
        let debt = &mut self.debts[window.partition.0];
        *debt = debt.saturating_add(ticks);
        (ticks > 0).then_some(Overrun {
            partition: window.partition,
            ticks,
        })
    }

    /// When the next window begins, or the next frame, if this one has no more.
    fn next_at(&self) -> u64 {
        let schedule = &self.schedules[self.frame.schedule];
        match schedule.windows.get(self.frame.begun) {
            Some(placed) => self.begins(placed),
            None => self.frame.start.saturating_add(schedule.frame),
        }
    }

    /// When a window of this frame begins that is the next.
    fn begins(&self, placed: &Placed) -> u64 {
        let on_time = self.frame.start.saturating_add(placed.offset);
        on_time.max(self.ended)
    }

    /// Begins the next window, or the next frame; the window, if it has time left at `now`.
    fn advance(&mut self, now: u64) -> Option<Window> {
        let schedule = &self.schedules[self.frame.schedule];
        let Some(placed) = schedule.windows.get(self.frame.begun) else {
            self.frame = Frame {
                schedule: self.requested,
                number: self.frame.number + 1,
                start: self.frame.start.saturating_add(schedule.frame),
                begun: 0,
            };
            return None;
        };
        let begins = self.begins(placed);
        let debt = &mut self.debts[placed.partition.0];
        let paid = (*debt).min(placed.length);
        *debt -= paid;
        let until = begins.saturating_add(placed.length - paid);
        self.frame.begun += 1;
        if until <= now {
            self.ended = until;
            return None;
        }
        Some(Window {
            partition: placed.partition,
            number: self.frame.number,
            until,
        })
    }
}

fn check(schedule: usize, table: &Schedule<'_>, partitions: usize) -> Result<(), Refusal> {
    if table.frame == 0 || table.windows.is_empty() {
        return Err(Refusal::EmptyFrame { schedule });
    }
    let latest = table.frame;
    let mut earliest = 0;
    for (window, placed) in table.windows.iter().enumerate() {
        if placed.partition.0 >= partitions {
            return Err(Refusal::NoSuchPartition { schedule, window });
        }
        let is_placed = placed.length > 0 && placed.offset >= earliest && placed.end() <= latest;
        if !is_placed {
            return Err(Refusal::Placed {
                schedule,
                window,
                earliest,
                latest,
            });
        }
        earliest = placed.end();
    }
    Ok(())
}
