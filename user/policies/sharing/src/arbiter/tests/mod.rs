//! The definitions of the textbook (Sha, Rajkumar and Lehoczky 1990; thesis 2.3), one by one; then
//! [`properties`]: random systems, run to their end in a [`simulation`].

mod budgets;
mod ended;
mod properties;
mod simulation;

use std::vec::Vec;

use sandglass_description::policy::sharing::{Entry, Protocol, Requester, Sharing};

use super::*;
use Requester::{Client, Server};

pub fn entry(requester: Requester, resource: u32) -> Entry {
    Entry {
        requester,
        resource,
    }
}

pub fn arbiter(protocol: Protocol, clients: &[u8], resources: u32, entries: &[Entry]) -> Arbiter {
    Arbiter::new(Sharing {
        protocol,
        clients: clients.to_vec(),
        resources,
        entries: entries.to_vec(),
    })
}

/// Priorities given, in order.
fn given(actions: &Actions) -> Vec<(usize, u8)> {
    let given = actions.iter().filter_map(|action| match *action {
        Action::Prioritise { server, priority } => Some((server, priority)),
        _ => None,
    });
    given.collect()
}

/// Entries whose requests are handed to their servers, in order.
fn forwarded(actions: &Actions) -> Vec<usize> {
    let forwarded = actions.iter().filter_map(|action| match *action {
        Action::Lend {
            then: Then::Forward { entry },
            ..
        } => Some(entry),
        _ => None,
    });
    forwarded.collect()
}

#[test]
fn a_free_resource_is_given_at_the_clients_priority() {
    let mut arbiter = arbiter(Protocol::Inheritance, &[10], 1, &[entry(Client(0), 0)]);
    let actions = arbiter.request(0).unwrap();
    let expected = [
        Action::Prioritise {
            server: 0,
            priority: 10,
        },
        Action::Lend {
            client: 0,
            server: 0,
            then: Then::Forward { entry: 0 },
            even_if_empty: true,
        },
    ];
    assert!(actions.into_iter().eq(expected));
    let answered = arbiter.completed(0);
    assert!(answered.into_iter().eq([Action::Answer { entry: 0 }]));
    assert!(arbiter.is_idle());
}

/// Thesis 2.3.2: with n tasks that arrive in the order of their priorities, the holder is raised n
/// times; the resource then goes to the highest.
#[test]
fn inheritance_raises_the_holder_with_each_arrival() {
    let entries: Vec<_> = (0..4).map(|client| entry(Client(client), 0)).collect();
    let mut arbiter = arbiter(Protocol::Inheritance, &[1, 2, 3, 4], 1, &entries);
    for client in 0..4 {
        let actions = arbiter.request(client).unwrap();
        assert_eq!(given(&actions), [(0, client as u8 + 1)]);
    }
    for (entry, priority) in [(3, vec![]), (2, vec![(0, 3)]), (1, vec![(0, 2)])] {
        let actions = arbiter.completed(0);
        assert_eq!(
            (forwarded(&actions), given(&actions)),
            (vec![entry], priority)
        );
    }
}

/// The lowest holds r0; its server waits for r1, which the middle one holds: the highest, waiting
/// for r0, raises both.
#[test]
fn inheritance_is_transitive() {
    let entries = [
        entry(Client(0), 0),
        entry(Server(0), 1),
        entry(Client(1), 1),
        entry(Client(2), 0),
    ];
    let mut arbiter = arbiter(Protocol::Inheritance, &[1, 2, 3], 2, &entries);
    assert_eq!(forwarded(&arbiter.request(0).unwrap()), [0]);
    assert_eq!(forwarded(&arbiter.request(2).unwrap()), [2]);
    let nested = arbiter.request(1).unwrap();
    // The middle one keeps its own priority, which is higher than that of the waiter.
    assert_eq!((forwarded(&nested), given(&nested)), (vec![], vec![]));
    let high = arbiter.request(3).unwrap();
    assert_eq!(given(&high), [(0, 3), (1, 3)]);
    // The middle one's is done; the nested request is next, for the lowest, at the highest's priority.
    let done = arbiter.completed(1);
    assert_eq!((forwarded(&done), given(&done)), (vec![1], vec![]));
    // Back in the first server, which gets the lowest's context again.
    let back = arbiter.completed(1);
    let expected = Action::Lend {
        client: 0,
        server: 0,
        then: Then::Answer { entry: 1 },
        even_if_empty: true,
    };
    assert!(back.into_iter().eq([expected]));
    assert_eq!(forwarded(&arbiter.completed(0)), [3]);
}

/// Two clients take two resources in opposite orders.
const CROSSED: [Entry; 4] = [
    Entry {
        requester: Client(0),
        resource: 0,
    },
    Entry {
        requester: Server(0),
        resource: 1,
    },
    Entry {
        requester: Client(1),
        resource: 1,
    },
    Entry {
        requester: Server(1),
        resource: 0,
    },
];

#[test]
fn under_inheritance_a_deadlock_is_an_error_for_whoever_would_close_it() {
    let mut arbiter = arbiter(Protocol::Inheritance, &[1, 2], 2, &CROSSED);
    assert_eq!(forwarded(&arbiter.request(0).unwrap()), [0]);
    assert_eq!(forwarded(&arbiter.request(2).unwrap()), [2]);
    assert_eq!(forwarded(&arbiter.request(3).unwrap()), []);
    assert_eq!(arbiter.request(1), Err(Refusal::Deadlock));
    // The refused server continues without it, and then the other is served.
    assert_eq!(forwarded(&arbiter.completed(0)), [3]);
}

#[test]
fn the_original_ceiling_prevents_that_deadlock() {
    let mut arbiter = arbiter(Protocol::OriginalCeiling, &[1, 2], 2, &CROSSED);
    assert_eq!(arbiter.ceilings(), [2, 2]);
    assert_eq!(forwarded(&arbiter.request(0).unwrap()), [0]);
    // The other resource is free, but the ceiling of what the first holds is not below 2.
    let blocked = arbiter.request(2).unwrap();
    assert_eq!(
        (forwarded(&blocked), given(&blocked)),
        (vec![], vec![(0, 2)])
    );
    // What the holder itself holds does not hinder it.
    assert_eq!(forwarded(&arbiter.request(1).unwrap()), [1]);
    assert_eq!(forwarded(&arbiter.completed(1)), []);
    assert_eq!(forwarded(&arbiter.completed(0)), [2]);
}

/// The client that was answered may ask again before a waiter below it would have run: it is not
/// blocked a second time.
#[test]
fn under_the_original_ceiling_who_waits_takes_nothing_before_it_would_run() {
    let entries: Vec<_> = (0..2).map(|client| entry(Client(client), 0)).collect();
    let mut arbiter = arbiter(Protocol::OriginalCeiling, &[1, 2], 1, &entries);
    assert_eq!(forwarded(&arbiter.request(1).unwrap()), [1]);
    assert_eq!(forwarded(&arbiter.request(0).unwrap()), []);
    for _ in 0..2 {
        let actions = arbiter.completed(0);
        let expected = [Action::Answer { entry: 1 }, Action::Remind { priority: 1 }];
        assert!(actions.into_iter().eq(expected));
        assert_eq!(forwarded(&arbiter.request(1).unwrap()), [1]);
    }
    let _ = arbiter.completed(0);
    assert_eq!(forwarded(&arbiter.reminded()), [0]);
}

#[test]
fn under_the_original_ceiling_a_priority_is_raised_only_when_somebody_waits() {
    let entries = [
        entry(Client(0), 0),
        entry(Client(2), 0),
        entry(Client(1), 1),
    ];
    let mut arbiter = arbiter(Protocol::OriginalCeiling, &[1, 2, 3], 2, &entries);
    assert_eq!(given(&arbiter.request(0).unwrap()), [(0, 1)]);
    // The middle one is blocked by a resource that it never uses, and so raises its holder.
    let blocked = arbiter.request(2).unwrap();
    assert_eq!(
        (forwarded(&blocked), given(&blocked)),
        (vec![], vec![(0, 2)])
    );
    assert_eq!(given(&arbiter.request(1).unwrap()), [(0, 3)]);
    assert_eq!(forwarded(&arbiter.completed(0)), [1]);
}

#[test]
fn the_original_ceiling_lets_the_higher_have_what_no_ceiling_protects() {
    let entries = [entry(Client(0), 0), entry(Client(1), 1)];
    let mut arbiter = arbiter(Protocol::OriginalCeiling, &[1, 2], 2, &entries);
    assert_eq!(forwarded(&arbiter.request(0).unwrap()), [0]);
    assert_eq!(forwarded(&arbiter.request(1).unwrap()), [1]);
}

#[test]
fn a_ceiling_counts_who_asks_through_others() {
    let entries = [
        entry(Server(1), 0),
        entry(Server(2), 1),
        entry(Client(0), 2),
    ];
    let arbiter = arbiter(Protocol::OriginalCeiling, &[7], 3, &entries);
    assert_eq!(arbiter.ceilings(), [7, 7, 7]);
}

#[test]
fn a_server_that_asks_for_what_it_holds_is_refused() {
    for protocol in [
        Protocol::Inheritance,
        Protocol::OriginalCeiling,
        Protocol::BandwidthInheritance,
    ] {
        let entries = [
            entry(Client(0), 0),
            entry(Server(0), 1),
            entry(Server(1), 0),
        ];
        let mut arbiter = arbiter(protocol, &[1], 2, &entries);
        assert_eq!(forwarded(&arbiter.request(0).unwrap()), [0]);
        assert_eq!(forwarded(&arbiter.request(1).unwrap()), [1]);
        assert_eq!(arbiter.request(2), Err(Refusal::Deadlock));
    }
}

#[test]
fn who_cannot_ask_is_told_and_nothing_changes() {
    let entries = [entry(Client(0), 0), entry(Server(0), 1)];
    let mut arbiter = arbiter(Protocol::Inheritance, &[1], 2, &entries);
    assert_eq!(arbiter.request(1), Err(Refusal::NoClient));
    assert!(arbiter.is_idle());
    assert_eq!(forwarded(&arbiter.request(0).unwrap()), [0]);
    assert_eq!(arbiter.request(0), Err(Refusal::Busy));
    assert_eq!(arbiter.completed(1), Actions::default());
}

#[test]
fn equal_priorities_are_served_in_the_order_of_arrival() {
    let entries: Vec<_> = (0..3).map(|client| entry(Client(client), 0)).collect();
    let mut arbiter = arbiter(Protocol::Inheritance, &[5, 5, 5], 1, &entries);
    assert_eq!(forwarded(&arbiter.request(1).unwrap()), [1]);
    assert_eq!(forwarded(&arbiter.request(2).unwrap()), []);
    assert_eq!(forwarded(&arbiter.request(0).unwrap()), []);
    assert_eq!(forwarded(&arbiter.completed(0)), [2]);
    assert_eq!(forwarded(&arbiter.completed(0)), [0]);
}

/// Otherwise the nested request would have no client, and the arbiter could not say on whose budget its server runs.
#[test]
fn a_server_that_waits_for_another_is_not_done() {
    let entries = [entry(Client(0), 0), entry(Server(0), 1)];
    let mut arbiter = arbiter(Protocol::Inheritance, &[1], 2, &entries);
    assert_eq!(forwarded(&arbiter.request(0).unwrap()), [0]);
    assert_eq!(forwarded(&arbiter.request(1).unwrap()), [1]);
    assert_eq!(arbiter.completed(0), Actions::default());
    assert_eq!(arbiter.timed_out(1).iter().count(), 1);
    let back = arbiter.completed(1);
    assert!(back.into_iter().any(|action| matches!(
        action,
        Action::Lend {
            server: 0,
            then: Then::Answer { entry: 1 },
            ..
        }
    )));
    let answered = arbiter.completed(0);
    assert!(answered.into_iter().eq([Action::Answer { entry: 0 }]));
}
