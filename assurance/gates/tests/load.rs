//! What clients can have the gate's own thread do: it is above everybody on its core.

use sandglass_gates::{ClientThread, Gates, Parameters, Spec, US};

const MS: u64 = 1_000 * US;
const CORES: usize = 4;

/// How attackers keep the gate busy.
#[derive(Clone, Copy, Debug)]
enum Flood {
    /// With requests that take the server no time.
    Short,
    /// With messages that are no requests.
    Malformed,
    /// From a second thread, while the first one has a request in the gate: here, by messages that nobody waits for.
    Twice,
}

async fn flood(client: ClientThread, how: Flood) {
    loop {
        match how {
            Flood::Short => client.request(&[]).await,
            Flood::Malformed => client.request(&[1; 60]).await,
            Flood::Twice => {
                client.send(0, &[]).await;
                client.request(&[]).await
            }
        };
    }
}

/// The share of its core that is left to others than the gate's thread, when two clients on each other core flood it.
fn left(how: Flood, is_limited: bool) -> f64 {
    let parameters = Parameters {
        cores: CORES,
        operation: 0..=0,
        gate_core: 0,
        ..Parameters::default()
    };
    let mut gates = Gates::new(&parameters);
    for core in 1..CORES {
        for priority in [50, 60] {
            let spec = Spec::sporadic(core, priority, 10_000, 20_000);
            let spec = if is_limited {
                spec.allowed(1, 20_000)
            } else {
                spec
            };
            gates.client(spec, |client| flood(client, how));
        }
    }
    // Somebody on the gate's core who always has something to do.
    let busy = Spec::best_effort(0, 10);
    let worker = gates.client(busy, |client| async move {
        loop {
            client.compute(MS).await;
        }
    });
    let end = 60 * MS;
    let history = gates.run_until(end);
    history.paid(worker, 0, end).ticks as f64 / end as f64
}

#[test]
fn nobody_has_the_gate_work_for_less_than_a_toll_of_their_own_time() {
    // A request takes a toll of 20 pauses of 10 µs, and less than 20 µs of the gate's core: an event at its beginning, one at
    // its end, and one when the toll is paid.
    let at_most = (CORES - 1) as f64 * 20.0 / 200.0;
    for how in [Flood::Short, Flood::Malformed, Flood::Twice] {
        let left = left(how, true);
        assert!(left >= 1.0 - at_most, "{how:?}: {left} is left");
    }
    assert!(left(Flood::Short, false) < 0.5, "it takes many");
}
