//! At most a budget in every window of one period.

use crate::longest::Longest;
use crate::oracle::Configuration;
use crate::window::Window;
use crate::Ticks;

/// A budget, and what was used of it in the window that slides.
#[derive(Clone, Debug)]
pub struct Rule {
    budget: Ticks,
    window: Window,
    /// Paths of the kernel on the context's time, by their ends.
    paths: Longest,
    /// How far the context was behind while it ran.
    behind: Longest,
    /// When the rule is over.
    until: Ticks,
}

/// A window with more than its budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Excess {
    pub period: Ticks,
    pub executed: Ticks,
    pub budget: Ticks,
    pub allowance: Ticks,
}

impl Rule {
    pub fn new(configuration: Configuration) -> Rule {
        Rule {
            budget: configuration.budget,
            window: Window::new(configuration.period),
            paths: Longest::default(),
            behind: Longest::default(),
            until: Ticks::MAX,
        }
    }

    pub fn budget(&self) -> Ticks {
        self.budget
    }

    pub fn period(&self) -> Ticks {
        self.window.length()
    }

    pub fn configuration(&self) -> Configuration {
        Configuration {
            budget: self.budget,
            period: self.window.length(),
            sporadic: false,
        }
    }

    pub fn is_over(&self, at: Ticks) -> bool {
        self.until <= at
    }

    /// What holds across a change, at `at`, from this rule to `next`: in windows of the shorter period
    /// there is at most the larger budget.
    #[must_use]
    pub fn across(mut self, next: Configuration, at: Ticks) -> Rule {
        self.window.shorten(next.period);
        Rule {
            budget: self.budget.max(next.budget),
            until: at.saturating_add(self.window.length()),
            ..self
        }
    }

    /// The context executed from `start` to `end`, and is on a path of the kernel of length `path`
    /// (0: in user code); if it is sporadic, it was kept from running for `behind`. What it does then is
    /// done for a time that is earlier by as much at most, and it is only then that no window has more
    /// than the budget.
    pub fn ran(
        &mut self,
        (start, end): (Ticks, Ticks),
        path: Ticks,
        behind: Ticks,
    ) -> Result<(), Excess> {
        if path > 0 {
            self.paths.add(end, path);
        }
        let (budget, period) = (self.budget, self.window.length());
        let executed = self.window.add(start, end);
        let longest = self.longest_path(end);
        if behind > 0 {
            self.behind.add(end, behind);
        }
        let behind = self.behind.since(end.saturating_sub(period));
        let backlog = behind.min(behind.div_ceil(period.max(1)).saturating_mul(budget));
        let allowance = longest.saturating_add(backlog);
        if executed > budget.saturating_add(allowance) {
            return Err(Excess {
                period,
                executed,
                budget,
                allowance,
            });
        }
        Ok(())
    }

    /// The longest path in the window that ends at `end`.
    pub fn longest_path(&mut self, end: Ticks) -> Ticks {
        self.paths.since(end.saturating_sub(self.window.length()))
    }
}
