//! Where things are: the repository and its target directory.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{bail, ensure, Context, Result};

/// The variable that says where the clone is.
pub const ROOT_VARIABLE: &str = "SANDGLASS_ROOT";

/// The file in a target directory that says whose it is: the root of a clone.
const OWNER: &str = "sandglass.clone";

/// Where this tool was compiled.
const COMPILED: &str = env!("CARGO_MANIFEST_DIR");

/// Root of the repository: `SANDGLASS_ROOT`, which the script sets; otherwise where this tool was
/// compiled.
pub fn root() -> PathBuf {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(find_root).clone()
}

fn find_root() -> PathBuf {
    match env::var_os(ROOT_VARIABLE) {
        // What is relative is so to our folder, but cargo is called in others.
        Some(root) => std::path::absolute(&root).unwrap_or_else(|_| PathBuf::from(root)),
        None => {
            let tools = Path::new(COMPILED);
            tools
                .parent()
                .expect("the tools are a folder of the repository")
                .to_path_buf()
        }
    }
}

/// Sees that the repository is there: an installed tool may outlive it. And that no other one builds in
/// our target directory.
///
/// # Errors
/// It is not, or one does, with what to do.
pub fn check() -> Result<()> {
    let (root, target) = (root(), target_dir());
    check_at(&root, env::var_os(ROOT_VARIABLE).is_some())?;
    match target.starts_with(&root) {
        true => Ok(()),
        false => own(&target, &root),
    }
}

/// Makes a target directory that may be shared (`CARGO_TARGET_DIR`) that of the clone at `root` alone: cargo
/// does not tell packages of two clones apart, so one would boot what the other has built.
fn own(target: &Path, root: &Path) -> Result<()> {
    let path = target.join(OWNER);
    let owner = fs::read(&path)
        .ok()
        .map(OsString::from_vec)
        .map(PathBuf::from);
    match owner {
        Some(owner) if owner == root => Ok(()),
        // A clone that is gone, or was moved, builds nothing.
        Some(owner) if check_at(&owner, false).is_ok() => bail!(
            "the clone of Sandglass at `{}` builds in `{}`, and two clones cannot share a target directory: \
             unset `CARGO_TARGET_DIR`, or set it to another folder for the clone at `{}`",
            owner.display(),
            target.display(),
            root.display()
        ),
        _ => fs::create_dir_all(target)
            .and_then(|()| fs::write(&path, root.as_os_str().as_encoded_bytes()))
            .with_context(|| format!("cannot write {}", path.display())),
    }
}

fn check_at(root: &Path, is_set: bool) -> Result<()> {
    if ["kernel", "tools"].map(|part| root.join(part).join("Cargo.toml").is_file()) == [true; 2] {
        return Ok(());
    }
    let why = match is_set {
        true => format!("`{ROOT_VARIABLE}` says that it is there"),
        false => "this command was compiled there".to_owned(),
    };
    bail!(
        "no clone of Sandglass is at `{}` ({why}), and this command builds the kernel, the launcher and \
         ready-made components from one: set `{ROOT_VARIABLE}` to the folder of a clone, or install the \
         command again from one",
        root.display()
    )
}

/// Directory for everything of the repository that is built: the script passes it in
/// `SANDGLASS_TARGET_DIR`; otherwise `CARGO_TARGET_DIR`, else `target` in the repository.
pub fn target_dir() -> PathBuf {
    let given = env::var_os("SANDGLASS_TARGET_DIR").or_else(|| env::var_os("CARGO_TARGET_DIR"));
    root().join(given.unwrap_or_else(|| "target".into()))
}

/// Waits until nobody else builds in `folder`, which is made if need be, and keeps it so until the
/// lock is dropped: what was built there stays as it is while it is read.
///
/// # Errors
/// The folder cannot be written.
pub fn lock(folder: &Path) -> Result<File> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join("sandglass.lock");
    let lock = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    lock.lock()
        .with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(lock)
}

/// Makes `folder`, without what is in it if it is there.
///
/// # Errors
/// It cannot.
pub fn empty(folder: &Path) -> Result<()> {
    let made = match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => fs::create_dir_all(folder),
    };
    made.with_context(|| format!("cannot empty {}", folder.display()))
}

/// Sees before long work that its result can be written to `path`. What is there stays as it is.
///
/// # Errors
/// It cannot.
pub fn ensure_writable(path: &Path) -> Result<()> {
    let is_new = !path.exists();
    File::options()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    if is_new {
        // An empty file that stays behind is no failure.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// Sees before long work that its results can be written to `outputs`, a file for each, without losing `input`, which is read.
///
/// # Errors
/// One cannot be written, is the input, or is another one.
pub fn ensure_outputs(input: &Path, outputs: &[Option<&Path>]) -> Result<()> {
    let outputs: Vec<&Path> = outputs.iter().copied().flatten().collect();
    for (i, output) in outputs.iter().enumerate() {
        ensure_writable(output)?;
        let shown = output.display();
        ensure!(
            !are_same(output, input),
            "`{shown}` is what is read, and would be lost: name another file for the result"
        );
        ensure!(
            !outputs[..i].iter().any(|other| are_same(output, other)),
            "`{shown}` is named for two results, of which one would be lost: name two files"
        );
    }
    Ok(())
}

/// Whether two paths name one file, which may be yet to be made. Terminals and other devices have room for several results.
fn are_same(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => {
            one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino())
        }
        (Err(_), Err(_)) => {
            place(one).is_some_and(|place_of_one| place(other) == Some(place_of_one))
        }
        _ => false,
    }
}

/// Where a file is to be made: the folder, without symbolic links, and its name.
fn place(path: &Path) -> Option<PathBuf> {
    let folder = match path.parent()? {
        folder if folder.as_os_str().is_empty() => Path::new("."),
        folder => folder,
    };
    Some(fs::canonicalize(folder).ok()?.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_that_is_gone_is_named_with_what_to_do() {
        assert!(check_at(&root(), false).is_ok());
        let gone = Path::new("/nonexistent/sandglass");
        for (is_set, why) in [(false, "compiled there"), (true, "says that")] {
            let error = check_at(gone, is_set).unwrap_err().to_string();
            for part in ["`/nonexistent/sandglass`", why, "set `SANDGLASS_ROOT`"] {
                assert!(error.contains(part), "{error}");
            }
        }
    }

    #[test]
    fn two_clones_do_not_share_a_target_directory() {
        let folder = env::temp_dir().join(format!("sandglass-shared-{}", std::process::id()));
        let (gone, other) = (Path::new("/nonexistent"), folder.join("other"));
        for part in ["kernel", "tools"] {
            fs::create_dir_all(other.join(part)).unwrap();
            fs::write(other.join(part).join("Cargo.toml"), "").unwrap();
        }
        let target = folder.join("target");
        for (root, is_ours) in [
            (gone, true),
            (&root(), true),
            (&root(), true),
            (&other, false),
        ] {
            assert_eq!(own(&target, root).is_ok(), is_ours, "{}", root.display());
        }
        let error = own(&target, &other).unwrap_err().to_string();
        assert!(error.contains("unset `CARGO_TARGET_DIR`"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn results_overwrite_neither_what_is_read_nor_each_other() {
        let folder = env::temp_dir().join(format!("sandglass-outputs-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (input, link, new) = ["input", "link", "new"]
            .map(|name| folder.join(name))
            .into();
        fs::write(&input, "kept").unwrap();
        std::os::unix::fs::symlink(&input, &link).unwrap();
        let again = folder.join(".").join("new");
        let refused = |outputs: &[&Path]| {
            let outputs: Vec<Option<&Path>> = outputs.iter().copied().map(Some).collect();
            ensure_outputs(&input, &outputs).map_err(|error| error.to_string())
        };
        assert_eq!(refused(&[&new]), Ok(()));
        for lost in [&input, &link] {
            let error = refused(&[&new, lost]).unwrap_err();
            assert!(error.contains("is what is read"), "{error}");
        }
        for twice in [&new, &again] {
            let error = refused(&[&new, twice]).unwrap_err();
            assert!(error.contains("two results"), "{error}");
        }
        let device = Path::new("/dev/null");
        assert_eq!(refused(&[device, device]), Ok(()));
        assert_eq!(fs::read_to_string(&input).unwrap(), "kept");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn whether_a_file_can_be_written_is_known_without_writing_it() {
        let folder = env::temp_dir().join(format!("sandglass-writable-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (new, old) = (folder.join("new"), folder.join("old"));
        fs::write(&old, "kept").unwrap();
        assert!(ensure_writable(&new).is_ok() && !new.exists());
        assert!(ensure_writable(&old).is_ok());
        assert_eq!(fs::read_to_string(&old).unwrap(), "kept");
        assert!(ensure_writable(&folder.join("missing").join("file")).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
