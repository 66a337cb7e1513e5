//! Servers that call servers: whoever waits at the first gate lends time to the second one's server.

use sandglass_gates::{ClientId, ClientThread, Gates, History, Mark, Parameters, Spec, Which, US};
use sandglass_mc_ipc::bound;

const MS: u64 = 1_000 * US;
const CORES: usize = 4;
const CALLS: usize = 2;
/// Ticks of an operation of either server, without what it calls.
const OUTER: u64 = 150 * US;
const INNER: u64 = 100 * US;

async fn flood(client: ClientThread, mut random: fastrand::Rng) {
    loop {
        client.compute(random.u64(0..=50) * US).await;
        let (label, words) = client.request(&[3, 4]).await;
        assert_eq!((label, words), (0, vec![2, 7]));
    }
}

/// On each core an urgent and a relaxed client of the outer server, and two of the inner one, one above and one below the
/// relaxed one, which exhaust their budgets again and again. All of them flood.
fn run(seed: u64) -> (Vec<(ClientId, bool)>, Vec<History>, Parameters) {
    let mut random = fastrand::Rng::with_seed(seed);
    let parameters = Parameters {
        cores: CORES,
        operation: OUTER..=OUTER,
        gate_core: random.usize(0..CORES),
        seed,
        ..Parameters::default()
    };
    let mut gates = Gates::new(&parameters);
    gates.add_inner(INNER..=INNER, CALLS);
    let mut clients = Vec::new();
    for core in 0..CORES {
        for (priority, budget) in [(120, 8_000), (60, 8_000)] {
            let spec = Spec::sporadic(core, priority, budget, 30_000);
            let random = random.fork();
            let client = gates.client(spec, |client| flood(client, random));
            clients.push((client, priority == 120));
        }
        for priority in [80, 40] {
            let budget = random.u64(500..3_000);
            let spec = Spec::sporadic(core, priority, budget, 30_000);
            let random = random.fork();
            gates.client_of(Which::Inner, spec, |client| flood(client, random));
        }
    }
    (clients, gates.run_all_until(400 * MS), parameters)
}

#[test]
fn a_request_waits_for_the_inner_server_no_longer_than_its_gate_has_clusters() {
    for seed in 1..=4 {
        let (clients, histories, parameters) = run(seed);
        let episode = 2 * parameters.timing.poll + 30 * US;
        // The inner gate has the cores and the outer server, which is a cluster of its own, for clusters.
        let own = OUTER + episode + CALLS as u64 * episode;
        let inner = INNER + episode;
        let outer = bound::longest_with_calls(own, CALLS as u64, inner, CORES as u64 + 1);
        let history = &histories[0];
        for &(client, is_urgent) in &clients {
            let requests = history.requests.iter();
            let mine: Vec<_> = requests
                .filter(|request| request.client == client)
                .collect();
            assert!(
                !mine.is_empty() || !is_urgent,
                "{client:?} was never served"
            );
            for request in mine {
                let paid = history.paid(client, request.called, request.answered);
                let requests = 2 + 2 * CORES as u64 - u64::from(is_urgent);
                let bound = requests * outer + paid.stretches.saturating_sub(1) * 2 * episode;
                assert!(
                    paid.ticks <= bound,
                    "{client:?} paid {paid:?} for {request:?}, at most {bound}"
                );
            }
        }
        assert!(
            histories[1].requests.len() > 100,
            "the inner server has clients of its own"
        );
    }
}

#[test]
fn who_waits_at_the_first_gate_pays_for_what_is_before_it_at_the_second_one() {
    let parameters = Parameters {
        cores: 2,
        operation: OUTER..=OUTER,
        gate_core: 1,
        ..Parameters::default()
    };
    let mut gates = Gates::new(&parameters);
    gates.add_inner(INNER..=INNER, 1);
    // It has budget for a small part of its request, and none for a second after that.
    let poor = Spec::sporadic(1, 50, 30, 1_000_000);
    gates.client_of(Which::Inner, poor, |client| async move {
        client.request(&[1]).await;
    });
    let rich = Spec::sporadic(0, 50, 20_000, 30_000);
    let client = gates.client(rich, |client| async move {
        client.compute(MS).await;
        client.request(&[2]).await;
    });
    let histories = gates.run_all_until(20 * MS);
    let [request] = &histories[0].requests[..] else {
        panic!("one request is served: {:?}", histories[0].requests);
    };
    let paid = histories[0].paid(client, request.called, request.answered);
    let episode = 2 * parameters.timing.poll + 30 * US;
    assert!(paid.ticks <= OUTER + 2 * INNER + 3 * episode, "{paid:?}");
    // Its client can be told once it has time again.
    assert!(histories[1]
        .events
        .iter()
        .any(|event| event.mark == Mark::Finish(ClientId(0))));
}
