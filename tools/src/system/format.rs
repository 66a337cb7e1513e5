//! Whether this command and the launcher in the clone mean the same by the bytes of an archive: an
//! installed command may be older than its clone, or newer.

use std::fs;

use anyhow::{bail, Result};

use crate::workspace;

/// The package that defines the archive.
const FOLDER: &str = "user/description/src";

macro_rules! sources {
    ($($file:literal,)*) => {
        /// Its sources, as this command was compiled with them.
        const SOURCES: &[(&str, &str)] = &[
            $(($file, include_str!(concat!("../../../user/description/src/", $file))),)*
        ];
    };
}

sources! {
    "archive.rs",
    "lib.rs",
    "monitor.rs",
    "policy/allocations.rs",
    "policy/edf.rs",
    "policy/log.rs",
    "policy/mc_ipc.rs",
    "policy/mod.rs",
    "policy/modes.rs",
    "policy/partitions.rs",
    "policy/sharing.rs",
    "policy/timeouts.rs",
    "policy/timers.rs",
}

/// Sees that the clone's launcher reads what this command writes.
///
/// # Errors
/// It may not.
pub fn check() -> Result<()> {
    let folder = workspace::root().join(FOLDER);
    let is_ours = |(file, text): &(&str, &str)| {
        fs::read_to_string(folder.join(file)).is_ok_and(|theirs| theirs == *text)
    };
    if SOURCES.iter().all(is_ours) {
        return Ok(());
    }
    bail!(
        "this command is of another version than the clone of Sandglass at `{root}`: install it again, \
         `cargo install --locked --profile host --path {root}/tools`, or call `{root}/sandglass`, which keeps \
         itself up to date",
        root = workspace::root().display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sources_are_compared() {
        let folder = workspace::root().join(FOLDER);
        let mut names = Vec::new();
        for part in ["", "policy/"] {
            for entry in fs::read_dir(folder.join(part)).unwrap() {
                let entry = entry.unwrap();
                if entry.path().is_file() {
                    names.push(format!("{part}{}", entry.file_name().to_str().unwrap()));
                }
            }
        }
        names.sort_unstable();
        let listed: Vec<_> = SOURCES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, listed);
        assert!(check().is_ok());
    }
}
