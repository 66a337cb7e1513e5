//! One run of the key server's study, on standard output as comma-separated values: a line for each request of T1.

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use sandglass_gates::key_server::{run, Study};
use sandglass_gates::{Paid, Protocol};
use serde::Serialize;

/// Runs the key server's study in parallel virtual time: a line for each request of T1, with its phase, and when it was made
/// and how long it took, in ns.
#[derive(Parser)]
struct Args {
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
    let args = Args::parse();
    if ![1, 2, 4].contains(&args.cores) || args.phase == 0 || !args.phase.is_multiple_of(100) {
        eprintln!("there are 1, 2 or 4 cores, and a phase is a multiple of 100 ms");
        return ExitCode::from(2);
    }
    match write(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write the result: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(args: &Args) -> csv::Result<()> {
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
