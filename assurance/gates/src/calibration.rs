//! What a request costs here, to be compared with the same on the bare kernel (`systems/experiments/mc-ipc`).

use sandglass_mc_ipc::ClientId;
use sandglass_parallel::Costs;
use serde::Serialize;

use crate::system::{Gates, Parameters, Spec};
use crate::US;

/// Requests that are not counted, and those that are.
const WARM_UP: usize = 4;
const SAMPLES: usize = 8;
const SLOW: ClientId = ClientId(1);

/// Mean ticks of requests for nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Calibration {
    /// With nobody else there.
    pub request: u64,
    /// Behind one that is in service, on the same core.
    pub behind_another: u64,
}

/// Runs on one core, without what the kernel for several cores does more. The other client's operation takes so many ticks.
pub fn run(long: u64) -> Calibration {
    let parameters = Parameters {
        as_asked: true,
        costs: Costs {
            lock: 0,
            ..Costs::default()
        },
        ..Parameters::default()
    };
    let mut gates = Gates::new(&parameters);
    gates.client(
        Spec::sporadic(0, 100, 100_000, 200_000),
        |client| async move {
            for _ in 0..WARM_UP + SAMPLES {
                client.request(&[0, 0]).await;
            }
            for _ in 0..WARM_UP + SAMPLES {
                client.start(SLOW).await;
                client.started().await;
                client.request(&[0, 0]).await;
            }
        },
    );
    gates.client(
        Spec::sporadic(0, 50, 100_000, 200_000),
        move |client| async move {
            loop {
                client.started().await;
                let first = client.start_of(ClientId(0));
                client.request(&[long, first]).await;
            }
        },
    );
    let history = gates.run_until(1_000_000 * US);
    let observed = history
        .requests
        .iter()
        .filter(|request| request.client != SLOW);
    let taken: Vec<u64> = observed
        .map(|request| request.answered - request.called)
        .collect();
    let mean = |from: usize| {
        let counted = &taken[from + WARM_UP..from + WARM_UP + SAMPLES];
        counted.iter().sum::<u64>() / SAMPLES as u64
    };
    Calibration {
        request: mean(0),
        behind_another: mean(WARM_UP + SAMPLES),
    }
}
