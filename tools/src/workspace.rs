//! Where things are: the repository and its target directory.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Root of the repository. The script passes it in `SANDGLASS_ROOT`; otherwise it is where this
/// tool was compiled.
pub fn root() -> PathBuf {
    match env::var_os("SANDGLASS_ROOT") {
        Some(root) => PathBuf::from(root),
        None => {
            let tools = Path::new(env!("CARGO_MANIFEST_DIR"));
            tools
                .parent()
                .expect("the tools are a folder of the repository")
                .to_path_buf()
        }
    }
}

/// Directory for everything that is built: `CARGO_TARGET_DIR`, else `target` in the repository.
pub fn target_dir() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
