//! Where the images of systems are written: each run boots its own, whoever else runs.

use std::fs::{self, DirEntry, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::Source;
use crate::workspace;

/// Between the parts of the file name of a run's image.
const RUN: &str = ".run-";

/// The image of one run, which ends with it.
#[derive(Debug)]
pub struct RunImage(PathBuf);

impl RunImage {
    /// A file of this run alone, empty so far.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new() -> Result<Self> {
        let folder = folder();
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        remove_abandoned(&folder);
        // Processes in different containers may have the same number.
        for number in 0u64.. {
            let path = folder.join(format!("{number}{RUN}{}.elf", std::process::id()));
            match File::create_new(&path) {
                Ok(_) => return Ok(Self(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot write {}", path.display()))
                }
            }
        }
        unreachable!("there are fewer files")
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Another file of this run alone. Whoever makes it removes it.
    pub fn beside(&self, extension: &str) -> PathBuf {
        self.0.with_extension(extension)
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

/// The folder of images.
pub fn folder() -> PathBuf {
    workspace::target_dir().join("systems")
}

/// Removes the files of runs that were killed. What cannot be removed costs room, nothing else.
fn remove_abandoned(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(process_of);
        let is_gone = process.is_some_and(|id| !Path::new("/proc").join(id).exists());
        if is_gone && is_old(&entry) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether a file is so old that a process that we cannot see, in another container, has no use for it any
/// more: the emulator reads an image when it starts.
fn is_old(entry: &DirEntry) -> bool {
    const OLD: Duration = Duration::from_secs(24 * 3600);
    let modified = entry.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > OLD))
}

/// The process whose run has a file of this name.
fn process_of(name: &str) -> Option<&str> {
    let (_, id) = name.split_once(RUN)?;
    let (id, _) = id.split_once('.')?;
    id.bytes().all(|byte| byte.is_ascii_digit()).then_some(id)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn each_run_has_an_image_that_goes_with_it_and_those_of_dead_processes_go() {
        let (one, other) = (RunImage::new().unwrap(), RunImage::new().unwrap());
        assert_ne!(one.path(), other.path());
        // No process has so large a number.
        let gone = |number: u64| folder().join(format!("{number}{RUN}999999999.elf"));
        let (abandoned, fresh) = (gone(0), gone(1));
        let file = File::create(&abandoned).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        File::create(&fresh).unwrap();
        let third = RunImage::new().unwrap();
        assert!(one.path().exists() && fresh.exists() && !abandoned.exists());
        let path = one.path().to_owned();
        drop((one, other, third));
        assert!(!path.exists());
        fs::remove_file(fresh).unwrap();
    }

    #[test]
    fn descriptions_of_one_system_name_have_different_images() {
        let source = |name: &str| Source {
            arch: None,
            name: name.to_owned(),
            text: String::new(),
            folder: PathBuf::new(),
        };
        let of = |name| kept(&source(name), "rig");
        assert_eq!(of("/a/SYSTEM.toml"), of("/a/SYSTEM.toml"));
        assert_ne!(of("/a/SYSTEM.toml"), of("/b/SYSTEM.toml"));
    }
}
