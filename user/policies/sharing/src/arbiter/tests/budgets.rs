//! On whose budget a server runs.

use std::vec::Vec;

use proptest::prelude::*;
use sandglass_description::policy::sharing::Protocol;

use super::{arbiter, entry, Client, Server};
use crate::arbiter::{Action, Actions, Arbiter, Then};

/// What a proxy does, as far as budgets go: a context without budget is refused.
struct Contexts {
    /// Of each client.
    has_budget: Vec<bool>,
    /// Of each server: whose context it has.
    on: Vec<Option<usize>>,
}

impl Contexts {
    fn perform(&mut self, arbiter: &mut Arbiter, actions: Actions) {
        for action in actions {
            if let Action::Help { client, server } = action {
                if self.has_budget[client] {
                    self.on[server] = Some(client);
                    arbiter.helped(server, client);
                }
                continue;
            }
            let Action::Lend {
                client,
                server,
                even_if_empty,
                ..
            } = action
            else {
                continue;
            };
            for place in &mut self.on {
                if *place == Some(client) {
                    *place = None;
                }
            }
            self.on[server] = Some(client);
            if !even_if_empty && !self.has_budget[client] {
                self.on[server] = None;
                let next = arbiter.refused(server);
                self.perform(arbiter, next);
            }
        }
    }
}

#[test]
fn under_inheritance_a_server_runs_on_its_own_clients_budget() {
    let entries = [entry(Client(0), 0), entry(Client(1), 0)];
    let mut arbiter = arbiter(Protocol::Inheritance, &[1, 2], 1, &entries);
    let mut contexts = Contexts {
        has_budget: vec![true, true],
        on: vec![None],
    };
    for entry in 0..2 {
        let actions = arbiter.request(entry).unwrap();
        contexts.perform(&mut arbiter, actions);
        assert_eq!(contexts.on, [Some(0)]);
    }
}

#[test]
fn a_server_without_budget_goes_on_with_that_of_who_waits() {
    let entries: Vec<_> = (0..3).map(|client| entry(Client(client), 0)).collect();
    let mut arbiter = arbiter(Protocol::BandwidthInheritance, &[1, 2, 3], 1, &entries);
    let mut contexts = Contexts {
        has_budget: vec![true; 3],
        on: vec![None],
    };
    for entry in 0..3 {
        let actions = arbiter.request(entry).unwrap();
        contexts.perform(&mut arbiter, actions);
    }
    assert_eq!(contexts.on, [Some(0)]);
    contexts.has_budget[0] = false;
    for expected in [2, 1] {
        let actions = arbiter.timed_out(0);
        let continues = |action: &Action| {
            matches!(
                action,
                Action::Lend {
                    then: Then::Continue,
                    ..
                }
            )
        };
        assert!(actions.iter().all(continues));
        contexts.perform(&mut arbiter, actions);
        assert_eq!(contexts.on, [Some(expected)]);
        contexts.has_budget[expected] = false;
    }
    // The next is the own client's, whose request this still is, at the highest's budget.
    let actions = arbiter.timed_out(0);
    contexts.perform(&mut arbiter, actions);
    assert_eq!(contexts.on, [Some(2)]);
    let done = arbiter.completed(0);
    assert_eq!(done.iter().next(), Some(&Action::Answer { entry: 0 }));
}

#[test]
fn a_server_that_waits_for_budget_goes_on_with_whoever_comes() {
    let entries: Vec<_> = (0..2).map(|client| entry(Client(client), 0)).collect();
    let mut arbiter = arbiter(Protocol::BandwidthInheritance, &[2, 1], 1, &entries);
    let mut contexts = Contexts {
        has_budget: vec![true; 2],
        on: vec![None],
    };
    let actions = arbiter.request(0).unwrap();
    contexts.perform(&mut arbiter, actions);
    contexts.has_budget[0] = false;
    let actions = arbiter.timed_out(0);
    contexts.perform(&mut arbiter, actions);
    assert_eq!(contexts.on, [Some(0)]);
    let actions = arbiter.request(1).unwrap();
    contexts.perform(&mut arbiter, actions);
    assert_eq!(contexts.on, [Some(1)]);
}

/// A further thread of a client asks, whose context is empty: whoever comes later can still help.
#[test]
fn who_has_no_budget_himself_does_not_keep_others_from_helping() {
    let entries: Vec<_> = (0..3).map(|client| entry(Client(client), 0)).collect();
    let mut arbiter = arbiter(Protocol::BandwidthInheritance, &[2, 1, 3], 1, &entries);
    let mut contexts = Contexts {
        has_budget: vec![true, false, true],
        on: vec![None],
    };
    let actions = arbiter.request(0).unwrap();
    contexts.perform(&mut arbiter, actions);
    contexts.has_budget[0] = false;
    let actions = arbiter.timed_out(0);
    contexts.perform(&mut arbiter, actions);
    for (client, expected) in [(1, 0), (2, 2)] {
        let actions = arbiter.request(client).unwrap();
        contexts.perform(&mut arbiter, actions);
        assert_eq!(contexts.on, [Some(expected)]);
    }
}

proptest! {
    /// The server that the chain ends at runs on a budget that is there, if any of those who wait
    /// for it has one; and on nobody's who does not wait for it.
    #[test]
    fn a_server_has_budget_if_any_of_its_waiting_clients_has(
        budgets in prop::collection::vec(any::<bool>(), 5),
        arrivals in Just([0usize, 1, 2, 3, 4]).prop_shuffle(),
        nested in any::<bool>(),
    ) {
        // Clients 0 to 2 want r0, 3 and 4 want r1, which the server of r0 also asks for.
        let mut entries: Vec<_> =
            (0..5).map(|client| entry(Client(client), client / 3)).collect();
        entries.push(entry(Server(0), 1));
        let mut arbiter =
            arbiter(Protocol::BandwidthInheritance, &[1, 2, 3, 4, 5], 2, &entries);
        let mut contexts = Contexts { has_budget: vec![true; 5], on: vec![None; 2] };
        for &client in &arrivals {
            let actions = arbiter.request(client).unwrap();
            contexts.perform(&mut arbiter, actions);
        }
        if nested {
            let actions = arbiter.request(5).unwrap();
            contexts.perform(&mut arbiter, actions);
        }
        contexts.has_budget = budgets;
        let server = 1;
        let on = contexts.on[server].unwrap();
        if !contexts.has_budget[on] {
            let actions = arbiter.timed_out(server);
            contexts.perform(&mut arbiter, actions);
        }
        let waits: Vec<usize> = (0..5).filter(|&client| client >= 3 || nested).collect();
        let payer = contexts.on[server].unwrap();
        prop_assert!(waits.contains(&payer));
        let any_budget = waits.iter().any(|&client| contexts.has_budget[client]);
        prop_assert_eq!(contexts.has_budget[payer], any_budget);
    }
}
