//! Where things are: the repository and its target directory.

use std::env;
use std::path::{Path, PathBuf};

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
