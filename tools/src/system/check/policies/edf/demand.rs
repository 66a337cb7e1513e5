//! Whether all deadlines can be met: the processor-demand criterion, by Zhang and Burns's quick analysis (QPA:
//! "Schedulability Analysis for Real-Time Systems with EDF Scheduling", IEEE Transactions on Computers 58(9),
//! 2009), with blocking as Baruah has it ("Resource Sharing in EDF-Scheduled Systems", RTSS 2006).
//!
//! In a window from a release on, of a length `t`, there must be room for
//!
//! - the jobs that are released and due in it;
//! - the reservations of threads above the tasks. Such a thread takes its budget at most once in any window of its
//!   period, so that it takes it `t / period` times, rounded up; in how many pieces does not matter;
//! - one request that was being served when the window began, of a task whose deadline lies behind it or of
//!   a thread below the tasks. Servers are above all tasks, so that it delays all of them; and until it
//!   has ended none of them begins another.
//!
//! It is exact for tasks that are all released at once, alone on their processor; beside others it is safe.
//! With different offsets, windows from every release of a hyperperiod are looked at. It takes the scheduler's
//! own time for nothing. All is counted in whole numbers.

/// A task; times in µs, the budget, the period and the deadline at least 1, the deadline at most the period.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// The most that a job takes, with what its servers take for it.
    pub budget: u64,
    pub period: u64,
    pub deadline: u64,
    /// From the start to the first release.
    pub offset: u64,
    /// The longest that a server works for it at a time, at most the budget.
    pub request: u64,
}

/// The reservation of a thread above the tasks; µs, the budget below the period, the period at least 1.
#[derive(Clone, Copy, Debug)]
pub struct Reservation {
    pub budget: u64,
    pub period: u64,
    /// What may come to it once, at any time, as when its budget is filled anew.
    pub once: u64,
}

/// All that runs on a processor from the tasks' priority on.
#[derive(Clone, Debug, Default)]
pub struct Load {
    pub tasks: Vec<Task>,
    pub above: Vec<Reservation>,
    /// The longest that a server above the tasks works at a time for a thread below them, µs.
    pub below: u64,
}

/// What is known of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every deadline has room for what is due until then.
    InTime,
    /// More is asked for than the processor has, for ever: millionths of the processor, rounded up.
    TooMuch {
        share: u64,
    },
    Overload(Overload),
    /// It was not found out in the time that there was: the utilisation is 1, or next to it, or the
    /// hyperperiod of tasks with different offsets is long.
    Undecided,
}

/// A window in which more is asked for than there is time; all in µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overload {
    /// From a release to a deadline.
    pub within: u64,
    /// The budgets of all jobs that are released and due in it.
    pub jobs: u64,
    /// What the reservations take.
    pub above: u64,
    /// What is left of a request that was being served.
    pub blocking: u64,
}

impl Overload {
    /// µs.
    pub fn demand(&self) -> u64 {
        let others = self.above.saturating_add(self.blocking);
        self.jobs.saturating_add(others)
    }
}

/// Steps after which it is given up to look.
const MOST_STEPS: usize = 1_000_000;

impl Load {
    /// Whether all tasks are in time.
    pub fn analyse(&self) -> Verdict {
        if self.tasks.is_empty() {
            return Verdict::InTime;
        }
        if let Some(share) = self.excess() {
            return Verdict::TooMuch { share };
        }
        let Some(longest) = self.longest_window() else {
            return Verdict::Undecided;
        };
        let verdict = self.analyse_together(longest);
        let mut offsets = self.tasks.iter().map(|task| task.offset);
        let first = offsets.next();
        let together = offsets.all(|offset| Some(offset) == first);
        match verdict {
            Verdict::Overload(_) if !together => self.analyse_apart(longest),
            verdict => verdict,
        }
    }

    /// For a release of all tasks at once, which is the worst case.
    fn analyse_together(&self, longest: u64) -> Verdict {
        let mut end = longest.saturating_add(1);
        for _ in 0..MOST_STEPS {
            // Between deadlines nothing can be missed.
            let Some(within) = self.deadline_before(end) else {
                return Verdict::InTime;
            };
            let found = self.window(within, self.jobs_together(within));
            let demand = found.demand();
            if demand > within {
                return Verdict::Overload(found);
            }
            // The deadlines from there to here have at most this demand, and so are met: where a shorter window has a
            // longer request, this one has that task's job, which is at least as long.
            end = within.min(demand.saturating_add(1));
        }
        Verdict::Undecided
    }

    /// For the releases as they come, once the last task has begun, until all begins anew.
    fn analyse_apart(&self, longest: u64) -> Verdict {
        let begin = self.tasks.iter().map(|task| task.offset).max().unwrap_or(0);
        let periods = self.tasks.iter().map(|task| task.period);
        let end = periods
            .map(u128::from)
            .try_fold(1_u128, |common, period| {
                common.checked_mul(period / gcd(common, period))
            })
            .and_then(|hyperperiod| u64::try_from(hyperperiod).ok())
            .and_then(|hyperperiod| begin.checked_add(hyperperiod));
        let Some(end) = end else {
            return Verdict::Undecided;
        };
        let mut steps = 0;
        for from in self.tasks.iter() {
            let first = from.offset + (begin - from.offset).div_ceil(from.period) * from.period;
            for release in (first..end).step_by(from.period as usize) {
                for due in &self.tasks {
                    for deadline in due.deadlines_in(release, release.saturating_add(longest)) {
                        steps += 1;
                        if steps > MOST_STEPS {
                            return Verdict::Undecided;
                        }
                        let within = deadline - release;
                        let found = self.window(within, self.jobs_in(release, deadline));
                        if found.demand() > within {
                            return Verdict::Overload(found);
                        }
                    }
                }
            }
        }
        Verdict::InTime
    }

    /// What is asked for in a window.
    fn window(&self, within: u64, jobs: u64) -> Overload {
        Overload {
            within,
            jobs,
            above: self.taken_above(within),
            blocking: self.blocking(within),
        }
    }

    /// If more than the whole processor is asked for, how much: millionths, rounded up. Exact: the sum of the
    /// fractions is compared with 1 over their common denominator, as far as that can be told in whole numbers,
    /// and otherwise in 2^64ths, rounded up.
    fn excess(&self) -> Option<u64> {
        let tasks = self.tasks.iter().map(|task| (task.budget, task.period));
        let above = self.above.iter().map(|above| (above.budget, above.period));
        let shares: Vec<(u64, u64)> = tasks.chain(above).collect();
        let millionths: u64 = shares
            .iter()
            .map(|&(budget, period)| (u128::from(budget) * 1_000_000).div_ceil(u128::from(period)))
            .fold(0, |sum, share| {
                sum.saturating_add(share.try_into().unwrap_or(u64::MAX))
            });
        let exact =
            shares
                .iter()
                .try_fold((0_u128, 1_u128), |(above, below), &(budget, period)| {
                    let (budget, period) = (u128::from(budget), u128::from(period));
                    let common = below.checked_mul(period)? / gcd(below, period);
                    let sum = above
                        .checked_mul(common / below)?
                        .checked_add(budget.checked_mul(common / period)?)?;
                    Some((sum, common))
                });
        let is_too_much = match exact {
            Some((sum, one)) => sum > one,
            None => {
                let share = |&(budget, period): &(u64, u64)| {
                    (u128::from(budget) << 64).div_ceil(u128::from(period))
                };
                shares.iter().map(share).fold(0, u128::saturating_add) > 1 << 64
            }
        };
        is_too_much.then_some(millionths)
    }

    /// The budgets of all jobs that are released and due from 0 to `end`, if all tasks are released at 0.
    fn jobs_together(&self, end: u64) -> u64 {
        let of = |task: &Task| match end.checked_sub(task.deadline) {
            None => 0,
            Some(rest) => (rest / task.period + 1).saturating_mul(task.budget),
        };
        self.tasks.iter().map(of).fold(0, u64::saturating_add)
    }

    /// The budgets of all jobs that are released from `start` on and due until `end`.
    fn jobs_in(&self, start: u64, end: u64) -> u64 {
        let of = |task: &Task| {
            let rest = end.checked_sub(task.first_deadline(start));
            let jobs = rest.map_or(0, |rest| rest / task.period + 1);
            jobs.saturating_mul(task.budget)
        };
        self.tasks.iter().map(of).fold(0, u64::saturating_add)
    }

    /// The most that the reservations take in a window of `length`, above 0.
    fn taken_above(&self, length: u64) -> u64 {
        let of = |above: &Reservation| {
            let times = length.div_ceil(above.period);
            let refilled = times.saturating_mul(above.budget);
            refilled.saturating_add(above.once)
        };
        self.above.iter().map(of).fold(0, u64::saturating_add)
    }

    /// The longest request that may be served when a window of `length` begins, of those that are not due in it.
    fn blocking(&self, length: u64) -> u64 {
        let later = self.tasks.iter().filter(|task| task.deadline > length);
        let longest = later.map(|task| task.request).max().unwrap_or(0);
        longest.max(self.below)
    }

    /// The last deadline before `end`, after a release of all tasks at 0.
    fn deadline_before(&self, end: u64) -> Option<u64> {
        let last = |task: &Task| {
            let rest = end.checked_sub(task.deadline.checked_add(1)?)?;
            Some(rest / task.period * task.period + task.deadline)
        };
        self.tasks.iter().filter_map(last).max()
    }

    /// No window that is longer can be the first in which a deadline is missed: the processor is not busy for so
    /// long. Requests of tasks delay only windows that are shorter than their deadlines.
    fn longest_window(&self) -> Option<u64> {
        let deadline = self.tasks.iter().map(|task| task.deadline).max();
        let mut length = self.below.max(1);
        for _ in 0..MOST_STEPS {
            let jobs = self.tasks.iter().map(|task| task.jobs_until(length));
            let jobs = jobs.fold(0, u64::saturating_add);
            let next = self
                .below
                .saturating_add(jobs)
                .saturating_add(self.taken_above(length));
            if next <= length {
                return Some(length.max(deadline.unwrap_or(0)));
            }
            length = next;
        }
        None
    }
}

impl Task {
    /// The budgets of the jobs that are released before `end`, if the first is released at 0.
    fn jobs_until(&self, end: u64) -> u64 {
        end.div_ceil(self.period).saturating_mul(self.budget)
    }

    /// That of the first job that is released from `start` on.
    fn first_deadline(&self, start: u64) -> u64 {
        let passed = start.saturating_sub(self.offset).div_ceil(self.period);
        passed
            .saturating_mul(self.period)
            .saturating_add(self.offset)
            .saturating_add(self.deadline)
    }

    /// The deadlines until `end` of jobs that are released from `start` on.
    fn deadlines_in(&self, start: u64, end: u64) -> impl Iterator<Item = u64> {
        let until = end.saturating_add(1);
        (self.first_deadline(start)..until).step_by(self.period as usize)
    }
}

const fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(budget: u64, period: u64, deadline: u64) -> Task {
        Task {
            budget,
            period,
            deadline,
            offset: 0,
            request: 0,
        }
    }

    fn load(tasks: &[Task]) -> Load {
        Load {
            tasks: tasks.to_vec(),
            ..Load::default()
        }
    }

    fn overload(within: u64, [jobs, above, blocking]: [u64; 3]) -> Verdict {
        Verdict::Overload(Overload {
            within,
            jobs,
            above,
            blocking,
        })
    }

    fn hyperperiod(tasks: &[Task]) -> u64 {
        let periods = tasks.iter().map(|task| u128::from(task.period));
        periods.fold(1, |all, period| all / gcd(all, period) * period) as u64
    }

    /// A processor that is simulated µs by µs, by rules that it does not share with the analysis.
    struct Simulation<'l> {
        load: &'l Load,
        /// Of each task: the deadline of its job, how much of that is left, what has been executed, and the next release.
        jobs: Vec<Job>,
        /// Of each reservation: what is left, and when it is filled anew.
        above: Vec<(u64, u64)>,
        /// The rest of a request of a thread below.
        below: u64,
        /// The task that a server works for, and how much it still has to do.
        serving: Option<(usize, u64)>,
    }

    #[derive(Clone, Copy)]
    struct Job {
        deadline: u64,
        left: u64,
        release: u64,
    }

    impl<'l> Simulation<'l> {
        /// Reservations are filled from the times `above` on.
        fn new(load: &'l Load, above: &[u64]) -> Self {
            let job = |task: &Task| Job {
                deadline: 0,
                left: 0,
                release: task.offset,
            };
            Self {
                load,
                jobs: load.tasks.iter().map(job).collect(),
                above: above.iter().map(|&at| (0, at)).collect(),
                below: 0,
                serving: None,
            }
        }

        /// Whether a deadline is missed until `end`.
        fn misses_until(&mut self, end: u64) -> bool {
            (0..end).any(|now| self.is_missed_at(now))
        }

        fn is_missed_at(&mut self, now: u64) -> bool {
            for (job, task) in self.jobs.iter_mut().zip(&self.load.tasks) {
                if now == job.release {
                    if job.left > 0 {
                        return true;
                    }
                    *job = Job {
                        deadline: now + task.deadline,
                        left: task.budget,
                        release: now + task.period,
                    };
                }
            }
            if self.jobs.iter().any(|j| j.left > 0 && j.deadline <= now) {
                return true;
            }
            for ((left, at), above) in self.above.iter_mut().zip(&self.load.above) {
                if *at == now {
                    (*left, *at) = (above.budget, now + above.period);
                }
            }
            self.execute();
            false
        }

        /// Of one µs, what runs: a thread above, else the server that has a request, else the earliest deadline, which
        /// begins with a request, otherwise a thread below, which begins one.
        fn execute(&mut self) {
            if let Some((left, _)) = self.above.iter_mut().find(|(left, _)| *left > 0) {
                *left -= 1;
            } else if self.below > 0 {
                self.below -= 1;
            } else if let Some((task, left)) = self.serving {
                self.jobs[task].left -= 1;
                self.serving = (left > 1).then_some((task, left - 1));
            } else {
                let waiting = self.jobs.iter_mut().enumerate();
                let waiting = waiting.filter(|(_, job)| job.left > 0);
                match waiting.min_by_key(|(_, job)| job.deadline) {
                    Some((number, job)) => {
                        let task = &self.load.tasks[number];
                        if job.left == task.budget && task.request > 1 {
                            self.serving = Some((number, task.request - 1));
                        }
                        job.left -= 1;
                    }
                    None => self.below = self.load.below.saturating_sub(1),
                }
            }
        }
    }

    /// Up to four tasks of not more than the processor together.
    fn random_tasks() -> Vec<Task> {
        let count = fastrand::usize(1..5);
        let tasks = (0..count).map(|_| {
            let period = fastrand::u64(2..30);
            let budget = fastrand::u64(1..=1.max(period / count as u64));
            task(budget, period, fastrand::u64(budget..=period))
        });
        tasks.collect()
    }

    #[test]
    fn it_finds_what_a_simulation_misses_and_nothing_else() {
        fastrand::seed(1);
        let mut seen = [0; 2];
        for _ in 0..5_000 {
            let load = load(&random_tasks());
            if load.excess().is_some() {
                continue;
            }
            let end = 2 * hyperperiod(&load.tasks);
            let missed = Simulation::new(&load, &[]).misses_until(end.min(20_000));
            let is_overload = matches!(load.analyse(), Verdict::Overload(_));
            assert_eq!(is_overload, missed, "{load:?}");
            seen[usize::from(missed)] += 1;
        }
        assert!(seen.iter().all(|&seen| seen > 300), "{seen:?}");
    }

    /// Against a look at every deadline.
    #[test]
    fn no_window_is_left_out_that_is_too_short() {
        fastrand::seed(4);
        let mut seen = [0; 2];
        for _ in 0..5_000 {
            let mut load = load(&random_tasks());
            for task in &mut load.tasks {
                task.request = fastrand::u64(0..=task.budget);
            }
            load.below = fastrand::u64(0..3);
            let period = fastrand::u64(5..40);
            load.above = vec![reservation(fastrand::u64(1..=period / 5), period)];
            let Some(longest) = load.longest_window().filter(|_| load.excess().is_none()) else {
                continue;
            };
            let too_short = |within| {
                let asked = load.window(within, load.jobs_together(within));
                asked.jobs > 0 && asked.demand() > within
            };
            let deadlines = load.tasks.iter();
            let deadlines = deadlines.flat_map(|task| task.deadlines_in(0, longest));
            let is_found = matches!(load.analyse(), Verdict::Overload(_));
            let is_there = deadlines.into_iter().any(too_short);
            assert_eq!(is_found, is_there, "{load:?}");
            seen[usize::from(is_there)] += 1;
        }
        assert!(seen.iter().all(|&seen| seen > 300), "{seen:?}");
    }

    #[test]
    fn with_offsets_too_it_finds_what_a_simulation_misses_and_nothing_else() {
        fastrand::seed(2);
        let mut seen = [0; 2];
        let mut only_apart = 0;
        for _ in 0..5_000 {
            let mut load = load(&random_tasks());
            for task in &mut load.tasks {
                task.offset = fastrand::u64(0..2 * task.period);
            }
            let all = hyperperiod(&load.tasks);
            if load.excess().is_some() || all > 5_000 {
                continue;
            }
            let missed = Simulation::new(&load, &[]).misses_until(60 + 2 * all);
            let verdict = load.analyse();
            let is_overload = matches!(verdict, Verdict::Overload(_));
            assert_eq!(is_overload, missed, "{load:?}: {verdict:?}");
            seen[usize::from(missed)] += 1;
            let longest = load.longest_window().unwrap();
            let together = load.analyse_together(longest);
            only_apart += usize::from(together != Verdict::InTime && !missed);
        }
        assert!(seen.iter().all(|&seen| seen > 300), "{seen:?}");
        assert!(only_apart > 50, "{only_apart}");
    }

    /// Whatever the phases of the others, and whoever begins requests when it can.
    #[test]
    fn what_is_admitted_is_in_time_beside_reservations_and_requests() {
        fastrand::seed(3);
        let (mut admitted, mut beside) = (0, 0);
        for _ in 0..20_000 {
            let mut load = load(&random_tasks());
            for task in &mut load.tasks {
                task.budget = 1.max(task.budget / 2);
                task.request = fastrand::u64(0..=task.budget);
                task.offset = fastrand::u64(0..2) * fastrand::u64(0..task.period);
            }
            load.below = fastrand::u64(0..6);
            let above = (0..fastrand::usize(0..3)).map(|_| {
                let period = fastrand::u64(5..40);
                Reservation {
                    budget: fastrand::u64(1..=period / 4),
                    period,
                    once: 0,
                }
            });
            load.above = above.collect();
            if load.analyse() != Verdict::InTime {
                continue;
            }
            admitted += 1;
            beside += usize::from(load.below > 1 && !load.above.is_empty());
            let phases: Vec<u64> = load.above.iter().map(|_| fastrand::u64(0..80)).collect();
            let mut simulation = Simulation::new(&load, &phases);
            assert!(!simulation.misses_until(600), "{load:?} {phases:?}");
        }
        assert!(admitted > 3_000 && beside > 300, "{admitted} {beside}");
    }

    #[test]
    fn an_overload_says_when_and_how_much() {
        let tasks = [task(2, 10, 3), task(2, 10, 3)];
        assert_eq!(load(&tasks).analyse(), overload(3, [4, 0, 0]));
    }

    #[test]
    fn a_full_processor_is_no_overload() {
        assert_eq!(load(&[]).analyse(), Verdict::InTime);
        assert_eq!(load(&[task(10, 10, 10)]).analyse(), Verdict::InTime);
        let thirds = [task(1, 3, 3), task(1, 3, 3), task(1, 3, 3)];
        assert_eq!(load(&thirds).analyse(), Verdict::InTime, "no rounding");
    }

    #[test]
    fn what_is_given_up_is_not_admitted() {
        // All of the processor, and all begins anew only after the product of the first two periods.
        let (p, q) = (1_000_003, 999_983);
        let long = [
            task(650002, p, p),
            task(349994, q, q),
            task(1, p * q, p * q),
        ];
        assert_eq!(load(&long).analyse(), Verdict::Undecided);
        // Released at once, they are late; apart, they are not, but it takes all of a hyperperiod to see.
        let (p, q) = (2 * 600_011, 2 * 599_999);
        let mut apart = [task(300_001, p, 600_000), task(300_000, q, 600_000)];
        assert_eq!(load(&apart).analyse(), overload(600_000, [600_001, 0, 0]));
        apart[1].offset = 1;
        assert_eq!(load(&apart).analyse(), Verdict::Undecided);
    }

    #[test]
    fn more_than_the_processor_has_is_told_by_how_much() {
        let above = |budget, period| Load {
            above: vec![reservation(budget, period)],
            ..load(&[task(1, 2, 2), task(1, 3, 3)])
        };
        assert_eq!(above(1, 6).analyse(), Verdict::InTime);
        let share = 500_000 + 333_334 + 181_819;
        assert_eq!(above(2, 11).analyse(), Verdict::TooMuch { share });
    }

    fn reservation(budget: u64, period: u64) -> Reservation {
        Reservation {
            budget,
            period,
            once: 0,
        }
    }

    /// A reservation above delays as often as it can from the critical instant on.
    #[test]
    fn a_reservation_above_takes_its_budget_from_every_deadline() {
        let above = |above| Load {
            above: vec![above],
            ..load(&[task(4, 10, 5)])
        };
        assert_eq!(above(reservation(1, 10)).analyse(), Verdict::InTime);
        assert_eq!(above(reservation(2, 10)).analyse(), overload(5, [4, 2, 0]));
        assert_eq!(above(reservation(1, 4)).analyse(), overload(5, [4, 2, 0]));
        let once = Reservation {
            once: 1,
            ..reservation(1, 10)
        };
        assert_eq!(above(once).analyse(), overload(5, [4, 2, 0]));
    }

    /// A request delays those who are due before its task is, once.
    #[test]
    fn a_request_of_a_task_delays_the_deadlines_before_its_own() {
        let requests = |first, second| {
            let mut tasks = [task(3, 20, 5), task(6, 20, 12)];
            (tasks[0].request, tasks[1].request) = (first, second);
            load(&tasks).analyse()
        };
        assert_eq!(requests(3, 2), Verdict::InTime);
        assert_eq!(requests(0, 3), overload(5, [3, 0, 3]));
    }

    #[test]
    fn a_request_of_somebody_below_delays_every_deadline() {
        let below = |below| Load {
            below,
            ..load(&[task(3, 20, 8), task(6, 20, 12)])
        };
        assert_eq!(below(3).analyse(), Verdict::InTime);
        assert_eq!(below(4).analyse(), overload(12, [9, 0, 4]));
    }
}
