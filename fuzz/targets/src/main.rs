//! Runs a target on files and shows what is in them: without a fuzzing engine, for debuggers.

use std::fs;
use std::process::ExitCode;

use anyhow::{bail, Context, Result};
use sandglass_fuzz_targets::{find, targets, Target};

fn main() -> ExitCode {
    match replay(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn replay(arguments: &[String]) -> Result<()> {
    let Some((name, files)) = arguments
        .split_first()
        .filter(|(_, files)| !files.is_empty())
    else {
        bail!("usage: sandglass-fuzz-replay TARGET FILE...");
    };
    let Some(target) = find(name) else {
        let names: Vec<&str> = targets().map(|target| target.name).collect();
        bail!(
            "there is no target `{name}`; there are {}",
            names.join(", ")
        );
    };
    for file in files {
        show(&target, file)?;
    }
    Ok(())
}

/// Shows an input, then runs it: if it panics, the last line says what was going on.
fn show(target: &Target, file: &str) -> Result<()> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {file}"))?;
    println!("{}: {} bytes of {}", file, bytes.len(), target.what);
    println!("{}", (target.explain)(&bytes).trim_end());
    (target.run)(&bytes);
    println!("ok");
    Ok(())
}
