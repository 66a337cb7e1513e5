//! Servers that call each other in a circle.

use std::collections::{HashMap, HashSet};

use super::super::super::findings::Finding;
use super::super::super::warning::Warning;
use super::super::calls::{Call, Waits};
use super::super::order::ordered;
use super::super::{text, Checker};

/// Circles that are reported.
const MOST_CIRCLES: usize = 10;

impl Checker<'_> {
    /// Circles of calls; a component that calls itself is told elsewhere.
    pub(super) fn circles(&self) -> Vec<Finding> {
        let calls = self.calls().into_iter();
        let mut calls: Vec<Call<'_>> = calls
            .filter(|call| call.client != call.server && call.described.rights.is_call())
            .collect();
        let mut findings = Vec::new();
        while findings.len() < MOST_CIRCLES {
            let Some(circle) = circle(self.threads.len(), &calls) else {
                break;
            };
            findings.push(self.circle_of_calls(&circle, &calls));
            let members: HashSet<usize> = circle.into_iter().collect();
            calls
                .retain(|call| !(members.contains(&call.client) && members.contains(&call.server)));
        }
        findings
    }

    fn circle_of_calls(&self, circle: &[usize], calls: &[Call<'_>]) -> Finding {
        let name = |&index: &usize| text(&self.document.components[index].name);
        let path: Vec<String> = circle
            .iter()
            .chain(&circle[..1])
            .take(20)
            .map(|index| format!("`{}`", name(index)))
            .collect();
        let (first, second) = (circle[0], circle[1 % circle.len()]);
        let mut closing = calls
            .iter()
            .filter(|call| call.client == first && call.server == second);
        let closing = closing.next();
        let is_refused = closing.is_some_and(|call| call.waits == Some(Waits::Proxy));
        let place = closing.map_or(self.document.name.span(), |call| {
            call.described.component.span()
        });
        Finding::new(place, format!("servers call each other in a circle: {}", path.join(" calls ")))
            .warning(Warning::Cycle)
            .about(name(&first))
            .label(match is_refused {
                true => "the proxy refuses the request that closes the circle: the caller gets `DEADLOCK`",
                false => "if each of them waits for the next one, none is ever answered",
            })
            .help("let calls go in one direction only, from clients to servers; a notification tells the other way")
    }
}

/// Components that call each other in a circle.
fn circle(count: usize, calls: &[Call<'_>]) -> Option<Vec<usize>> {
    let pairs: Vec<(usize, usize)> = calls
        .iter()
        .map(|call| (call.server, call.client))
        .collect();
    let free: HashSet<usize> = ordered(count, &pairs).into_iter().collect();
    let start = (0..count).find(|index| !free.contains(index))?;
    let mut next: HashMap<usize, usize> = HashMap::new();
    for call in calls.iter().filter(|call| !free.contains(&call.server)) {
        next.entry(call.client).or_insert(call.server);
    }
    let mut path = vec![start];
    let mut places = HashMap::from([(start, 0)]);
    loop {
        let following = *next.get(&path[path.len() - 1])?;
        if let Some(&begin) = places.get(&following) {
            return Some(path.split_off(begin));
        }
        places.insert(following, path.len());
        path.push(following);
    }
}
