//! Test harnesses: the programs that cargo builds of a workspace's host tests.

use std::path::PathBuf;

use anyhow::{Context, Result};
use cargo_metadata::Message;

/// The target with all integration tests of a package, each file of which is a module.
const ALL_TESTS: &str = "tests";

/// A compiled test harness.
pub struct Harness {
    /// Prefix of its tests' names: `KIND::PACKAGE`, and the target if it is neither the library nor
    /// [`ALL_TESTS`].
    pub prefix: String,
    pub executable: PathBuf,
    /// Folder of its package: where its tests run.
    pub folder: PathBuf,
}

impl Harness {
    /// The name of `test`, which is one of the harness's, among all tests.
    pub fn full_name(&self, test: &str) -> String {
        format!("{}::{test}", self.prefix)
    }
}

/// The harnesses among what cargo says that it built, in its JSON messages; sorted by prefix,
/// which begins with `kind`.
pub fn of(artifacts: &[u8], kind: &str) -> Result<Vec<Harness>> {
    let mut harnesses = Vec::new();
    for message in Message::parse_stream(artifacts) {
        let Message::CompilerArtifact(artifact) = message.context("cannot read cargo's output")?
        else {
            continue;
        };
        let (true, Some(executable)) = (artifact.profile.test, artifact.executable) else {
            continue;
        };
        let folder = artifact
            .manifest_path
            .parent()
            .context("a manifest stands in a folder")?;
        let package = folder
            .file_name()
            .context("a package's folder has a name")?;
        let prefix = if artifact.target.is_lib() || artifact.target.name == ALL_TESTS {
            format!("{kind}::{package}")
        } else {
            format!("{kind}::{package}::{}", artifact.target.name)
        };
        harnesses.push(Harness {
            prefix,
            executable: executable.into_std_path_buf(),
            folder: folder.as_std_path().to_path_buf(),
        });
    }
    harnesses.sort_by(|a, b| a.prefix.cmp(&b.prefix));
    Ok(harnesses)
}
