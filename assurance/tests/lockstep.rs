//! The kernel in lock step with its specification, over many seeds.

use std::thread;

use sandglass_assurance::campaign::{self, Plan};

#[test]
fn the_kernel_does_what_is_specified() {
    let plan = Plan {
        first_seed: 0,
        events: 300_000,
        seeds: 320,
        jobs: thread::available_parallelism().map_or(1, usize::from),
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
    assert!(report.compared >= 300_000 && report.seeds >= 300);
    assert_eq!(report.coverage.missing(), Vec::<String>::new());
}
