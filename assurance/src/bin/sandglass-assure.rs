//! Lock step by a command: many events over many seeds, with a bar of progress and a report.

use std::process::ExitCode;
use std::thread;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use sandglass_assurance::campaign::{self, Plan};
use sandglass_assurance::pair::Traffic;
use sandglass_kernel::CORES;

/// Runs the kernel in lock step with its executable specification
#[derive(Parser)]
#[command(name = "sandglass-assure", max_term_width = 100)]
struct Arguments {
    /// Events after which the whole state is compared, at least
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    events: u64,
    /// The first seed; a seed has about two hundred events
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Seeds at the same time [default: as many as there are processors]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Cores on which something happens [default: as many as the kernel is built for]
    #[arg(long, value_name = "N", default_value_t = CORES, hide_default_value = true,
          value_parser = cores)]
    cores: usize,
    /// Ask only the oracle for time, with time passing inside all events
    #[arg(long)]
    only_time: bool,
}

/// Reads a number of cores.
fn cores(argument: &str) -> Result<usize, String> {
    match argument.parse() {
        Ok(number @ 1..=CORES) => Ok(number),
        _ => Err(format!("this kernel is for 1 to {CORES}")),
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let available = || thread::available_parallelism().map_or(1, usize::from);
    let plan = Plan {
        first_seed: arguments.seed,
        events: arguments.events,
        seeds: 1,
        jobs: arguments.jobs.unwrap_or_else(available),
        cores: arguments.cores,
        only_time: arguments.only_time,
    };
    let bar = ProgressBar::new(plan.events);
    let style =
        "{elapsed_precise} {wide_bar} {human_pos}/{human_len} events, {per_sec}, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).expect("the template is right"));
    let report = campaign::run(plan, |events| bar.inc(events));
    bar.finish_and_clear();
    println!("{}", report.coverage);
    for missing in report.coverage.missing() {
        println!("not covered: {missing}");
    }
    for found in &report.found {
        println!("\nseed {}: {}", found.seed, found.text);
    }
    if CORES > 1 {
        let Traffic {
            looks,
            stalls,
            moves,
            lost,
        } = report.traffic;
        println!(
            "on {} of {CORES} cores: {looks} looks, {stalls} stalls, {moves} threads moved, {lost} \
             system calls lost their thread while they waited",
            plan.cores
        );
    }
    println!("{}", report.lines);
    println!(
        "assure: {} events in lock step over {} seeds, {} more swept; behind {} half-done operations \
         the specification started anew, {} seeds ended without it; {} findings",
        report.compared,
        report.seeds,
        report.swept,
        report.losses,
        report.left,
        report.found.len()
    );
    if report.found.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
