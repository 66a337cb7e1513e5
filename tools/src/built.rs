//! What cargo was asked to build, and what compilers said of themselves, since the tests began.
//!
//! Cargo takes half a second to see that there is nothing to do, and rustup a quarter to say which compilers there are; the
//! tests start hundreds of commands that ask both. Nothing changes the repository while they run. So while a folder is set
//! ([`remember_into`], or the variable [`VARIABLE`] of the environment, for processes that tests start), a command that
//! has succeeded in the repository's root is not run again: what it wrote is read from the folder, as long as the files
//! that it made are as it left them.
//!
//! What is built elsewhere, as projects of users and changed kernels are, is always asked for.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::workspace;

/// The variable that says in which folder what was built is remembered; absent, nothing is.
pub const VARIABLE: &str = "SANDGLASS_BUILT";

static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();

/// What a command did.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// The command, with all that it depends on but the repository: two may have one hash.
    command: String,
    /// The files that it made.
    made: Vec<Made>,
    /// Its standard output.
    output: String,
}

/// A file as it was made.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Made {
    path: PathBuf,
    bytes: u64,
    inode: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
}

impl Made {
    /// As it is now; `None` if it is not there.
    fn of(path: &Path) -> Option<Self> {
        let of = fs::metadata(path).ok()?;
        Some(Self {
            path: path.to_owned(),
            bytes: of.size(),
            inode: of.ino(),
            modified: (of.mtime(), of.mtime_nsec()),
        })
    }
}

/// Remembers what this process, and those that are told by [`VARIABLE`], build from now on, in a folder that is empty at
/// first, unless what started this process remembers already.
///
/// # Errors
/// The folder cannot be made.
pub fn remember_into(folder: PathBuf) -> Result<()> {
    if env::var_os(VARIABLE).is_some() {
        return Ok(());
    }
    workspace::empty(&folder)?;
    FOLDER.get_or_init(|| Some(folder));
    Ok(())
}

/// Where it is remembered.
pub fn folder() -> Option<&'static Path> {
    FOLDER
        .get_or_init(|| env::var_os(VARIABLE).map(PathBuf::from))
        .as_deref()
}

/// A command whose result can be remembered.
#[derive(Debug)]
pub struct Asked(String);

impl Asked {
    /// Of `command`, as it is now; `None` if its result depends on more than the repository, or nothing is remembered.
    pub fn of(command: &Command) -> Option<Self> {
        folder()?;
        describe(command, &workspace::root()).map(Self)
    }

    /// What it wrote when it was run before, if that is remembered, and what it made is as it was.
    pub fn recall(&self) -> Option<String> {
        recall_in(folder()?, &self.0)
    }

    /// Remembers that it wrote `output` and made the files `made`. What cannot be written is not remembered.
    pub fn remember(self, output: &str, made: &[PathBuf]) {
        if let Some(folder) = folder() {
            // It is run again then.
            let _ = remember_in(folder, self.0, output, made);
        }
    }
}

fn recall_in(folder: &Path, command: &str) -> Option<String> {
    let bytes = fs::read(file(folder, command)).ok()?;
    let record: Record = serde_json::from_slice(&bytes).ok()?;
    let is_as_left = |made: &Made| Made::of(&made.path).as_ref() == Some(made);
    (record.command == command && record.made.iter().all(is_as_left)).then_some(record.output)
}

fn remember_in(folder: &Path, command: String, output: &str, made: &[PathBuf]) -> Option<()> {
    let path = file(folder, &command);
    let made: Option<Vec<Made>> = made.iter().map(|path| Made::of(path)).collect();
    let record = Record {
        command,
        made: made?,
        output: output.to_owned(),
    };
    // Whoever reads it meanwhile sees it whole.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let fresh = path.with_extension(format!("{}.{number}", std::process::id()));
    fs::write(&fresh, serde_json::to_vec(&record).ok()?).ok()?;
    fs::rename(&fresh, &path).ok()
}

fn file(folder: &Path, command: &str) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    command.hash(&mut hasher);
    folder.join(format!("{:016x}.json", hasher.finish()))
}

/// The command with all that compilers read of the environment; `None` if it is not run in `root`.
fn describe(command: &Command, root: &Path) -> Option<String> {
    if command.get_current_dir() != Some(root) {
        return None;
    }
    let mut inherited: Vec<_> = env::vars_os()
        .filter(|(name, _)| matters(name))
        .filter(|(name, _)| command.get_envs().all(|(set, _)| set != name))
        .collect();
    inherited.sort();
    let set: Vec<_> = command.get_envs().collect();
    let arguments: Vec<_> = command.get_args().collect();
    let program = command.get_program();
    Some(format!("{program:?} {arguments:?} {set:?} {inherited:?}"))
}

/// Whether compilers read this variable, or find something by it.
fn matters(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let of_compilers = ["CARGO", "RUST"]
        .iter()
        .any(|start| name.starts_with(start));
    // Tests have it, where they are, and cargo overwrites it.
    name != "CARGO_MANIFEST_DIR" && (of_compilers || name == "PATH" || name == "HOME")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_folder(name: &str, test: impl FnOnce(&Path)) {
        let folder = env::temp_dir().join(format!("sandglass-built-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        test(&folder);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_was_built_is_recalled_until_it_is_another_file() {
        in_folder("recalled", |folder| {
            let made = folder.join("made");
            let again = || recall_in(folder, "cargo build");
            fs::write(&made, "one").unwrap();
            assert_eq!(again(), None);
            remember_in(
                folder,
                "cargo build".into(),
                "text",
                std::slice::from_ref(&made),
            )
            .unwrap();
            assert_eq!(again().as_deref(), Some("text"));
            assert_eq!(recall_in(folder, "cargo build --release"), None);
            // Another command has made it anew, as long as it was.
            let other = folder.join("other");
            fs::write(&other, "two").unwrap();
            fs::rename(&other, &made).unwrap();
            assert_eq!(again(), None);
            fs::remove_file(&made).unwrap();
            assert_eq!(again(), None);
            let gone = remember_in(folder, "cargo build".into(), "", &[made]);
            assert_eq!(gone, None);
        });
    }

    #[test]
    fn a_damaged_record_or_one_of_the_same_hash_is_none() {
        in_folder("damaged", |folder| {
            remember_in(folder, "one".into(), "text", &[]).unwrap();
            fs::rename(file(folder, "one"), file(folder, "two")).unwrap();
            assert_eq!(recall_in(folder, "two"), None);
            fs::write(file(folder, "one"), "{").unwrap();
            assert_eq!(recall_in(folder, "one"), None);
        });
    }

    #[test]
    fn commands_are_told_apart_by_all_that_they_depend_on() {
        let root = Path::new("/root");
        let command = |change: &dyn Fn(&mut Command)| {
            let mut command = Command::new("cargo");
            command.current_dir(root).arg("build");
            change(&mut command);
            describe(&command, root)
        };
        let usual = command(&|_| ());
        assert_eq!(usual, command(&|_| ()));
        let others: [&dyn Fn(&mut Command); 4] = [
            &|it| _ = it.arg("--release"),
            &|it| _ = it.env("RUSTFLAGS", "-O"),
            &|it| _ = it.env_remove("RUSTFLAGS"),
            &|it| _ = it.env("SANDGLASS_EMBEDDED", "file"),
        ];
        for (i, other) in others.iter().enumerate() {
            assert_ne!(command(other), usual, "{i}");
        }
        assert_eq!(command(&|it| _ = it.current_dir("/project")), None);
    }
}
