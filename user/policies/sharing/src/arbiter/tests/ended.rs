//! Servers that end.

use super::*;

const PROTOCOLS: [Protocol; 3] = [
    Protocol::Inheritance,
    Protocol::OriginalCeiling,
    Protocol::BandwidthInheritance,
];

/// Whom a decision tells that a server has ended: clients, and servers that asked for them, by entry.
fn told(actions: &Actions) -> Vec<usize> {
    let told = actions.iter().filter_map(|action| match *action {
        Action::Gone { entry }
        | Action::Lend {
            then: Then::Gone { entry },
            ..
        } => Some(entry),
        _ => None,
    });
    told.collect()
}

#[test]
fn its_client_and_those_who_wait_are_told_and_so_is_who_asks_later() {
    for protocol in PROTOCOLS {
        let entries: Vec<_> = (0..3).map(|client| entry(Client(client), 0)).collect();
        let mut arbiter = arbiter(protocol, &[1, 2, 3], 1, &entries);
        assert_eq!(forwarded(&arbiter.request(0).unwrap()), [0]);
        let _ = arbiter.request(1).unwrap();
        assert_eq!(told(&arbiter.ended(0)), [0, 1]);
        assert!(arbiter.is_idle());
        assert_eq!(arbiter.request(2), Err(Refusal::Gone));
        // It is not there to be done, or to run out of time.
        assert_eq!(arbiter.completed(0), Actions::default());
        assert_eq!(arbiter.timed_out(0), Actions::default());
    }
}

/// Other resources go on: what the dead server's client kept waiting is granted.
#[test]
fn what_waited_for_the_ceiling_of_its_resource_is_granted() {
    let entries = [
        entry(Client(0), 0),
        entry(Client(2), 0),
        entry(Client(1), 1),
    ];
    let mut arbiter = arbiter(Protocol::OriginalCeiling, &[1, 2, 3], 2, &entries);
    assert_eq!(forwarded(&arbiter.request(0).unwrap()), [0]);
    assert_eq!(forwarded(&arbiter.request(2).unwrap()), []);
    let actions = arbiter.ended(0);
    assert_eq!((told(&actions), forwarded(&actions)), (vec![0], vec![2]));
}

/// A server asked for a resource whose server ends: it is told on its client's time, and continues.
#[test]
fn a_server_that_asked_for_it_goes_on() {
    for protocol in PROTOCOLS {
        let entries = [entry(Client(0), 0), entry(Server(0), 1)];
        let mut arbiter = arbiter(protocol, &[1], 2, &entries);
        assert_eq!(forwarded(&arbiter.request(0).unwrap()), [0]);
        assert_eq!(forwarded(&arbiter.request(1).unwrap()), [1]);
        assert_eq!(told(&arbiter.ended(1)), [1]);
        assert_eq!(arbiter.request(1), Err(Refusal::Gone));
        let answered = arbiter.completed(0);
        assert!(answered.into_iter().eq([Action::Answer { entry: 0 }]));
    }
}

/// What a dead server asked for is served to its end, on its client's time; only then is the client told.
#[test]
fn what_it_asked_for_ends_first() {
    for protocol in PROTOCOLS {
        let entries = [
            entry(Client(0), 0),
            entry(Server(0), 1),
            entry(Client(1), 0),
        ];
        let mut arbiter = arbiter(protocol, &[1, 2], 2, &entries);
        assert_eq!(forwarded(&arbiter.request(0).unwrap()), [0]);
        assert_eq!(forwarded(&arbiter.request(1).unwrap()), [1]);
        let _ = arbiter.request(2).unwrap();
        assert_eq!(told(&arbiter.ended(0)), []);
        // The server of the other resource can still run out of time, and go on.
        let _ = arbiter.timed_out(1);
        assert_eq!(told(&arbiter.completed(1)), [0, 2]);
        assert!(arbiter.is_idle());
    }
}

/// A request of it that no server has begun is dropped.
#[test]
fn what_it_waits_for_it_does_not_need() {
    let entries = [
        entry(Client(0), 0),
        entry(Server(0), 1),
        entry(Client(1), 1),
    ];
    let mut arbiter = arbiter(Protocol::Inheritance, &[1, 2], 2, &entries);
    assert_eq!(forwarded(&arbiter.request(0).unwrap()), [0]);
    assert_eq!(forwarded(&arbiter.request(2).unwrap()), [2]);
    assert_eq!(forwarded(&arbiter.request(1).unwrap()), []);
    assert_eq!(told(&arbiter.ended(0)), [0]);
    let answered = arbiter.completed(1);
    assert!(answered.into_iter().eq([Action::Answer { entry: 2 }]));
    assert!(arbiter.is_idle());
}

/// A server that waits for another ends, then that one: it cannot be told any more, so its own client is.
#[test]
fn servers_that_end_one_behind_the_other() {
    for protocol in PROTOCOLS {
        let entries = [entry(Client(0), 0), entry(Server(0), 1)];
        let mut arbiter = arbiter(protocol, &[1], 2, &entries);
        assert_eq!(forwarded(&arbiter.request(0).unwrap()), [0]);
        assert_eq!(forwarded(&arbiter.request(1).unwrap()), [1]);
        assert_eq!(told(&arbiter.ended(0)), []);
        assert_eq!(told(&arbiter.ended(1)), [0]);
        assert!(arbiter.is_idle());
    }
}
