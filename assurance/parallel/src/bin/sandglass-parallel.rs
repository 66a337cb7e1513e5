//! The case studies of several cores in parallel virtual time, on standard output, as JSON or
//! comma-separated values.

use std::process::ExitCode;

use clap::Parser;
use sandglass_kernel::CORES;
use sandglass_parallel::study::{self, cipher, pairs};

/// Runs the case studies of several cores.
#[derive(Parser)]
struct Args {
    /// Parameters of the cipher server as JSON, if not the default ones.
    #[arg(long)]
    cipher: Option<String>,
    /// Parameters of the pairs as JSON, if not the default ones.
    #[arg(long)]
    pairs: Option<String>,
    /// Comma-separated values: scenario, bound of the work between calls, cores, work done, ticks.
    #[arg(long)]
    csv: bool,
    /// Most cores.
    #[arg(long, default_value_t = CORES)]
    cores: usize,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the parameters make no sense: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> serde_json::Result<()> {
    let cipher: cipher::Parameters = parameters(args.cipher.as_deref())?;
    let pairs: pairs::Parameters = parameters(args.pairs.as_deref())?;
    let study = study::run(&cipher, &pairs, args.cores.clamp(1, CORES));
    if args.csv {
        print!("{}", study.csv());
    } else {
        println!("{}", serde_json::to_string_pretty(&study)?);
    }
    Ok(())
}

fn parameters<T: Default + serde::de::DeserializeOwned>(
    text: Option<&str>,
) -> serde_json::Result<T> {
    text.map_or_else(|| Ok(T::default()), serde_json::from_str)
}
