//! What requests take, and what they cost those who wait.

use std::collections::BTreeMap;

use sandglass_mc_ipc::bound::{requests, Calls};
use sandglass_mc_ipc::ClientId;

use super::{stretch, Findings, Plan, Protocol, Span, Stretch, Told};
use crate::trace::record::{Event, Object};
use crate::trace::timeline::Timeline;

/// A stretch of time in which a context paid, and where.
#[derive(Debug, Clone, Copy)]
struct Paid {
    core: u8,
    time: Stretch,
}

impl Paid {
    /// What of it is within `time`.
    const fn within(self, time: Stretch) -> Stretch {
        let (mut from, mut to) = (self.time.from, self.time.to);
        if from < time.from {
            from = time.from;
        }
        if to > time.to {
            to = time.to;
        }
        Stretch { from, to }
    }
}

pub fn check(
    findings: &mut Findings<'_>,
    plan: &Plan,
    timeline: &Timeline,
    contexts: &BTreeMap<Object, ClientId>,
    told: &Told,
) {
    let runs = timeline.executions.iter();
    let runs = runs.filter(|run| findings.name(run.thread) == plan.server);
    let works: Vec<Paid> = runs
        .map(|run| Paid {
            core: run.core,
            time: stretch(run),
        })
        .collect();
    for service in &told.services {
        operation(findings, plan, &works, service);
    }
    if plan.protocol != Protocol::McIpc {
        return;
    }
    let charges = charges(findings, plan, contexts);
    for wait in &told.waits {
        let charges = &charges[wait.client.0];
        consumption(findings, plan, charges, wait);
        count(findings, plan, charges, wait, &told.services);
    }
}

/// What the kernel charged each client's context for, in order.
fn charges(
    findings: &Findings<'_>,
    plan: &Plan,
    contexts: &BTreeMap<Object, ClientId>,
) -> Vec<Vec<Paid>> {
    let mut charges = vec![Vec::new(); plan.clients.len()];
    for record in &findings.history.records {
        if let Event::Charge {
            context, consumed, ..
        } = record.event
        {
            if let Some(client) = contexts.get(&context) {
                let time = Stretch {
                    from: record.time.saturating_sub(consumed),
                    to: record.time,
                };
                charges[client.0].push(Paid {
                    core: record.core,
                    time,
                });
            }
        }
    }
    charges
}

/// Those of `all`, which are in order, that have something of `time`; only that of them.
fn overlapping(all: &[Paid], time: Stretch) -> impl Iterator<Item = Paid> + '_ {
    let first = all.partition_point(|paid| paid.time.to <= time.from);
    all[first..]
        .iter()
        .take_while(move |paid| paid.time.from < time.to)
        .map(move |paid| Paid {
            time: paid.within(time),
            ..*paid
        })
}

/// How much of `time` was paid for; and at most how much of that the core only stood still.
fn sum(findings: &Findings<'_>, all: &[Paid], time: Stretch) -> (u64, u64) {
    overlapping(all, time).fold((0, 0), |(sum, still), paid| {
        let Stretch { from, to } = paid.time;
        let stood = findings.standstill.within(paid.core, from, to);
        (sum + (to - from), still + stood)
    })
}

/// The server works on one request for as long as its longest operation takes.
fn operation(findings: &mut Findings<'_>, plan: &Plan, works: &[Paid], service: &Span) {
    let (took, still) = sum(findings, works, service.time);
    let longest = plan.longest_us * findings.history.per_us;
    if took > longest + findings.longest_path() + still {
        let what = format!(
            "`{}` worked on the request of `{}` for {:.3} µs, and no operation is described to take longer than {} µs",
            plan.server,
            plan.clients[service.client.0].name,
            findings.history.us(took),
            plan.longest_us
        );
        findings.found(service.sequence, service.time.to, what);
    }
}

/// While a client waits, no more of its budget is consumed than its bound.
fn consumption(findings: &mut Findings<'_>, plan: &Plan, charges: &[Paid], wait: &Span) {
    let client = &plan.clients[wait.client.0];
    let Some(assumed) = client.assumed else {
        return;
    };
    let one = Calls {
        count: 1,
        ..assumed
    };
    let bound_us = one.delay(client.caller(plan));
    let (consumed, still) = sum(findings, charges, wait.time);
    let slack = findings.longest_path() + still;
    if consumed > bound_us * findings.history.per_us + slack {
        let what = format!(
            "`{}` consumed {:.3} µs of its budget while it waited for `{}`; its bound is {bound_us} µs, and at most {:.3} µs \
             of kernel path and delay would be right beyond it",
            client.name,
            findings.history.us(consumed),
            plan.resource,
            findings.history.us(slack),
        );
        findings.found(wait.sequence, wait.time.to, what);
    }
}

/// The most urgent client of its cluster pays for so many requests at most. Others are preempted by it, and pay for parts of
/// more.
fn count(
    findings: &mut Findings<'_>,
    plan: &Plan,
    charges: &[Paid],
    wait: &Span,
    services: &[Span],
) {
    let client = &plan.clients[wait.client.0];
    let Some(assumed) = client.assumed.filter(|_| client.is_first) else {
        return;
    };
    let most = requests(client.caller(plan).processors, assumed.clusters);
    let path = findings.longest_path();
    let first = services.partition_point(|service| service.time.to <= wait.time.from);
    let during = services[first..]
        .iter()
        .take_while(|service| service.time.from < wait.time.to);
    let paid = during.filter(|service| {
        let both = Stretch {
            from: service.time.from.max(wait.time.from),
            to: service.time.to.min(wait.time.to),
        };
        let paid = overlapping(charges, both).map(|paid| paid.time.to - paid.time.from);
        paid.sum::<u64>() > path
    });
    let paid = paid.count() as u64;
    if paid > most {
        let what = format!(
            "`{}` paid for {paid} requests while it waited for `{}`: {most} at most would be right",
            client.name, plan.resource
        );
        findings.found(wait.sequence, wait.time.to, what);
    }
}
