//! A mode of higher criticality: clients of low criticality count as ones without a reservation, and lose no request
//! (paper, section VII).

use std::cell::Cell;
use std::rc::Rc;

use sandglass_gates::{ClientId, ClientThread, Control, Gates, Mark, Parameters, Spec, Timing, US};

const MS: u64 = 1_000 * US;
const CORES: usize = 4;
/// When the mode begins and ends.
const HIGH_MODE: std::ops::Range<u64> = 100 * MS..200 * MS;

async fn requests(client: ClientThread, made: Rc<Cell<usize>>) {
    loop {
        client.compute(20 * US).await;
        made.set(made.get() + 1);
        let answer = client.request(&[made.get() as u64]).await;
        assert_eq!(answer, (0, vec![1, made.get() as u64]));
    }
}

#[test]
fn who_is_demoted_is_served_when_nobody_else_waits_and_loses_nothing() {
    let parameters = Parameters {
        cores: CORES,
        operation: 200 * US..=200 * US,
        timing: Timing {
            poll: 20_000,
            toll: 20,
        },
        ..Parameters::default()
    };
    let mut gates = Gates::new(&parameters);
    let counts: Vec<_> = (0..2 * CORES).map(|_| Rc::new(Cell::new(0))).collect();
    let mut low = Vec::new();
    for core in 0..CORES {
        // The low one is the more urgent one.
        for (number, priority) in [(2 * core, 100), (2 * core + 1, 110)] {
            let made = Rc::clone(&counts[number]);
            let spec = Spec::sporadic(core, priority, 14_000, 30_000);
            let client = gates.client(spec, |client| requests(client, made));
            if priority == 110 {
                low.push(client);
            }
        }
    }
    let is_low = move |client: ClientId| client.0 % 2 == 1;
    gates.director(0, 100_000, |director| async move {
        director.next_period().await;
        for &client in &low {
            director.control(Control::Demote, client).await;
        }
        director.next_period().await;
        for &client in &low {
            director.control(Control::Promote, client).await;
        }
        loop {
            director.next_period().await;
        }
    });
    let history = gates.run_until(300 * MS);
    for (number, made) in counts.iter().enumerate() {
        let requests = history.requests.iter();
        let served = requests
            .filter(|request| request.client == ClientId(number))
            .count();
        // The last one may be on its way.
        assert!(
            made.get() - served <= 1,
            "client {number}: {served} of {}",
            made.get()
        );
        assert!(served > 10, "client {number}: {served}");
    }
    // While the mode lasts, nobody of low criticality is served before one of high criticality that waits with budget.
    let mut waits = [false; 2 * CORES];
    let settled = HIGH_MODE.start + MS..HIGH_MODE.end;
    let mut served_low = 0;
    for event in &history.events {
        match event.mark {
            Mark::Request(client, _) | Mark::Replenish(client, _) => waits[client.0] = true,
            Mark::Exhaust(client) | Mark::Finish(client) => waits[client.0] = false,
            Mark::Serve(client) => {
                if settled.contains(&event.at) && is_low(client) {
                    served_low += 1;
                    let high = (0..CORES).find(|core| waits[2 * core]);
                    assert_eq!(high, None, "at {} {client:?} is served", event.at);
                }
                waits[client.0] = false;
            }
            Mark::Withdraw(_) | Mark::Move(..) | Mark::Pay(_) => {}
        }
    }
    assert!(
        served_low > 10,
        "there is time for those of low criticality: {served_low}"
    );
}
