//! What is known of one context.

use crate::finding::Finding;
use crate::oracle::{Configuration, Limits, Place, Stretch};
use crate::rule::{Excess, Rule};
use crate::Ticks;

/// One context: what it may use, and what it has used.
#[derive(Clone, Debug)]
pub struct Account {
    context: u64,
    /// `None` without windows: a round-robin context.
    rule: Option<Rule>,
    /// After a change of a context in use: what holds across it.
    transition: Option<Rule>,
    sporadic: bool,
    /// What it has executed in all.
    executed: Ticks,
    /// Until when it was in use.
    used_until: Ticks,
    /// The path of the kernel that it is on.
    path: Ticks,
    /// When it was last known not to be behind, and what it had executed then; `None` if it never was.
    on_time: Option<(Ticks, Ticks)>,
    supply: Option<Supply>,
    /// From when on the whole budget is there again, if nothing is used before.
    whole_from: Ticks,
    payment: Payment,
}

/// The whole budget was there at `since`, with so much executed in all.
#[derive(Clone, Copy, Debug)]
struct Supply {
    since: Ticks,
    executed: Ticks,
}

/// What was charged and executed since the context last owed nothing.
#[derive(Clone, Copy, Default, Debug)]
struct Payment {
    charged: Ticks,
    executed: Ticks,
    /// The longest path in that time.
    path: Ticks,
}

impl Account {
    /// A context of which it is not known what it used before `at`.
    pub fn new(context: u64, configuration: Option<Configuration>, at: Ticks) -> Account {
        let mut account = Account {
            context,
            rule: None,
            transition: None,
            sporadic: false,
            executed: 0,
            used_until: at,
            path: 0,
            on_time: None,
            supply: None,
            whole_from: at,
            payment: Payment::default(),
        };
        account.start_unknown(configuration, at);
        account
    }

    /// A configuration, after which it is not known what was used of it.
    pub fn start_unknown(&mut self, configuration: Option<Configuration>, at: Ticks) {
        self.start(configuration, at);
        self.on_time = None;
        self.void(at);
    }

    /// A new configuration, with its whole budget at once.
    pub fn start(&mut self, configuration: Option<Configuration>, at: Ticks) {
        self.rule = configuration.map(Rule::new);
        self.transition = None;
        self.sporadic = configuration.is_some_and(|it| it.sporadic);
        self.on_time = Some((at, self.executed));
        self.supply = None;
        self.whole_from = at;
    }

    /// The configuration changes at `at`, and what was used stays used.
    pub fn update(&mut self, configuration: Option<Configuration>, at: Ticks) {
        let (Some(next), Some(rule)) = (configuration, self.rule.clone()) else {
            return self.start_unknown(configuration, at);
        };
        let old = self.transition.take().filter(|old| !old.is_over(at));
        let across = match old {
            // Whatever held across the change before holds on, for the larger of all.
            Some(old) => old.across(rule.configuration(), at).across(next, at),
            None => rule.clone().across(next, at),
        };
        // Of how far a sporadic one was behind before nothing is kept.
        let was_sporadic = std::mem::replace(&mut self.sporadic, next.sporadic);
        self.transition = (!was_sporadic && !next.sporadic).then_some(across);
        let old_period = rule.period();
        self.rule = Some(Rule::new(next));
        self.is_on_time(at);
        // What is left of the old budget may be there one old period from now only.
        self.void(at.saturating_add(old_period));
    }

    /// It executed.
    pub fn ran(&mut self, stretch: &Stretch) -> Result<(), Finding> {
        let Stretch { start, end, .. } = *stretch;
        if start < self.used_until {
            return Err(Finding::Overlap {
                context: self.context,
                start,
                busy_until: self.used_until,
            });
        }
        self.use_supply(start);
        self.follow_path(stretch);
        self.executed += end - start;
        self.used_until = end;
        self.payment.executed += end - start;
        self.payment.path = self.payment.path.max(self.path);
        let behind = self.behind(end);
        let path = self.path;
        self.transition = self.transition.take().filter(|rule| !rule.is_over(start));
        for rule in self.rule.iter_mut().chain(&mut self.transition) {
            rule.ran((start, end), path, behind)
                .map_err(|excess| excess.of(self.context, end))?;
        }
        self.used(end);
        if stretch.checked {
            self.path = 0;
        }
        Ok(())
    }

    /// The kernel's time at a stretch, until it looks at the budget or user code goes on.
    fn follow_path(&mut self, stretch: &Stretch) {
        let goes_on = stretch.start == self.used_until;
        match stretch.place {
            Place::User => self.path = 0,
            Place::Kernel if goes_on => self.path += stretch.end - stretch.start,
            Place::Kernel => self.path = stretch.end - stretch.start,
        }
    }

    /// For how long a sporadic context may have been kept from running.
    fn behind(&self, at: Ticks) -> Ticks {
        if !self.sporadic {
            return 0;
        }
        let Some((since, executed)) = self.on_time else {
            return Ticks::MAX;
        };
        (at.saturating_sub(since)).saturating_sub(self.executed - executed)
    }

    /// Its thread wakes, or waits until it has budget: it is not behind.
    pub fn is_on_time(&mut self, at: Ticks) {
        self.on_time = Some((at, self.executed));
    }

    /// It may be without budget at `at`, for whatever reason.
    pub fn void(&mut self, at: Ticks) {
        self.supply = None;
        self.used(at);
    }

    /// It is used from `start` on.
    fn use_supply(&mut self, start: Ticks) {
        if start >= self.whole_from {
            let executed = self.executed;
            self.supply = Some(Supply {
                since: start,
                executed,
            });
        }
    }

    /// It is used until `end`. If nothing is used from then on it has its whole budget again after two
    /// periods, and those for which it is to go without what it used beyond its budget.
    fn used(&mut self, end: Ticks) {
        let Some(rule) = &mut self.rule else { return };
        let periods = (rule.longest_path(end) / rule.budget().max(1)).saturating_add(2);
        let whole = end.saturating_add(rule.period().saturating_mul(periods));
        self.whole_from = self.whole_from.max(whole);
    }

    /// It is refused at `at`.
    pub fn refused(&mut self, at: Ticks, limits: &Limits) -> Result<(), Finding> {
        let (context, executed, is_sporadic) = (self.context, self.executed, self.sporadic);
        let Some(rule) = self.rule.as_mut().filter(|_| !is_sporadic) else {
            return Ok(());
        };
        let (since, had) = match self.supply {
            _ if at >= self.whole_from => (at, executed),
            Some(Supply { since, executed }) if at < since.saturating_add(rule.period()) => {
                (since, executed)
            }
            _ => return Ok(()),
        };
        let unused = limits.least_budget.saturating_add(rule.longest_path(at));
        let promised = rule.budget().saturating_sub(unused);
        let executed = executed - had;
        if executed < promised {
            return Err(Finding::Supply {
                context,
                at,
                since,
                executed,
                promised,
            });
        }
        Ok(())
    }

    /// It was charged `ticks`, until `at`.
    pub fn charged(&mut self, ticks: Ticks, at: Ticks, limits: &Limits) -> Result<(), Finding> {
        self.payment.charged += ticks;
        let Payment {
            charged,
            executed,
            path,
        } = self.payment;
        let allowance = limits.path.saturating_add(path);
        if charged > executed.saturating_add(allowance) {
            return Err(Finding::Payment {
                context: self.context,
                at,
                charged,
                executed,
                allowance,
            });
        }
        Ok(())
    }

    /// It owes nothing now.
    pub fn has_paid(&mut self) {
        self.payment = Payment::default();
    }
}

impl Excess {
    fn of(self, context: u64, end: Ticks) -> Finding {
        Finding::Window {
            context,
            end,
            period: self.period,
            executed: self.executed,
            budget: self.budget,
            allowance: self.allowance,
        }
    }
}
