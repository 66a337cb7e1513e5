//! The kernel in lock step with its specification, over many seeds.

use std::thread;

use sandglass_assurance::campaign::{self, Plan};
use sandglass_assurance::pair::Traffic;
use sandglass_kernel::fast::inspect::Name;
use sandglass_kernel::CORES;

/// Events to compare after, at least, and the least number of seeds: what reaches all that there is to cover. Those on several
/// cores are another run. With `SANDGLASS_EXPLORE=long`, three times as many; `sandglass assure` goes on as long as wanted.
const EVENTS: u64 = if CORES > 1 { 24_000 } else { 56_000 };
const SEEDS: u64 = if CORES > 1 { 28 } else { 60 };

/// How often as much as usual is to be tried.
fn times() -> u64 {
    let is_long = std::env::var("SANDGLASS_EXPLORE").is_ok_and(|extent| extent == "long");
    1 + 2 * u64::from(is_long)
}

#[test]
fn the_kernel_does_what_is_specified() {
    let (events, seeds) = (times() * EVENTS, times() * SEEDS);
    let plan = Plan {
        first_seed: 0,
        events,
        seeds,
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
        let one_in = |number| events / number;
        assert!(looks > one_in(60) && stalls > one_in(120) && moves > one_in(120));
        assert!(lost > one_in(6_000));
    }
    assert!(report.compared >= events && report.seeds >= seeds);
    assert_eq!(report.coverage.missing(), Vec::<String>::new());
}

/// Events of clients and servers to compare after, at least.
const SERVED: u64 = if CORES > 1 { 18_000 } else { 16_000 };

#[test]
fn straight_lines_do_what_is_specified() {
    let report = campaign::run(
        Plan {
            first_seed: campaign::SERVING,
            events: times() * SERVED,
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
