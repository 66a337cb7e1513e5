//! Every donation returns, and no thread runs on a context that it does not have.
//!
//! Who has which context follows from the records. A context that was lent with a call comes back
//! with the reply; or the call is given up, by a fault policy, a deletion or a suspension, which the
//! kernel records. At the end of the trace a call may be in progress: then whoever has the context
//! is about to work; if he waits for the next request instead, he kept it.

use std::collections::BTreeMap;

use sandglass_abi::trace::{Blocked, Gift};

use super::Findings;
use crate::trace::record::{Event, Object, Record};

#[derive(Default)]
struct State {
    /// Who has each context.
    holders: BTreeMap<Object, Object>,
    /// Of each context, who lent it with a call and is to get it back, the last one last; with the
    /// record of it.
    lenders: BTreeMap<Object, Vec<(Object, Record)>>,
    /// Why each thread cannot run.
    blocked: BTreeMap<Object, Blocked>,
}

pub fn check(findings: &mut Findings<'_>) {
    let mut state = State::default();
    for record in &findings.history.records {
        state.follow(findings, record);
    }
    state.finish(findings);
}

impl State {
    fn follow(&mut self, findings: &mut Findings<'_>, record: &Record) {
        match record.event {
            Event::Donate {
                context,
                from,
                to,
                gift,
            } => {
                self.hand_over(findings, record, context, from, to);
                if gift == Gift::Call {
                    findings.looked().donations += 1;
                    let lenders = self.lenders.entry(context).or_default();
                    lenders.push((from, *record));
                }
            }
            Event::Return { context, from, to } => {
                self.give_back(findings, record, context, to);
                self.hand_over(findings, record, context, from, to);
            }
            Event::Unbind { context, from } => {
                self.hand_over(findings, record, context, from, 0);
            }
            Event::Abandon { context, lender } => self.give_up(context, lender),
            Event::Switch {
                thread, context, ..
            } if thread != 0 => self.runs(findings, record, thread, context),
            Event::Block { thread, why } => {
                self.blocked.insert(thread, why);
            }
            Event::Wake { thread, .. } => {
                self.blocked.remove(&thread);
            }
            _ => {}
        }
    }

    /// `context` goes from `from` to `to`.
    fn hand_over(
        &mut self,
        findings: &mut Findings<'_>,
        record: &Record,
        context: Object,
        from: Object,
        to: Object,
    ) {
        if let Some(&holder) = self.holders.get(&context) {
            if holder != from {
                let what = format!(
                    "the context of `{}` moves from `{}` to `{}`, but `{}` has it: the record of an \
                     earlier move is missing",
                    findings.name(context),
                    findings.name(from),
                    findings.name(to),
                    findings.name(holder)
                );
                findings.found(record.sequence, record.time, what);
            }
        }
        self.holders.insert(context, to);
    }

    /// `context` goes back to `lender`.
    fn give_back(
        &mut self,
        findings: &mut Findings<'_>,
        record: &Record,
        context: Object,
        lender: Object,
    ) {
        let lenders = self.lenders.entry(context).or_default();
        match lenders.pop() {
            Some((last, _)) if last == lender => {}
            Some((last, lent)) => {
                let what = format!(
                    "the context of `{}` returns to `{}`, but `{}` lent it last, at record #{}",
                    findings.name(context),
                    findings.name(lender),
                    findings.name(last),
                    lent.sequence
                );
                findings.found(record.sequence, record.time, what);
            }
            // It was lent before the trace began, or it never was.
            None if self.holders.contains_key(&context) => {
                let what = format!(
                    "the context of `{}` returns to `{}`, which did not lend it",
                    findings.name(context),
                    findings.name(lender)
                );
                findings.found(record.sequence, record.time, what);
            }
            None => {}
        }
    }

    /// `lender`, or with 0 everybody, does not get `context` back; with 0 as context, any that was
    /// lent on since.
    fn give_up(&mut self, context: Object, lender: Object) {
        let forget = |lenders: &mut Vec<(Object, Record)>| {
            if lender == 0 {
                lenders.clear();
            } else if let Some(at) = lenders.iter().rposition(|&(who, _)| who == lender) {
                // Who lent it before cannot get it back over this one any more either.
                lenders.drain(..=at);
            }
        };
        if context != 0 {
            self.lenders.entry(context).and_modify(forget);
        } else {
            self.lenders.values_mut().for_each(forget);
        }
    }

    /// `thread` runs on `context`.
    fn runs(
        &mut self,
        findings: &mut Findings<'_>,
        record: &Record,
        thread: Object,
        context: Object,
    ) {
        match self.holders.get(&context) {
            Some(&holder) if holder == thread => {}
            Some(&holder) => {
                let lent = self
                    .lenders
                    .get(&context)
                    .and_then(|lenders| lenders.last());
                let since = match lent {
                    Some((lender, lent)) if *lender == thread => format!(
                        "lent it to `{}` at record #{} and never got it back",
                        findings.name(holder),
                        lent.sequence
                    ),
                    _ => format!("does not have it: `{}` does", findings.name(holder)),
                };
                let what = format!(
                    "`{}` runs on the context of `{}`, but {since}",
                    findings.name(thread),
                    findings.name(context)
                );
                findings.found(record.sequence, record.time, what);
                self.holders.insert(context, thread);
            }
            // It had it before the trace began.
            None => {
                self.holders.insert(context, thread);
            }
        }
    }

    /// The trace ends.
    fn finish(&self, findings: &mut Findings<'_>) {
        for (context, lenders) in &self.lenders {
            let Some((lender, lent)) = lenders.last() else {
                continue;
            };
            let holder = self.holders.get(context).copied().unwrap_or(0);
            if self.blocked.get(&holder) == Some(&Blocked::Receive) {
                let what = format!(
                    "the context of `{}`, which `{}` lent here, was never returned: at the end of \
                     the trace `{}` has it and waits for the next request",
                    findings.name(*context),
                    findings.name(*lender),
                    findings.name(holder)
                );
                findings.found(lent.sequence, lent.time, what);
            }
        }
    }
}
