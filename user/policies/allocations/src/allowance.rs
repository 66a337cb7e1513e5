//! Allowance functions: how much processor demand is allowed in an interval, by its length.

use core::fmt;

use crate::rate::{over, scaled, ticks_up, Amount, Rate, Scaled};
use crate::task::Task;
use crate::LONGEST;

/// Where a segment of a function begins: from `at` to the next point, the function is `value + rate · (t − at)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Length of the interval, ticks.
    pub at: u64,
    /// Demand allowed in it.
    pub value: Amount,
    /// Growth from there on.
    pub rate: Rate,
}

/// A piecewise linear function of the length of an interval, 0 before its first point, that never falls (paper, section
/// 3.2). Its last slope is the *allowed utilisation*.
///
/// It may jump at a point, as demand bound functions do. Only whole ticks are intervals: tasks have whole parameters,
/// so their demand changes nowhere else.
#[derive(Clone, Copy, Debug)]
pub struct Allowance<const K: usize> {
    points: [Point; K],
    /// Points that are used: 1 to K.
    count: u8,
}

/// Points that are no allowance function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowanceError {
    /// There are none, or more than fit.
    Count { points: usize, most: usize },
    /// A point is not after the one before it.
    Order { index: usize },
    /// The function falls at a point, whose value must be at least this.
    Falls { index: usize, least: u64 },
    /// An interval or a value is above [`LONGEST`].
    TooLong { index: usize },
    /// The sum of functions grows faster than time.
    TooSteep { index: usize },
}

impl fmt::Display for AllowanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Count { points, most } => {
                write!(f, "the function has {points} points: must be 1 to {most}")
            }
            Self::Order { index } => write!(
                f,
                "point {index} is not after the one before it: points must be in the order of their intervals"
            ),
            Self::Falls { index, least } => write!(
                f,
                "the function falls at point {index}: its value must be at least {least} ticks"
            ),
            Self::TooLong { index } => write!(
                f,
                "point {index} is too large: intervals and values must be at most {LONGEST} ticks"
            ),
            Self::TooSteep { index } => write!(
                f,
                "the function grows faster than time after point {index}: slopes must add up to at most 1"
            ),
        }
    }
}

impl core::error::Error for AllowanceError {}

/// Equal as functions are written: points beyond the last do not count.
impl<const K: usize> PartialEq for Allowance<K> {
    fn eq(&self, other: &Self) -> bool {
        self.points() == other.points()
    }
}

impl<const K: usize> Eq for Allowance<K> {}

impl<const K: usize> Allowance<K> {
    /// There is room for one point at least, and their number fits.
    const FITS: () = assert!(K >= 1 && K <= u8::MAX as usize);

    /// Storage for a function; none itself.
    pub(crate) const NOTHING: Self = Self {
        points: [Point {
            at: 0,
            value: Amount::NOTHING,
            rate: Rate::ZERO,
        }; K],
        count: 0,
    };

    /// The function with these points.
    ///
    /// # Errors
    /// They are none of a function that never falls.
    pub fn new(points: &[Point]) -> Result<Self, AllowanceError> {
        let () = Self::FITS;
        if points.is_empty() || points.len() > K {
            return Err(AllowanceError::Count {
                points: points.len(),
                most: K,
            });
        }
        for index in 0..points.len() {
            check_point(points, index)?;
        }
        let mut all = [Point::default(); K];
        all[..points.len()].copy_from_slice(points);
        Ok(Self {
            points: all,
            count: points.len() as u8,
        })
    }

    /// `rate · t`: for tasks with implicit deadlines, and best effort (paper, section 3.4). Of the whole rate, a processor.
    pub fn linear(rate: Rate) -> Self {
        Self::of_valid([Point {
            at: 0,
            value: Amount::NOTHING,
            rate,
        }])
    }

    /// The demand of a task: exact for its first K jobs, then along the line of its utilisation (paper, section 2,
    /// after Albers and Slomka). Never below the task's exact demand.
    pub fn of_task(task: Task) -> Self {
        Self::of_task_in(task, K)
    }

    /// As [`Self::of_task`], exact for the first `steps` jobs, of which K at most.
    pub fn of_task_in(task: Task, steps: usize) -> Self {
        let () = Self::FITS;
        let room = (LONGEST - task.deadline()) / task.period() + 1;
        let steps = steps.clamp(1, K).min(usize::try_from(room).unwrap_or(K));
        let mut points = [Point::default(); K];
        for (job, point) in points.iter_mut().enumerate().take(steps) {
            let is_last = job + 1 == steps;
            *point = Point {
                at: task.deadline() + job as u64 * task.period(),
                value: Amount::of_ticks((job as u64 + 1) * task.budget()),
                rate: if is_last { task.rate() } else { Rate::ZERO },
            };
        }
        Self {
            points,
            count: steps as u8,
        }
    }

    /// What a subsystem with these tasks asks for: their demand, exact in short intervals, then along a line that is
    /// never below it. A reservation for each of them fits into an allocation of it. `None` if their utilisation is
    /// above 1, or if there are none.
    ///
    /// O(K · n) for n tasks.
    pub fn of_tasks(tasks: &[Task]) -> Option<Self> {
        let () = Self::FITS;
        let rate = sum_of_rates(tasks)?;
        let mut points = [Point::default(); K];
        let mut at = tasks.iter().map(|task| task.deadline()).min()?;
        let mut count = 0;
        while count + 1 < K {
            let Some(next) = next_step(tasks, at) else {
                break;
            };
            let demand: u128 = tasks.iter().map(|task| task.demand(at)).sum();
            points[count] = Point {
                at,
                value: Amount::of_ticks(u64::try_from(demand).ok()?),
                rate: Rate::ZERO,
            };
            count += 1;
            at = next;
        }
        points[count] = Point {
            at,
            value: sum_of(tasks.iter().map(|&task| line_at(task, at)))?,
            rate,
        };
        Self::new(&points[..=count]).ok()
    }

    /// The sum of functions, exactly.
    ///
    /// # Errors
    /// It has more than K points, it is too large, or it grows faster than time.
    pub fn sum(functions: &[Self]) -> Result<Self, AllowanceError> {
        let mut points = [Point::default(); K];
        let mut count = 0;
        let mut next = functions.iter().map(|function| function.points[0].at).min();
        while let Some(at) = next {
            let point = points.get_mut(count).ok_or(AllowanceError::Count {
                points: count + 1,
                most: K,
            })?;
            *point = sum_at(functions, at).ok_or(AllowanceError::TooSteep { index: count })?;
            count += 1;
            let later = functions.iter().flat_map(|function| function.points());
            next = later
                .map(|point| point.at)
                .filter(|&other| other > at)
                .min();
        }
        Self::new(&points[..count])
    }

    /// The points, in their order.
    pub fn points(&self) -> &[Point] {
        &self.points[..usize::from(self.count)]
    }

    /// The slope after the last point: the allowed utilisation.
    pub fn rate(&self) -> Rate {
        self.points().last().map_or(Rate::ZERO, |point| point.rate)
    }

    /// The demand that is allowed in an interval, in ticks, rounded up.
    pub fn at(&self, interval: u64) -> u64 {
        ticks_up(self.exact(interval))
    }

    /// The demand that is allowed in an interval, without rounding, in parts of [`Rate::WHOLE`] of a tick.
    pub fn exact(&self, interval: u64) -> i128 {
        let begun = self.points().partition_point(|point| point.at <= interval);
        match begun.checked_sub(1) {
            None => 0,
            Some(index) => on_segment(self.points[index], interval),
        }
    }

    fn of_valid<const N: usize>(points: [Point; N]) -> Self {
        let () = Self::FITS;
        let mut all = [Point::default(); K];
        all[..N].copy_from_slice(&points);
        Self {
            points: all,
            count: N as u8,
        }
    }
}

/// The value at an interval that is not before the point.
pub(crate) fn on_segment(point: Point, interval: u64) -> Scaled {
    point.value.scaled() + over(point.rate, interval - point.at)
}

fn check_point(points: &[Point], index: usize) -> Result<(), AllowanceError> {
    let point = points[index];
    if point.at > LONGEST || point.value > Amount::of_ticks(LONGEST) {
        return Err(AllowanceError::TooLong { index });
    }
    let Some(before) = index.checked_sub(1).map(|before| points[before]) else {
        return Ok(());
    };
    if point.at <= before.at {
        return Err(AllowanceError::Order { index });
    }
    let reached = on_segment(before, point.at);
    if point.value.scaled() < reached {
        let least = ticks_up(reached);
        return Err(AllowanceError::Falls { index, least });
    }
    Ok(())
}

fn sum_of_rates(tasks: &[Task]) -> Option<Rate> {
    let parts: u128 = tasks
        .iter()
        .map(|task| u128::from(task.rate().parts()))
        .sum();
    Rate::of_parts(u64::try_from(parts).ok()?)
}

/// The first deadline of a job after `at`, of tasks that are released together.
fn next_step(tasks: &[Task], at: u64) -> Option<u64> {
    let steps = tasks.iter().map(|task| {
        if at < task.deadline() {
            return task.deadline();
        }
        let jobs = (at - task.deadline()) / task.period() + 1;
        task.deadline() + jobs * task.period()
    });
    steps.min().filter(|&step| step <= LONGEST)
}

/// Where a line of the task's utilisation begins at `at` that is never below its demand. A task whose first deadline
/// is to come is counted so that the line reaches its budget there.
fn line_at(task: Task, at: u64) -> Scaled {
    let budget = scaled(task.budget());
    if at >= task.deadline() {
        budget + over(task.rate(), at - task.deadline())
    } else {
        (budget - over(task.rate(), task.deadline() - at)).max(0)
    }
}

/// `None` if it is too large.
fn sum_of(mut values: impl Iterator<Item = Scaled>) -> Option<Amount> {
    let sum = values.try_fold(0, Scaled::checked_add)?;
    Amount::of_scaled(sum)
}

/// The sum at `at`, as a point; `None` if it is too large, or grows faster than time.
fn sum_at<const K: usize>(functions: &[Allowance<K>], at: u64) -> Option<Point> {
    let begun = |function: &Allowance<K>| {
        let mut points = function.points().iter().rev();
        let last = points.find(|point| point.at <= at);
        last.map_or(0, |point| u128::from(point.rate.parts()))
    };
    let parts: u128 = functions.iter().map(begun).sum();
    Some(Point {
        at,
        value: sum_of(functions.iter().map(|function| function.exact(at)))?,
        rate: Rate::of_parts(u64::try_from(parts).ok()?)?,
    })
}
