//! Runs the project's system, for tests.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

/// A run of the system.
pub struct Run {
    /// The system's console, and what the checks of the trace found.
    pub output: String,
    /// Whether the system ended with status 0, and its trace violates nothing.
    pub success: bool,
}

/// Runs the system under virtual time: every run is the same, on every machine. Its trace is written to
/// `folder`, and budgets, priorities, deadlines and donations in it are checked.
///
/// # Panics
/// The command `sandglass` cannot be run.
pub fn trace(folder: &str) -> Run {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let sandglass = env::var_os("SANDGLASS").expect(".cargo/config.toml says where `sandglass` is");
    let out = Command::new(&sandglass)
        .current_dir(project)
        .args(["trace", "SYSTEM.toml", "--check", "--timeout", "300s"])
        .arg("--output")
        .arg(Path::new(folder).join("system.pftrace"))
        .arg("--html")
        .arg(Path::new(folder).join("system.html"))
        // The first time there is much to build: that is shown as it goes on.
        .stderr(Stdio::inherit())
        .output()
        .unwrap_or_else(|error| panic!("cannot run {}: {error}", sandglass.display()));
    Run {
        output: String::from_utf8_lossy(&out.stdout).into_owned(),
        success: out.status.success(),
    }
}

impl Run {
    /// Fails unless the run succeeded and printed all of `lines`.
    ///
    /// # Panics
    /// It did not, with its output.
    #[track_caller]
    pub fn assert_printed(&self, lines: &[&str]) {
        assert!(self.success, "the run failed:\n{}", self.output);
        for line in lines {
            assert!(
                self.output.contains(line),
                "`{line}` is not in:\n{}",
                self.output
            );
        }
    }
}
