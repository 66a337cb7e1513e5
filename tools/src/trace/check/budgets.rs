//! No context over budget in any window of its period.
//!
//! A charge of `n` ticks at `t` was consumed from `t - n` to `t`, since a context pays when its core
//! goes over to another one. The most that any window of one period has is in one that begins with
//! a stretch of consumption: so those are looked at. The longest kernel path is allowed beyond the
//! budget: a budget may end while the kernel executes, and a sporadic context starts late by the
//! path into which its release falls; it is repaid later.
//!
//! A sporadic context starts its refills when its thread wakes, not when it is chosen (ABI 04, section
//! 5.4). If others run in between, what is used late comes back early: so much more may be consumed
//! around the next release. That time is allowed too.
//!
//! What is handed out is looked at as well: when a context begins to pay, what its refill has fits
//! into the budget of the period that ends when that is used up. On several cores, whose timers may be
//! late, that is what is exact: a context that went on too long gets so much less afterwards.

use std::collections::{BTreeMap, VecDeque};

use super::Findings;
use crate::trace::record::{Event, Object};

/// A context with budget and period, and what it consumed in the last period.
struct Account {
    budget: u64,
    period: u64,
    /// When these parameters began to hold.
    since: u64,
    /// From, to: in order, disjoint; those that are within one period before the last.
    consumed: VecDeque<(u64, u64)>,
    sum: u64,
    sporadic: bool,
    /// When its thread became ready and could not run since.
    ready: Option<u64>,
    /// When its thread ran, and how late, within the last two periods.
    late: VecDeque<(u64, u64)>,
}

impl Account {
    /// Adds a stretch of consumption; the most in a window of one period that ends with it. A window
    /// that begins before the parameters held is none.
    fn add(&mut self, from: u64, to: u64) -> u64 {
        let from = from.max(self.since);
        if to <= from {
            return 0;
        }
        self.consumed.push_back((from, to));
        self.sum += to - from;
        let begin = to.saturating_sub(self.period);
        while let Some(&(first, end)) = self.consumed.front() {
            if end > begin {
                break;
            }
            self.consumed.pop_front();
            self.sum -= end - first;
        }
        let early = self
            .consumed
            .front()
            .map_or(0, |&(first, _)| begin.saturating_sub(first));
        self.sum - early
    }

    /// The most in the window of one period that ends when `amount` is used up from `time` on.
    fn with(&self, time: u64, amount: u64) -> u64 {
        let begin = (time + amount).saturating_sub(self.period);
        let used = self.consumed.iter().rev();
        let used = used.take_while(|&&(_, to)| to > begin);
        used.map(|&(from, to)| to - from.max(begin)).sum::<u64>() + amount
    }

    /// Its thread runs from `time` on.
    fn runs(&mut self, time: u64) {
        if let Some(ready) = self.ready.take().filter(|_| self.sporadic) {
            self.late.push_back((time, time.saturating_sub(ready)));
        }
        let before = time.saturating_sub(2 * self.period);
        while self.late.front().is_some_and(|&(at, _)| at < before) {
            self.late.pop_front();
        }
    }

    /// The longest that its thread was kept from running.
    fn lateness(&self) -> u64 {
        self.late.iter().map(|&(_, late)| late).max().unwrap_or(0)
    }
}

pub fn check(findings: &mut Findings<'_>) {
    let mut accounts: BTreeMap<Object, Account> = BTreeMap::new();
    let slack = findings.longest_path();
    for record in &findings.history.records {
        match record.event {
            Event::Configure {
                context,
                budget,
                period,
                sporadic,
                ..
            } => {
                accounts.remove(&context);
                if period != 0 {
                    accounts.insert(
                        context,
                        Account {
                            budget,
                            period,
                            since: record.time,
                            consumed: VecDeque::new(),
                            sum: 0,
                            sporadic,
                            ready: None,
                            late: VecDeque::new(),
                        },
                    );
                }
            }
            Event::Charge {
                context, consumed, ..
            } => {
                let Some(account) = accounts.get_mut(&context) else {
                    continue;
                };
                let used = account.add(record.time.saturating_sub(consumed), record.time);
                let (budget, period) = (account.budget, account.period);
                let slack = slack + account.lateness();
                // It went on beyond its budget as long as its core stood still, at most.
                let over = used.saturating_sub(budget);
                let since = record.time.saturating_sub(over);
                let still = findings.standstill.within(record.core, since, record.time);
                let slack = slack + still;
                findings.looked().windows += 1;
                if used > budget + slack {
                    let history = findings.history;
                    let what = format!(
                        "the context of `{}` is over budget: in the period of {:.3} µs that ends \
                         here it consumed {:.3} µs; at most {:.3} µs of budget and {:.3} µs of \
                         kernel path and delay would be right",
                        findings.name(context),
                        history.us(period),
                        history.us(used),
                        history.us(budget),
                        history.us(slack),
                    );
                    findings.found(record.sequence, record.time, what);
                }
            }
            Event::Pays { context, amount } => {
                let Some(account) = accounts.get(&context) else {
                    continue;
                };
                let handed = account.with(record.time, amount);
                let (budget, period) = (account.budget, account.period);
                let slack = slack + account.lateness();
                if handed > budget + slack {
                    let history = findings.history;
                    let what = format!(
                        "the context of `{}` is given more than its budget: a refill of {:.3} µs, \
                         with which it would have {:.3} µs in a period of {:.3} µs; at most {:.3} µs \
                         of budget and {:.3} µs of kernel path and delay would be right",
                        findings.name(context),
                        history.us(amount),
                        history.us(handed),
                        history.us(period),
                        history.us(budget),
                        history.us(slack),
                    );
                    findings.found(record.sequence, record.time, what);
                }
            }
            Event::Wake { context, .. } => {
                accounts
                    .entry(context)
                    .and_modify(|account| account.ready = Some(record.time));
            }
            Event::Wait { context, until, .. } => {
                accounts
                    .entry(context)
                    .and_modify(|account| account.ready = Some(until));
            }
            Event::Switch { context, .. } => {
                accounts
                    .entry(context)
                    .and_modify(|account| account.runs(record.time));
            }
            _ => {}
        }
    }
}
