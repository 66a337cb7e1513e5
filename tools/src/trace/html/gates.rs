//! Rows of gates: who is served and who pays; and of their clients: what they wait for.

use std::collections::BTreeMap;

use super::super::gates::Stage;
use super::super::history::History;
use super::super::record::Object;
use super::super::timeline::Timeline;
use super::data::{lasting, Data, Row};

const WAITS: u8 = 0;
const WITHOUT_BUDGET: u8 = 1;
const SERVED: u8 = 2;

/// What is known of a row.
#[derive(Default)]
struct Lane {
    row: Row,
    requests: u64,
    /// Of the longest request, and of the one that is in the gate, ticks.
    longest: u64,
    since: u64,
    until: u64,
}

impl Lane {
    /// The client's request is in the gate in this stage.
    fn is_present(&mut self, stage: &Stage, begins: bool) {
        // Another one, if there was a time without.
        if begins || self.until != stage.from || self.requests == 0 {
            self.requests += 1;
            self.since = stage.from;
        }
        self.until = stage.to;
        self.longest = self.longest.max(stage.to - self.since);
    }
}

/// A row for each gate, and behind it one for each of its clients.
pub fn add(data: &mut Data, history: &History, timeline: &Timeline) {
    let us = |time: u64| history.ns(time) as f64 / 1000.0;
    // A gate's own row is that of nobody.
    let mut lanes: BTreeMap<(Object, Object), Lane> = BTreeMap::new();
    let mut before: BTreeMap<Object, Object> = BTreeMap::new();
    for stage in &timeline.stages {
        let mut index = |object: Object| (object != 0).then(|| data.payer(history.name(object)));
        let (served, payer) = (index(stage.served), index(stage.payer));
        let mut push = |client: Object, what: u8, begins: bool| {
            let lane = lanes.entry((stage.gate, client)).or_default();
            let times = (us(stage.from), us(stage.to));
            lane.row
                .stages
                .push((times.0, times.1, what, served, payer));
            lane.is_present(stage, begins);
        };
        let last = before.insert(stage.gate, stage.served).unwrap_or(0);
        if stage.served != 0 {
            push(0, SERVED, stage.served != last);
            push(stage.served, SERVED, false);
        }
        for waiting in &stage.waiting {
            let what = if waiting.has_budget {
                WAITS
            } else {
                WITHOUT_BUDGET
            };
            // It was served just before: this is the next one.
            push(waiting.client, what, waiting.client == last);
        }
    }
    for ((gate, client), lane) in lanes {
        let gate = history.name(gate);
        let longest = lasting(history.us(lane.longest));
        let (name, what) = match client {
            0 => (format!("{gate} serves"), "operation"),
            _ => (format!("{} at {gate}", history.name(client)), "request"),
        };
        let plural = if lane.requests == 1 { "" } else { "s" };
        data.rows.push(Row {
            name,
            about: [
                format!("{} {what}{plural}", lane.requests),
                format!("longest {longest}"),
            ],
            ..lane.row
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::check::gates::Protocol;
    use super::super::super::example::gates::history;
    use super::*;

    #[test]
    fn gates_have_rows_with_requests_by_what_they_wait_for() {
        let history = history(1, Protocol::McIpc);
        let data = Data::of(&history, &Timeline::of(&history));
        let row = |name: &str| data.rows.iter().find(|row| row.name == name).unwrap();
        let gate = row("keys/gate serves");
        assert_eq!(gate.about[0], "10 operations");
        assert_eq!(row("first at keys/gate").about[0], "4 requests");
        assert_eq!(row("third at keys/gate").about[0], "3 requests");
        let kinds = |row: &Row, what: u8| row.stages.iter().filter(|stage| stage.2 == what).count();
        let first = row("first at keys/gate");
        assert!(kinds(first, WAITS) > 0 && kinds(first, WITHOUT_BUDGET) > 0);
        let third = row("third at keys/gate");
        // Somebody else paid for a part of it.
        let own = data.payers.iter().position(|name| name == "third");
        let others = third
            .stages
            .iter()
            .filter(|stage| stage.2 == SERVED && stage.4 != own);
        assert!(others.count() > 0);
    }
}
