//! The case study, with short phases.

use sandglass_gates::key_server::{run, Study, PHASES};
use sandglass_gates::{Paid, Protocol};

/// The longest delay of each phase.
fn longest(study: &Study) -> [u64; PHASES] {
    let (delays, _) = run(study);
    let mut longest = [0; PHASES];
    for delay in delays {
        let phase = &mut longest[delay.phase - 1];
        *phase = delay.ticks.max(*phase);
    }
    longest
}

fn short(protocol: Protocol, paid: Paid, cores: usize) -> Study {
    Study {
        phase: 2_000,
        ..Study::new(protocol, paid, cores, 1)
    }
}

#[test]
fn no_failure_delays_the_observed_client_beyond_the_bound() {
    for cores in [1, 2, 4] {
        let study = short(Protocol::McIpc, Paid::ByClients, cores);
        let longest = longest(&study);
        assert!(
            longest.iter().all(|&delay| delay <= study.bound()),
            "on {cores} cores {longest:?}, at most {}",
            study.bound()
        );
    }
}

#[test]
fn other_orders_have_bounds_only_as_long_as_nobody_fails() {
    let exceeded = |study: Study| -> Vec<usize> {
        let longest = longest(&study);
        let phases = (1..).zip(longest);
        let exceeded = phases.filter(|&(_, delay)| delay > study.bound());
        exceeded.map(|(phase, _)| phase).collect()
    };
    assert_eq!(exceeded(short(Protocol::Fifo, Paid::ByServer, 4)), [3, 8]);
    // In phase 4 a client floods that is more urgent: it may have one request more before T1's than the bound knows.
    let prio = exceeded(short(Protocol::Prio, Paid::ByServer, 4));
    let others: Vec<_> = prio.into_iter().filter(|&phase| phase != 4).collect();
    assert_eq!(others, [5, 6, 7]);
}
