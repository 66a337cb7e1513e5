//! Requests at gates of servers with clients on several cores, as the gates' marks tell: what to draw. Whether they are true is
//! [`check`](super::check)'s matter.

use std::collections::BTreeMap;

use sandglass_mc_ipc::marks::{self, Mark as Did};
use sandglass_mc_ipc::{ClientId, Standing};

use super::history::History;
use super::record::{Event, Mark, Object};

/// A stretch of time in which nothing changed at a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// The gate's thread.
    pub gate: Object,
    /// Ticks.
    pub from: u64,
    pub to: u64,
    /// Whose request is in service, by its context; 0: nobody's.
    pub served: Object,
    /// Whose context the server has; 0: nobody's.
    pub payer: Object,
    /// Requests that wait, by their clients' contexts, in the order in which they came.
    pub waiting: Vec<Waiting>,
}

/// A request that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    pub client: Object,
    /// It has its place among those with budget.
    pub has_budget: bool,
}

/// What a gate has said until now.
#[derive(Default)]
struct State {
    since: u64,
    served: Object,
    payer: Object,
    waiting: Vec<Waiting>,
    /// The last context of each client, by its number.
    contexts: BTreeMap<ClientId, Object>,
}

impl State {
    /// The context of the client whom a mark is about: the last one, if that is gone and the mark's subject is the gate.
    fn context(&mut self, gate: Object, subject: Object, words: [u64; 2]) -> Object {
        let Some(client) = marks::named(words) else {
            return subject;
        };
        if subject == gate {
            self.contexts.get(&client).copied().unwrap_or(subject)
        } else {
            self.contexts.insert(client, subject);
            subject
        }
    }

    fn is_idle(&self) -> bool {
        self.served == 0 && self.waiting.is_empty()
    }

    /// Everything until `to` is told.
    fn tell(&mut self, gate: Object, to: u64, stages: &mut Vec<Stage>) {
        if to > self.since && !self.is_idle() {
            stages.push(Stage {
                gate,
                from: self.since,
                to,
                served: self.served,
                payer: self.payer,
                waiting: self.waiting.clone(),
            });
        }
        self.since = to;
    }

    fn budget(&mut self, client: Object, has_budget: bool) {
        let waiting = self.waiting.iter_mut();
        for other in waiting.filter(|other| other.client == client) {
            other.has_budget = has_budget;
        }
    }

    fn follow(&mut self, client: Object, did: Did) {
        match did {
            Did::Request(_, standing) => self.waiting.push(Waiting {
                client,
                has_budget: matches!(standing, Standing::RealTime(_)),
            }),
            Did::Serve(_) => {
                self.waiting.retain(|other| other.client != client);
                self.served = client;
            }
            Did::Finish(_) => self.served = 0,
            Did::Exhaust(_) => self.budget(client, false),
            Did::Replenish(..) => self.budget(client, true),
            Did::Withdraw(_) => self.waiting.retain(|other| other.client != client),
            Did::Move(..) => {}
            Did::Pay(payer) => self.payer = payer.map_or(0, |_| client),
        }
    }
}

/// All stages in which somebody waited or was served, in the order of their ends.
pub fn of(history: &History) -> Vec<Stage> {
    let mut running: BTreeMap<u8, Object> = BTreeMap::new();
    let mut gates: BTreeMap<Object, State> = BTreeMap::new();
    let mut stages = Vec::new();
    for record in &history.records {
        match record.event {
            Event::Switch { thread, .. } => {
                running.insert(record.core, thread);
            }
            Event::Mark {
                subject,
                mark:
                    Mark::Gate {
                        what,
                        first,
                        second,
                    },
            } => {
                // Whose it is, the subject says.
                let Some(did) = Did::decode(ClientId(0), what, [first, second]) else {
                    continue;
                };
                let gate = running.get(&record.by).copied().unwrap_or(0);
                let state = gates.entry(gate).or_default();
                state.tell(gate, record.time, &mut stages);
                let client = state.context(gate, subject, [first, second]);
                state.follow(client, did);
            }
            _ => {}
        }
    }
    for (gate, state) in &mut gates {
        state.tell(*gate, history.end(), &mut stages);
    }
    stages
}

#[cfg(test)]
mod tests {
    use super::super::check::gates::Protocol;
    use super::super::example::gates::{context, history};
    use super::*;

    /// The first requests of the example on one core: the third client's is in service when the others come.
    #[test]
    fn stages_say_who_is_served_who_pays_and_who_waits() {
        let stages = of(&history(1, Protocol::McIpc));
        let [first, second, third] = [0, 1, 2].map(context);
        let seen: Vec<_> = stages
            .iter()
            .map(|stage| {
                let waiting = stage.waiting.iter().map(|waiting| waiting.client);
                (stage.served, stage.payer, waiting.collect::<Vec<_>>())
            })
            .collect();
        let is_next_to = |stage: &(Object, Object, Vec<Object>)| seen.contains(stage);
        assert!(is_next_to(&(third, third, vec![])));
        // Whoever comes with more urgency pays for who is before it.
        assert!(is_next_to(&(third, second, vec![second])));
        assert!(is_next_to(&(third, first, vec![second, first])));
        assert!(is_next_to(&(first, first, vec![second])));
    }

    /// One loses its budget while it waits, and has it again.
    #[test]
    fn who_waits_without_budget_is_told() {
        let stages = of(&history(2, Protocol::McIpc));
        let without = stages.iter().filter(|stage| {
            let mut waiting = stage.waiting.iter();
            waiting.any(|waiting| !waiting.has_budget)
        });
        assert!(without.count() > 0);
    }
}
