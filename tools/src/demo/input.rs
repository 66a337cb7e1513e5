//! The file that the clients have encrypted.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use demo_protocol::cipher::{lap_bytes, MAX_INPUT_BYTES};

use crate::workspace;

/// The bundled text, from the root of the repository.
const BUNDLED: &str = "systems/demo/input.txt";

/// A file that can be encrypted: not empty, and small enough for the memory that a client shares
/// with the server.
#[derive(Debug)]
pub struct Input {
    /// Absolute.
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

impl Input {
    /// Reads `path`, or the bundled text.
    ///
    /// # Errors
    /// It cannot be read; or its size is none that the demo can encrypt, with what would be right.
    pub fn read(path: Option<&Path>) -> Result<Self> {
        let path = path.map_or_else(|| workspace::root().join(BUNDLED), Path::to_owned);
        let name = path.display();
        let metadata = fs::metadata(&path).with_context(|| format!("cannot read `{name}`"))?;
        if !metadata.is_file() {
            bail!("`{name}` is not a file");
        }
        // Before it is read: it may be larger than our memory.
        check_size(metadata.len()).with_context(|| format!("cannot use `{name}`"))?;
        let bytes = fs::read(&path).with_context(|| format!("cannot read `{name}`"))?;
        check_size(bytes.len() as u64).with_context(|| format!("cannot use `{name}`"))?;
        let path = path
            .canonicalize()
            .with_context(|| format!("cannot find `{name}` again"))?;
        Ok(Self { path, bytes })
    }

    /// Bytes.
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Bytes of a lap of the clients, which want `demand_bytes` in a period.
    pub fn lap_bytes(&self, demand_bytes: u64) -> u64 {
        lap_bytes(self.len(), demand_bytes)
    }

    /// The file's name, without folders.
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

fn check_size(bytes: u64) -> Result<()> {
    match bytes {
        0 => bail!(
            "it is empty, so the clients would have nothing to encrypt: 1 to {MAX_INPUT_BYTES} \
             bytes are right"
        ),
        1..=MAX_INPUT_BYTES => Ok(()),
        _ => bail!(
            "it has {bytes} bytes, but a client shares {MAX_INPUT_BYTES} bytes (4 MiB) with the \
             server at most"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_cannot_be_encrypted_are_refused_with_what_would_be_right() {
        let refusal = |bytes| check_size(bytes).unwrap_err().to_string();
        assert!(refusal(0).contains("1 to 4194304 bytes"));
        assert!(refusal(MAX_INPUT_BYTES + 1).contains("4194305 bytes"));
        assert!(check_size(1).is_ok() && check_size(MAX_INPUT_BYTES).is_ok());
    }

    #[test]
    fn the_bundled_text_can_be_read_and_a_missing_file_is_named() {
        let input = Input::read(None).unwrap();
        assert!(input.len() > 1000);
        let error = Input::read(Some(Path::new("no/such/file"))).unwrap_err();
        assert!(error.to_string().contains("no/such/file"));
        let error = Input::read(Some(&workspace::root())).unwrap_err();
        assert!(error.to_string().contains("is not a file"));
    }
}
