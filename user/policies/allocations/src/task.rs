//! What a reservation is for: a sporadic task, its utilisation and its demand (paper, section 2).

use core::fmt;

use crate::rate::Rate;
use crate::LONGEST;

/// The parameters of a task, and of its constant-bandwidth server, in ticks (paper, section 2: `e` and `Q`, `p` and
/// `P`, `d` and `D`). `0 < budget <= deadline <= period <=` [`LONGEST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    budget: u64,
    period: u64,
    deadline: u64,
}

/// Parameters that are none of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskError {
    /// Nothing is asked for.
    NoBudget,
    /// The job cannot be done before its deadline.
    BudgetAboveDeadline { budget: u64, deadline: u64 },
    /// Deadlines are implicit or constrained.
    DeadlineAbovePeriod { deadline: u64, period: u64 },
    /// Above [`LONGEST`].
    PeriodTooLong { period: u64 },
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoBudget => write!(f, "the budget is 0: must be at least 1 tick"),
            Self::BudgetAboveDeadline { budget, deadline } => write!(
                f,
                "the budget of {budget} ticks is above the deadline: must be at most {deadline}"
            ),
            Self::DeadlineAbovePeriod { deadline, period } => write!(
                f,
                "the deadline of {deadline} ticks is after the period: must be at most {period}"
            ),
            Self::PeriodTooLong { period } => write!(
                f,
                "the period of {period} ticks is too long: must be at most {LONGEST}"
            ),
        }
    }
}

impl core::error::Error for TaskError {}

impl Task {
    /// A task that works for `budget` in each `period`, and is done `deadline` after its release.
    ///
    /// # Errors
    /// The parameters are not ordered as they must be.
    pub const fn new(budget: u64, period: u64, deadline: u64) -> Result<Self, TaskError> {
        if budget == 0 {
            return Err(TaskError::NoBudget);
        }
        if budget > deadline {
            return Err(TaskError::BudgetAboveDeadline { budget, deadline });
        }
        if deadline > period {
            return Err(TaskError::DeadlineAbovePeriod { deadline, period });
        }
        if period > LONGEST {
            return Err(TaskError::PeriodTooLong { period });
        }
        Ok(Self {
            budget,
            period,
            deadline,
        })
    }

    pub const fn budget(self) -> u64 {
        self.budget
    }

    pub const fn period(self) -> u64 {
        self.period
    }

    pub const fn deadline(self) -> u64 {
        self.deadline
    }

    /// Budget by period, rounded up.
    pub fn rate(self) -> Rate {
        Rate::at_least(self.budget, self.period).unwrap_or(Rate::WHOLE)
    }

    /// The execution that the jobs ask for which are released and due in an interval: the demand bound function
    /// (paper, section 2), exact, in ticks.
    pub const fn demand(self, interval: u64) -> u128 {
        if interval < self.deadline {
            return 0;
        }
        let jobs = (interval - self.deadline) / self.period + 1;
        jobs as u128 * self.budget as u128
    }
}
