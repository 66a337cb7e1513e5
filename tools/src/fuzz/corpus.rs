//! The corpora: inputs that reach code which no other reaches.
//!
//! `fuzz/corpus/TARGET` is kept in the repository, small. Inputs with names in words stay for ever:
//! they are examples, and inputs that once failed. Those named by a hash were found; what a merge
//! finds needless is removed. A larger working corpus, in the target directory, is kept between runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{bail, Context, Result};

use super::engine::Engine;
use crate::workspace;

const FOLDER: &str = "fuzz/corpus";
/// What the folder in the target directory is called in which failed inputs are.
pub(super) const FAILURES: &str = "failures";
/// Most inputs that were found, and most of their bytes: the corpus is read by people who clone.
const MAX_FOUND: usize = 250;
const MAX_BYTES: u64 = 250 << 10;
/// Length of the names that libFuzzer gives, which are hashes.
const HASH_LENGTH: usize = 40;

/// Names of all targets, of which each has a corpus.
///
/// # Errors
/// The corpora cannot be read.
pub(super) fn targets() -> Result<Vec<String>> {
    let folder = workspace::root().join(FOLDER);
    let names = list(&folder)?.into_iter();
    let names = names.filter(|path| path.is_dir()).map(|path| name(&path));
    Ok(names.collect())
}

/// The corpora of a target.
pub(super) struct Corpus {
    target: String,
    /// In the repository.
    pub(super) kept: PathBuf,
    /// In the target directory.
    pub(super) working: PathBuf,
}

impl Corpus {
    pub(super) fn of(target: &str) -> Self {
        Corpus {
            target: target.to_owned(),
            kept: workspace::root().join(FOLDER).join(target),
            working: folder_of("corpus", target),
        }
    }

    /// Makes the kept corpus the smallest one that reaches what both corpora reach. Returns its
    /// number of inputs.
    ///
    /// # Errors
    /// An input fails, or a file cannot be written.
    pub(super) fn merge(&self, engine: &Engine) -> Result<usize> {
        let merged = folder_of("merged", &self.target);
        empty(&merged)?;
        let (named, _): (Vec<_>, Vec<_>) = list(&self.kept)?
            .into_iter()
            .partition(|path| is_named(path));
        for path in &named {
            fs::copy(path, merged.join(name(path)))?;
        }
        // Without counters: an input stays for code that only it reaches, not for how often.
        let output = engine
            .command(&self.target)
            .args(["-merge=1", "-use_counters=0"])
            .arg(artifact_prefix(&self.target))
            .args([&merged, &self.kept, &self.working])
            .stdin(Stdio::null())
            .output()
            .context("cannot run the fuzzing engine")?;
        if !output.status.success() {
            bail!(
                "the corpora of {} cannot be merged:\n{}",
                self.target,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        let found = smallest(list(&merged)?.into_iter().filter(|path| !is_named(path)))?;
        for path in list(&self.kept)?.iter().filter(|path| !is_named(path)) {
            fs::remove_file(path)?;
        }
        for path in &found {
            fs::copy(path, self.kept.join(name(path)))?;
        }
        Ok(named.len() + found.len())
    }
}

/// As many inputs as the repository has room for, the smallest.
fn smallest(paths: impl Iterator<Item = PathBuf>) -> Result<Vec<PathBuf>> {
    let mut sized = paths
        .map(|path| Ok((fs::metadata(&path)?.len(), path)))
        .collect::<Result<Vec<_>>>()?;
    sized.sort();
    let mut bytes = 0;
    let fitting = sized.into_iter().take(MAX_FOUND).take_while(|(size, _)| {
        bytes += size;
        bytes <= MAX_BYTES
    });
    Ok(fitting.map(|(_, path)| path).collect())
}

/// The folder for `what` of a target, in the target directory.
pub(super) fn folder_of(what: &str, target: &str) -> PathBuf {
    workspace::target_dir().join("fuzz").join(what).join(target)
}

/// The option that says where inputs that fail are written.
pub(super) fn artifact_prefix(target: &str) -> String {
    format!(
        "-artifact_prefix={}/",
        folder_of("artifacts", target).display()
    )
}

/// Makes a folder that is empty.
///
/// # Errors
/// It cannot be made.
pub(super) fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

/// What is in a folder, by name.
///
/// # Errors
/// It cannot be read.
pub(super) fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Whether an input has a name in words.
fn is_named(path: &Path) -> bool {
    let name = name(path);
    name.len() != HASH_LENGTH || !name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
