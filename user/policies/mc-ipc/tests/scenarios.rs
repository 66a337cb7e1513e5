//! Single histories of a gate.

use sandglass_mc_ipc::{
    bound, ClientId, Exhausted, Fifo, McIpc, Present, Prio, Protocol, Standing,
};

const URGENT: ClientId = ClientId(0);
const PASSED: ClientId = ClientId(1);
const SLOW: ClientId = ClientId(2);
const FIRST: ClientId = ClientId(3);

fn invoke(gate: &mut impl Protocol, client: ClientId) {
    let entered = gate.invoke(client, Standing::RealTime(client.0 as u64));
    assert_eq!(entered, Ok(()));
}

/// On one core, a client pays for four requests where the paper says three: nearly all of `FIRST`'s, which has lost its
/// budget, of `SLOW`'s, which came before it, and of `URGENT`'s, which passes it at the last moment and loses its budget in
/// service; and its own.
#[test]
fn who_is_passed_by_a_client_that_then_loses_its_budget_pays_for_one_request_more() {
    let mut gate = McIpc::new(&[1], &[0; 4]);
    let mut paid = 0;
    invoke(&mut gate, FIRST);
    assert_eq!(gate.next(), Some(FIRST));
    assert_eq!(gate.exhaust(FIRST), Exhausted::InService);
    invoke(&mut gate, SLOW);
    invoke(&mut gate, PASSED);
    // Nobody more urgent has budget: the rest of the request is on `PASSED`.
    paid += 1;
    assert_eq!(gate.finish(), Some(FIRST));
    assert_eq!(gate.next(), Some(SLOW));
    paid += 1;
    invoke(&mut gate, URGENT);
    assert_eq!(gate.finish(), Some(SLOW));
    assert_eq!(gate.next(), Some(URGENT));
    assert_eq!(gate.exhaust(URGENT), Exhausted::InService);
    paid += 1;
    assert_eq!(gate.finish(), Some(URGENT));
    assert_eq!(gate.next(), Some(PASSED));
    paid += 1;
    assert_eq!(gate.finish(), Some(PASSED));
    assert_eq!(bound::requests(1, 1), 3);
    assert_eq!(paid, bound::requests_behind(1, 1));
}

/// Who has lost its budget is served when nobody with budget waits; or in its turn, when it has budget again.
#[test]
fn a_request_without_budget_waits_in_the_background_until_it_has_some() {
    let mut gate = McIpc::new(&[1, 1], &[0, 0, 1, 1]);
    invoke(&mut gate, FIRST);
    assert_eq!(gate.next(), Some(FIRST));
    invoke(&mut gate, PASSED);
    assert_eq!(gate.exhaust(PASSED), Exhausted::Demoted);
    invoke(&mut gate, SLOW);
    assert_eq!(gate.finish(), Some(FIRST));
    assert_eq!(gate.next(), Some(SLOW));
    assert!(gate.replenish(PASSED, 1));
    assert!(!gate.replenish(PASSED, 1), "it has its place already");
    invoke(&mut gate, FIRST);
    assert_eq!(gate.finish(), Some(SLOW));
    assert_eq!(gate.next(), Some(PASSED));
}

#[test]
fn who_is_gone_is_not_served() {
    let mut gates: [&mut dyn Protocol; 3] = [
        &mut McIpc::new(&[1, 1], &[0, 0, 1, 1]),
        &mut Fifo::new(4),
        &mut Prio::new(4),
    ];
    for gate in &mut gates {
        for client in [URGENT, PASSED] {
            let entered = gate.invoke(client, Standing::RealTime(client.0 as u64));
            assert_eq!(entered, Ok(()));
        }
        let again = gate.invoke(PASSED, Standing::BestEffort);
        assert_eq!(again, Err(Present), "one request at a time");
        assert_eq!(gate.next(), Some(URGENT));
        assert!(gate.withdraw(URGENT), "it is in service");
        assert!(!gate.withdraw(PASSED));
        assert_eq!(gate.finish(), Some(URGENT));
        assert_eq!(gate.next(), None);
        assert_eq!(gate.finish(), None);
    }
}

/// First in, first out; and by priority, with those who have no reservation last.
#[test]
fn the_gates_beside_it_have_one_order_each() {
    let arrivals = [
        (SLOW, Standing::RealTime(9)),
        (FIRST, Standing::BestEffort),
        (URGENT, Standing::RealTime(1)),
        (PASSED, Standing::RealTime(2)),
    ];
    let order = |gate: &mut dyn Protocol| {
        for (client, standing) in arrivals {
            assert_eq!(gate.invoke(client, standing), Ok(()));
        }
        std::iter::from_fn(|| {
            gate.finish();
            gate.next()
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(order(&mut Fifo::new(4)), [SLOW, FIRST, URGENT, PASSED]);
    assert_eq!(order(&mut Prio::new(4)), [URGENT, PASSED, SLOW, FIRST]);
}

/// A client that changes its cluster, at any time, is there as if it had come anew. Nobody is forgotten; and of each cluster
/// one request at most is at the global level, the one in service counted where it came from.
#[test]
fn who_changes_its_cluster_stands_where_it_would_if_it_came_anew() {
    const CLUSTERS: [usize; 3] = [1, 2, 1];
    const CLIENTS: usize = 9;
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..2_000 {
        let mut homes: Vec<_> = (0..CLIENTS).map(|_| random.usize(0..3)).collect();
        let mut gate = McIpc::new(&CLUSTERS, &homes);
        let (mut present, mut turn) = ([false; CLIENTS], None);
        for _ in 0..60 {
            let client = ClientId(random.usize(0..CLIENTS));
            let urgency = client.0 as u64;
            match random.u8(0..7) {
                0 | 1 => {
                    let entered = gate.invoke(client, Standing::RealTime(urgency));
                    assert_eq!(entered.is_ok(), !present[client.0]);
                    present[client.0] = true;
                }
                2 => turn = gate.next().map(|served| homes[served.0]).or(turn),
                3 => {
                    if let Some(served) = gate.finish() {
                        present[served.0] = false;
                    }
                }
                4 => {
                    let _ = gate.exhaust(client);
                }
                5 => {
                    let _ = gate.replenish(client, urgency);
                }
                _ => {
                    homes[client.0] = random.usize(0..3);
                    gate.relocate(client, homes[client.0], urgency);
                    // There is no such cluster.
                    gate.relocate(client, 3, urgency);
                }
            }
            let view = gate.view();
            for (cluster, size) in CLUSTERS.into_iter().enumerate() {
                let waiting = view
                    .global
                    .iter()
                    .filter(|client| homes[client.0] == cluster);
                let serving = view.served.and(turn).filter(|turn| *turn == cluster);
                let count = waiting.count() + usize::from(serving.is_some());
                assert!(count <= 1, "cluster {cluster}: {view:?}");
                let heads = view.clusters[cluster].head.iter();
                assert!(
                    heads.clone().all(|client| homes[client.0] == cluster),
                    "{view:?}"
                );
                assert!(view.clusters[cluster].head.len() < size, "{view:?}");
            }
        }
        let _ = gate.finish().map(|served| present[served.0] = false);
        while let Some(served) = gate.next() {
            assert_eq!(gate.finish(), Some(served));
            present[served.0] = false;
        }
        assert_eq!(present, [false; CLIENTS], "everybody is served");
    }
}
