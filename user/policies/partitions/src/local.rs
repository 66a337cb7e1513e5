//! The threads of one partition, by fixed priority: which of them runs while the partition has the processor.
//!
//! - A *periodic* thread is released every period, in absolute time, whether its partition has the processor or not. A
//!   release that comes while the job before it is not done is left out, and counted.
//! - A *sporadic* thread is released when something arrives for it, and no sooner than its interval after the release
//!   before. What arrives too early, or while the job before is not done, waits; several arrivals that wait are one, as
//!   signals are.
//! - Threads of *best effort* run when no other can, in turns, each for a slice of the partition's time.
//!
//! Of threads with equal priorities the one that was released first goes first, and one that was preempted keeps its
//! place.
//!
//! Every step is O(1): it makes at most one release, or looks at one arrival, and says if there is more. So a partition
//! begins its window at the same cost however many threads it has, and what its threads cost after that is spent in its own
//! window. Arrivals wait until their partition has the processor, and are looked at in their order.

use crate::decision::{earlier, Refusal};
use crate::queue::{BitmapQueue, Memory};

/// The number of a thread in its partition, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub usize);

/// When jobs of a thread are released. Times in granules of the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Periodic {
        priority: u8,
        /// From one release to the next.
        period: u64,
        /// From the start to the first release.
        offset: u64,
    },
    Sporadic {
        priority: u8,
        /// From one release to the next, at least.
        interval: u64,
    },
    /// Below all priorities.
    BestEffort,
}

/// What happened to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadEvent {
    /// Its job is done. Without a job, nothing.
    Completed(ThreadId),
    /// Something arrived for it. Nothing, if the thread is periodic.
    Arrived(ThreadId),
}

/// A thread, and its jobs.
#[derive(Clone, Copy, Debug)]
pub struct Thread {
    kind: Kind,
    /// Periodic: the next release. Sporadic: the earliest next release. In granules since the start.
    release: u64,
    has_job: bool,
    /// Something arrived that no job has begun for.
    has_arrival: bool,
    /// Releases of a periodic thread that came while the job before was not done.
    missed: u64,
}

impl Thread {
    /// A thread that has not been released yet; one of best effort is ready.
    pub const fn new(kind: Kind) -> Self {
        let release = match kind {
            Kind::Periodic { offset, .. } => offset,
            Kind::Sporadic { .. } | Kind::BestEffort => 0,
        };
        Self {
            kind,
            release,
            has_job: matches!(kind, Kind::BestEffort),
            has_arrival: false,
            missed: 0,
        }
    }

    /// The value of its job in the queue.
    fn urgency(&self) -> u64 {
        match self.kind {
            Kind::Periodic { priority, .. } | Kind::Sporadic { priority, .. } => {
                ARRIVED + 1 + u64::from(u8::MAX - priority)
            }
            Kind::BestEffort => BEST_EFFORT,
        }
    }
}

/// Values of the queue `ready`: of threads without a job for which something arrived that was not looked at yet,
const ARRIVED: u64 = 0;
/// and behind those of all priorities.
const BEST_EFFORT: u64 = 257;
/// Slots that the queue of threads that are ready needs.
pub const READY_SLOTS: usize = 512;

/// Times of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// What periods, offsets and intervals are multiples of, in ticks.
    pub granule: u64,
    /// What releases count from, in ticks.
    pub start: u64,
    /// For how long a thread of best effort runs if another one waits, in ticks.
    pub slice: u64,
}

/// The memory of the two queues, with a node for each thread.
#[derive(Debug)]
pub struct LocalQueues<'m> {
    /// Slots: the longest period, interval or offset, in granules.
    pub releases: Memory<'m>,
    /// [`READY_SLOTS`].
    pub ready: Memory<'m>,
}

/// What the partition does until the next step.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is more to look at: take the next step before anything is done.
    Again,
    /// A thread runs, or none if `None`.
    Run {
        thread: Option<ThreadId>,
        /// When to take the next step, in ticks; `None`: when something happens to a thread.
        wake_at: Option<u64>,
    },
}

/// The turn of a thread of best effort.
#[derive(Clone, Copy, Debug)]
struct Slice {
    thread: usize,
    /// Ticks.
    left: u64,
}

/// The threads of a partition.
///
/// Invariants: in `ready` are the threads with a job, by urgency, and those without one that have an arrival that was not
/// looked at; in `releases` are all periodic threads, and sporadic ones that have an arrival before their time.
#[derive(Debug)]
pub struct Local<'m> {
    grid: Grid,
    threads: &'m mut [Thread],
    releases: BitmapQueue<'m>,
    ready: BitmapQueue<'m>,
    /// The thread that was let run last, if it has not lost its job since.
    running: Option<usize>,
    /// Of the thread of best effort that is first, if it has run.
    slice: Option<Slice>,
}

impl<'m> Local<'m> {
    /// Threads at their start.
    ///
    /// # Errors
    /// A parameter is out of its range, or the queues are too small.
    ///
    /// # Panics
    /// The memory of a queue is not as its fields say.
    pub fn new(
        grid: Grid,
        threads: &'m mut [Thread],
        queues: LocalQueues<'m>,
    ) -> Result<Self, Refusal> {
        let mut releases = BitmapQueue::new(queues.releases);
        let mut ready = BitmapQueue::new(queues.ready);
        check(grid, threads, &releases, &ready)?;
        for (index, thread) in threads.iter().enumerate() {
            match thread.kind {
                Kind::Periodic { .. } => releases.insert(thread.release, index),
                Kind::Sporadic { .. } => {}
                Kind::BestEffort => ready.insert(BEST_EFFORT, index),
            }
        }
        Ok(Self {
            grid,
            threads,
            releases,
            ready,
            running: None,
            slice: None,
        })
    }

    /// Takes note of what happened to a thread, whether the partition has the processor or not. A thread that does not
    /// exist is ignored. O(1).
    pub fn note(&mut self, event: ThreadEvent) {
        let (ThreadEvent::Completed(ThreadId(index)) | ThreadEvent::Arrived(ThreadId(index))) =
            event;
        if index >= self.threads.len() {
            return;
        }
        match event {
            ThreadEvent::Completed(_) => self.complete(index),
            ThreadEvent::Arrived(_) => self.arrive(index),
        }
    }

    /// The thread that was let run last has had the processor for so many ticks. O(1).
    #[inline]
    pub fn charge(&mut self, ticks: u64) {
        let running = self.running;
        if let Some(slice) = self.slice.as_mut().filter(|of| running == Some(of.thread)) {
            slice.left = slice.left.saturating_sub(ticks);
        }
    }

    /// What to do at the time `now`, at which the partition has the processor. O(1).
    #[inline]
    pub fn step(&mut self, now: u64) -> Step {
        let next = match self.next_release() {
            Some((at, index)) if at <= now => {
                self.release(index, now);
                self.next_release()
            }
            next => next,
        };
        let next = next.map(|(at, _)| at);
        if next.is_some_and(|at| at <= now) {
            return Step::Again;
        }
        let first = self.ready.first();
        if let Some((ARRIVED, index)) = first {
            self.look_at_arrival(index, now);
            return Step::Again;
        }
        let first = if self.take_turns() {
            self.ready.first()
        } else {
            first
        };
        self.running = first.map(|(_, thread)| thread);
        Step::Run {
            thread: self.running.map(ThreadId),
            wake_at: earlier(next, self.end_of_slice(now)),
        }
    }

    /// How many releases of a periodic thread came while the job before was not done.
    ///
    /// # Panics
    /// There is no such thread.
    pub fn missed(&self, thread: ThreadId) -> u64 {
        self.threads[thread.0].missed
    }

    fn complete(&mut self, index: usize) {
        let thread = &mut self.threads[index];
        if !core::mem::take(&mut thread.has_job) {
            return;
        }
        self.ready.remove(index);
        self.running.take_if(|running| *running == index);
        self.slice.take_if(|slice| slice.thread == index);
        if thread.has_arrival {
            self.ready.insert(ARRIVED, index);
        }
    }

    fn arrive(&mut self, index: usize) {
        let thread = &mut self.threads[index];
        if matches!(thread.kind, Kind::Periodic { .. }) || thread.has_arrival {
            return;
        }
        thread.has_arrival = true;
        if !thread.has_job {
            self.ready.insert(ARRIVED, index);
        }
    }

    /// Makes a release that is due.
    fn release(&mut self, index: usize, now: u64) {
        match self.threads[index].kind {
            Kind::Periodic { period, .. } => self.release_periodic(index, period),
            Kind::Sporadic { .. } | Kind::BestEffort => {
                self.releases.remove(index);
                self.begin_arrived(index, now);
            }
        }
    }

    fn release_periodic(&mut self, index: usize, period: u64) {
        let next = self.threads[index].release.saturating_add(period);
        self.releases.requeue(next, index);
        let thread = &mut self.threads[index];
        thread.release = next;
        if thread.has_job {
            thread.missed += 1;
        } else {
            self.begin(index);
        }
    }

    /// A thread for which something arrived begins its job, or waits for its time. No release is due, so its time is not
    /// too far from the others'.
    fn look_at_arrival(&mut self, index: usize, now: u64) {
        self.ready.remove(index);
        let release = self.threads[index].release;
        if self.time_of(release) > now {
            self.releases.insert(release, index);
        } else {
            self.begin_arrived(index, now);
        }
    }

    fn begin_arrived(&mut self, index: usize, now: u64) {
        let this_granule = self.granules_until(now);
        let thread = &mut self.threads[index];
        thread.has_arrival = false;
        if let Kind::Sporadic { interval, .. } = thread.kind {
            thread.release = this_granule.saturating_add(interval);
        }
        self.begin(index);
    }

    fn begin(&mut self, index: usize) {
        let thread = &mut self.threads[index];
        thread.has_job = true;
        let urgency = thread.urgency();
        self.ready.insert(urgency, index);
    }

    /// If the slice of a thread of best effort is over, it goes behind the others. Whether it was.
    fn take_turns(&mut self) -> bool {
        let over = self.slice.take_if(|slice| slice.left == 0);
        if let Some(slice) = over {
            self.ready.remove(slice.thread);
            self.ready.insert(BEST_EFFORT, slice.thread);
        }
        over.is_some()
    }

    /// When the thread that runs goes behind others, if it is one of best effort, and there are any.
    #[inline]
    fn end_of_slice(&mut self, now: u64) -> Option<u64> {
        let is_best_effort = |index: &usize| self.threads[*index].kind == Kind::BestEffort;
        let thread = self.running.filter(is_best_effort)?;
        let kept = self.slice.filter(|slice| slice.thread == thread);
        let left = kept.map_or(self.grid.slice, |slice| slice.left);
        self.slice = Some(Slice { thread, left });
        (!self.ready.is_alone(thread)).then(|| now.saturating_add(left))
    }

    /// When the next release is, and of which thread.
    #[inline]
    fn next_release(&self) -> Option<(u64, usize)> {
        let (release, index) = self.releases.first()?;
        Some((self.time_of(release), index))
    }

    /// Ticks.
    const fn time_of(&self, granules: u64) -> u64 {
        let since_start = granules.saturating_mul(self.grid.granule);
        self.grid.start.saturating_add(since_start)
    }

    /// Granules from the start to a time, rounded up.
    const fn granules_until(&self, time: u64) -> u64 {
        time.saturating_sub(self.grid.start)
            .div_ceil(self.grid.granule)
    }
}

fn check(
    grid: Grid,
    threads: &[Thread],
    releases: &BitmapQueue<'_>,
    ready: &BitmapQueue<'_>,
) -> Result<(), Refusal> {
    if grid.granule == 0 {
        return Err(Refusal::Granule);
    }
    if grid.slice == 0 {
        return Err(Refusal::Slice);
    }
    let (needed, has) = (threads.len(), releases.capacity().min(ready.capacity()));
    if has < needed {
        return Err(Refusal::Room { needed, has });
    }
    let (apart, span) = (BEST_EFFORT, ready.span());
    if apart > span {
        return Err(Refusal::Spread { apart, span });
    }
    let longest = releases.span();
    for (index, thread) in threads.iter().enumerate() {
        let is_within = match thread.kind {
            Kind::Periodic { period, offset, .. } => {
                (1..=longest).contains(&period) && offset <= longest
            }
            Kind::Sporadic { interval, .. } => (1..=longest).contains(&interval),
            Kind::BestEffort => true,
        };
        if !is_within {
            let thread = index;
            return Err(Refusal::Interval { thread, longest });
        }
    }
    Ok(())
}
