//! The kernel in lock step with its specification, over many seeds.

use std::thread;

use sandglass_assurance::campaign::{self, Plan};
use sandglass_assurance::pair::Traffic;
use sandglass_kernel::fast::inspect::Name;
use sandglass_kernel::CORES;

/// Events to compare after, at least: those on several cores are another run.
const EVENTS: u64 = if CORES > 1 { 60_000 } else { 150_000 };
/// Least number of seeds.
const SEEDS: u64 = if CORES > 1 { 70 } else { 160 };

#[test]
fn the_kernel_does_what_is_specified() {
    let plan = Plan {
        first_seed: 0,
        events: EVENTS,
        seeds: SEEDS,
        jobs: thread::available_parallelism().map_or(1, usize::from),
        cores: CORES,
        only_time: false,
    };
    let report = campaign::run(plan, |_| {});
    for found in &report.found {
        println!("seed {}: {}", found.seed, found.text);
    }
    println!(
        "{} seeds, {} events compared, {} swept, {} seeds left the specification",
        report.seeds, report.compared, report.swept, report.left
    );
    println!("{}", report.coverage);
    assert!(report.found.is_empty(), "{} findings", report.found.len());
    println!("{:?}", report.traffic);
    if CORES > 1 {
        let Traffic {
            looks,
            stalls,
            moves,
            lost,
        } = report.traffic;
        assert!(looks > 1_000 && stalls > 500 && moves > 500 && lost > 10);
    }
    assert!(report.compared >= EVENTS && report.seeds >= SEEDS);
    assert_eq!(report.coverage.missing(), Vec::<String>::new());
}

/// Events of clients and servers to compare after, at least.
const SERVED: u64 = if CORES > 1 { 18_000 } else { 30_000 };

#[test]
fn straight_lines_do_what_is_specified() {
    let report = campaign::run(
        Plan {
            first_seed: campaign::SERVING,
            events: SERVED,
            seeds: 16,
            jobs: thread::available_parallelism().map_or(1, usize::from),
            cores: CORES,
            only_time: false,
        },
        |_| {},
    );
    for found in &report.found {
        println!("seed {}: {}", found.seed, found.text);
    }
    println!("{}", report.lines);
    assert!(report.found.is_empty(), "{} findings", report.found.len());
    for (name, count) in report.lines.iter() {
        let least = match name {
            Name::Call | Name::ReplyRecv => 200,
            Name::Send | Name::Recv | Name::Wait | Name::Yield => 100,
            Name::NBSendRecv => 30,
            // On several cores, mostly nobody is there to be told.
            Name::AnswerFault | Name::Fault | Name::Interrupt | Name::Timeout if CORES > 1 => 1,
            Name::AnswerFault | Name::Fault | Name::Interrupt | Name::Timeout => 50,
        };
        assert!(count >= least, "{name:?}: {count}");
    }
}
