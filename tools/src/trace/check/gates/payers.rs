//! The server has the context of whoever is said to pay, and no other.

use std::collections::BTreeMap;

use sandglass_mc_ipc::ClientId;

use super::{Findings, Plan, Told};
use crate::trace::record::Object;
use crate::trace::timeline::{Execution, Timeline};

pub fn check(
    findings: &mut Findings<'_>,
    plan: &Plan,
    timeline: &Timeline,
    contexts: &BTreeMap<Object, ClientId>,
    told: &Told,
) {
    let Some(&(first, _)) = told.payers.first() else {
        return;
    };
    let runs = timeline.executions.iter();
    for run in runs.filter(|run| run.to > first) {
        if findings.name(run.thread) == plan.server {
            let owner = contexts.get(&run.context).copied();
            one(findings, plan, told, run, owner);
        }
    }
}

/// One execution of the server, on the context of this client, or of nobody who is one.
fn one(
    findings: &mut Findings<'_>,
    plan: &Plan,
    told: &Told,
    run: &Execution,
    owner: Option<ClientId>,
) {
    // That somebody pays is marked before it does; that it does not any more, before it stops.
    let late = findings.longest_path();
    let next = told.payers.partition_point(|&(from, _)| from <= run.from);
    let begun = next.saturating_sub(1);
    let ends = |index: usize| told.payers.get(index + 1).map_or(u64::MAX, |&(to, _)| to);
    for index in begun..told.payers.len() {
        let (from, payer) = told.payers[index];
        if from >= run.to {
            break;
        }
        let (from, to) = (from.max(run.from), ends(index).min(run.to));
        if payer == owner && owner.is_some() {
            continue;
        }
        // It has paid just before, perhaps.
        let before = index.checked_sub(1).map(|before| told.payers[before].1);
        let paid = owner.is_some() && before == Some(owner);
        let since = told.payers[index].0;
        let still = findings.standstill.within(run.core, since, to);
        if paid && to <= since + late + still {
            continue;
        }
        let name = |client: ClientId| format!("`{}`", plan.clients[client.0].name);
        let what = format!(
            "the server `{}` runs on the time of `{}`, and {} pays",
            plan.server,
            findings.name(run.context),
            payer.map_or("nobody".to_owned(), name)
        );
        return findings.found_in(run, from, what);
    }
}
