//! Where the images of systems are written: each run boots its own, whoever else runs.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};

use super::Source;
use crate::workspace;

/// Between the parts of the file name of a run's image.
const RUN: &str = ".run-";

/// The image of one run, which ends with it.
#[derive(Debug)]
pub struct RunImage(PathBuf);

impl RunImage {
    /// A file of this run alone, which is not there yet.
    ///
    /// # Errors
    /// Its folder cannot be made.
    pub fn new() -> Result<Self> {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let folder = folder();
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        remove_abandoned(&folder);
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{number}{RUN}{}.elf", std::process::id());
        Ok(Self(folder.join(name)))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for RunImage {
    fn drop(&mut self) {
        // A file that stays is removed by a later run.
        let _ = fs::remove_file(&self.0);
    }
}

/// Where `sandglass build` writes the image of a description unless it is told: the same file each
/// time, and another one for each description.
pub fn kept(source: &Source, system: &str) -> PathBuf {
    let path = std::path::absolute(&source.name).unwrap_or_else(|_| PathBuf::from(&source.name));
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    folder().join(format!("{system}-{:08x}.elf", hasher.finish() as u32))
}

fn folder() -> PathBuf {
    workspace::target_dir().join("systems")
}

/// Removes images of runs that were killed. What cannot be removed costs room, nothing else.
fn remove_abandoned(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(process_of);
        if process.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The process whose run's image has this name.
fn process_of(name: &str) -> Option<&str> {
    let (_, id) = name.strip_suffix(".elf")?.split_once(RUN)?;
    id.bytes().all(|byte| byte.is_ascii_digit()).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_an_image_that_goes_with_it_and_those_of_dead_processes_go() {
        let (one, other) = (RunImage::new().unwrap(), RunImage::new().unwrap());
        assert_ne!(one.path(), other.path());
        fs::write(one.path(), "").unwrap();
        // No process has so large a number.
        let abandoned = folder().join(format!("0{RUN}999999999.elf"));
        fs::write(&abandoned, "").unwrap();
        let third = RunImage::new().unwrap();
        assert!(one.path().exists() && !abandoned.exists());
        let path = one.path().to_owned();
        drop((one, other, third));
        assert!(!path.exists());
    }

    #[test]
    fn descriptions_of_one_system_name_have_different_images() {
        let source = |name: &str| Source {
            name: name.to_owned(),
            text: String::new(),
            folder: PathBuf::new(),
        };
        let of = |name| kept(&source(name), "rig");
        assert_eq!(of("/a/SYSTEM.toml"), of("/a/SYSTEM.toml"));
        assert_ne!(of("/a/SYSTEM.toml"), of("/b/SYSTEM.toml"));
    }
}
