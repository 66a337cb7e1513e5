//! Bounds of the kernel's execution time, from its file.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use sandglass_wcet::image::Image;
use sandglass_wcet::kernel::{Case, Entry, Kernel, System};
use sandglass_wcet::limits::Limits;
use sandglass_wcet::show;

#[derive(Parser)]
struct Args {
    kernel: PathBuf,
    /// Levels of capability spaces.
    #[arg(long, default_value_t = 8)]
    levels: u64,
    /// Threads that the machine has memory for.
    #[arg(long, default_value_t = 100_000)]
    threads: u64,
    /// Shows the path of each bound.
    #[arg(long)]
    path: bool,
    /// Of paths through this function.
    #[arg(long)]
    through: Option<String>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let image = Image::read(&args.kernel)?;
    let limits = Limits::parse(include_str!("../limits.toml"))?;
    let closed = Limits::parse(include_str!("../closed.toml"))?;
    let kernel = Kernel::new(&image, &limits, &closed)?;
    let through = match &args.through {
        Some(name) => Some(
            image
                .function_named(name)
                .with_context(|| format!("no function {name}"))?,
        ),
        None => None,
    };
    for system in System::ALL {
        for entry in Entry::ALL {
            let case = Case {
                system,
                levels: args.levels,
                threads: args.threads,
            };
            let Some(found) = kernel.longest(entry, case, through)? else {
                continue;
            };
            println!(
                "{} {} {}: {}",
                system.name(),
                entry.name(),
                args.levels,
                found.cost
            );
            if args.path {
                print!("{}", show::path(&image, &found));
            }
        }
    }
    Ok(())
}
