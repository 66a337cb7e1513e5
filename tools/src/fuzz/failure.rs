//! An input that failed: made small, kept, and shown.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};

use super::corpus;
use super::engine::{self, Engine};

/// Seconds for making an input small.
const MINIMISING: u32 = 60;

/// Makes the input small, and says what it does and how to see it again.
///
/// # Errors
/// The engine cannot be run, or the input not be written.
pub(super) fn report(engine: &Engine, target: &str, artifact: &Path) -> Result<()> {
    let folder = corpus::folder_of(corpus::FAILURES, target);
    fs::create_dir_all(&folder)?;
    let kept = folder.join(artifact.file_name().context("an input has a name")?);
    fs::copy(artifact, &kept)?;
    eprintln!("{target} failed; minimising the input (up to {MINIMISING} s)");
    let small = kept.with_extension("small");
    // Its status says only whether it got smaller.
    engine
        .command(target)
        .arg("-minimize_crash=1")
        .arg(format!("-max_total_time={MINIMISING}"))
        .arg(format!("-exact_artifact_path={}", small.display()))
        .arg(&kept)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("cannot run the fuzzing engine")?;
    if small.exists() && fails(engine, target, &small)? {
        fs::rename(&small, &kept)?;
    }
    let replay = engine::replayer()?
        .arg(target)
        .arg(&kept)
        .env("RUST_BACKTRACE", "0")
        .output()
        .context("cannot run the target")?;
    println!("---- {target}: {}", kept.display());
    print!("{}", String::from_utf8_lossy(&replay.stdout));
    print!("{}", String::from_utf8_lossy(&replay.stderr));
    println!(
        "once more: ./sandglass fuzz --target {target} --input {}\n\
         when it is mended, it goes into fuzz/corpus/{target}, under a name that says what it was",
        kept.display()
    );
    Ok(())
}

/// Whether the input fails.
fn fails(engine: &Engine, target: &str, input: &Path) -> Result<bool> {
    let status = engine
        .command(target)
        .arg(input)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("cannot run the fuzzing engine")?;
    Ok(!status.success())
}
