//! The key server's study, and what requests cost, on standard output as comma-separated values.

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use sandglass_gates::key_server::{run, Study};
use sandglass_gates::{calibration, Paid, Protocol};
use serde::Serialize;

/// Servers behind gates in parallel virtual time.
#[derive(Parser)]
enum Args {
    Study(StudyArgs),
    Costs(CostsArgs),
}

/// What requests take on one core, in ticks: alone, and behind another one.
#[derive(clap::Args)]
struct CostsArgs {
    /// What that one's operation takes, in ticks.
    #[arg(long)]
    long: u64,
}

/// One run of the key server's study: a line for each request of T1, with its phase, and when it was made and how long it
/// took, in ns.
#[derive(clap::Args)]
struct StudyArgs {
    #[arg(long)]
    protocol: Order,
    /// Whose time the server works on.
    #[arg(long)]
    time: Time,
    #[arg(long)]
    cores: usize,
    #[arg(long)]
    seed: u64,
    /// Length of a phase, in ms: a multiple of 100.
    #[arg(long)]
    phase: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Order {
    McIpc,
    Fifo,
    Prio,
}

#[derive(Clone, Copy, ValueEnum)]
enum Time {
    Clients,
    Server,
}

/// A line.
#[derive(Serialize)]
struct Line {
    phase: usize,
    at: u64,
    delay: u64,
    bound: u64,
}

fn main() -> ExitCode {
    let args = match Args::parse() {
        Args::Study(args) => args,
        Args::Costs(args) => return ended(write_costs(&args)),
    };
    if ![1, 2, 4].contains(&args.cores) || args.phase == 0 || !args.phase.is_multiple_of(100) {
        eprintln!("there are 1, 2 or 4 cores, and a phase is a multiple of 100 ms");
        return ExitCode::from(2);
    }
    ended(write(&args))
}

fn ended(written: csv::Result<()>) -> ExitCode {
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write the result: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write_costs(args: &CostsArgs) -> csv::Result<()> {
    let mut lines = csv::Writer::from_writer(std::io::stdout());
    lines.serialize(calibration::run(args.long))?;
    lines.flush()?;
    Ok(())
}

fn write(args: &StudyArgs) -> csv::Result<()> {
    let protocol = match args.protocol {
        Order::McIpc => Protocol::McIpc,
        Order::Fifo => Protocol::Fifo,
        Order::Prio => Protocol::Prio,
    };
    let paid = match args.time {
        Time::Clients => Paid::ByClients,
        Time::Server => Paid::ByServer,
    };
    let study = Study {
        phase: args.phase,
        ..Study::new(protocol, paid, args.cores, args.seed)
    };
    let (delays, _) = run(&study);
    let mut lines = csv::Writer::from_writer(std::io::stdout());
    for delay in delays {
        lines.serialize(Line {
            phase: delay.phase,
            at: delay.at,
            delay: delay.ticks,
            bound: study.bound(),
        })?;
    }
    lines.flush()?;
    Ok(())
}
