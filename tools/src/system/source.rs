//! The text of a description, read without trusting the file: it may be anything, of any size.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::Utf8Error;

use anyhow::{anyhow, bail, Context, Result};

use super::findings::{Finding, Report};
use crate::arch::Arch;

/// Bytes of the longest description that is read: some 30,000 components.
pub const MAX_BYTES: u64 = 4 << 20;

/// The text of a description.
#[derive(Debug, Clone)]
pub struct Source {
    /// For messages.
    pub name: String,
    pub text: String,
    /// What paths in it are relative to.
    pub folder: PathBuf,
    /// What the system is built for, in place of what the description says.
    pub arch: Option<Arch>,
}

impl Source {
    /// This description, for an architecture, if one is asked for.
    #[must_use]
    pub fn for_arch(self, arch: Option<Arch>) -> Self {
        Self {
            arch: arch.or(self.arch),
            ..self
        }
    }

    /// Reads a description.
    ///
    /// # Errors
    /// The file cannot be read, is not a regular file, is larger than [`MAX_BYTES`], or is not text in UTF-8;
    /// the last as a [`Report`] with the place.
    pub fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let bytes =
            read_bounded(path).with_context(|| format!("cannot read the description `{shown}`"))?;
        if let Some(what) = other_format(&bytes) {
            bail!("`{shown}` {what}");
        }
        let source = |text: String| Self {
            name: shown.to_string(),
            text,
            folder: path.parent().unwrap_or(Path::new("")).to_owned(),
            arch: None,
        };
        String::from_utf8(bytes).map(source).map_err(|error| {
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let finding = not_utf8(error.as_bytes(), error.utf8_error());
            Report::new(&source(text), vec![finding]).into()
        })
    }
}

/// The content of a regular file of at most [`MAX_BYTES`]. Devices and pipes, which may never end, are not opened.
fn read_bounded(path: &Path) -> Result<Vec<u8>> {
    let data = path.metadata()?;
    if data.is_dir() {
        bail!("it is a folder; name the file in it, for example `SYSTEM.toml`");
    }
    if !data.is_file() {
        bail!("it is not a regular file, but a device, pipe or socket");
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(anyhow!(
            "it is larger than {} MiB, the limit for descriptions; data belongs in an `[[file]]`",
            MAX_BYTES >> 20
        ));
    }
    Ok(bytes)
}

/// What a file is that is no text in UTF-8, and what to do about it.
fn other_format(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x7f, b'E', b'L', b'F', ..] => {
            Some("is a program (an ELF file), not a description; `sandglass boot` boots root tasks")
        }
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            Some("is text in UTF-16; save it as UTF-8, the encoding of TOML")
        }
        [0, _, ..] | [_, 0, ..] => {
            Some("is not text, or text in UTF-16; a description is TOML, in UTF-8")
        }
        _ => None,
    }
}

/// The first byte that is not UTF-8; in front of it, the text is as it was.
fn not_utf8(bytes: &[u8], error: Utf8Error) -> Finding {
    let at = error.valid_up_to();
    let byte = bytes.get(at).copied().unwrap_or(0);
    Finding::new(at..at + char::REPLACEMENT_CHARACTER.len_utf8(), "the description is not in UTF-8")
        .label(format!("the byte {byte:#04x} does not belong to any character"))
        .help("save the file as UTF-8, the encoding of TOML: `iconv -f LATIN1 -t UTF-8`, if it is Latin-1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(content: &[u8], name: &str) -> String {
        let path = std::env::temp_dir().join(format!("sandglass-{name}-{}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        let error = Source::read(&path).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        format!("{error:#}")
    }

    #[test]
    fn what_is_no_text_is_refused_with_what_it_is() {
        assert!(error_of(b"\x7fELF\x02", "elf").contains("`sandglass boot`"));
        assert!(error_of(b"\xff\xfen\0a\0", "bom").contains("UTF-16; save it as UTF-8"));
        assert!(error_of(b"n\0a\0m\0e\0", "utf16").contains("UTF-16"));
        let latin = error_of(b"name = \"a\"\n# gr\xfc\xdf\n", "latin");
        assert!(latin.contains(":2:5"), "{latin}");
        assert!(latin.contains("0xfc") && latin.contains("iconv"), "{latin}");
    }

    #[test]
    fn what_may_never_end_is_not_read() {
        for endless in ["/dev/zero", "/dev/stdin", "/dev/tty"] {
            let Ok(data) = Path::new(endless).metadata() else {
                continue;
            };
            if data.is_file() {
                continue;
            }
            let error = format!("{:#}", Source::read(Path::new(endless)).unwrap_err());
            assert!(error.contains("regular file"), "{error}");
        }
        assert!(format!("{:#}", Source::read(Path::new("/")).unwrap_err()).contains("folder"));
        let long = error_of(&vec![b'#'; MAX_BYTES as usize + 1], "long");
        assert!(long.contains("4 MiB"), "{long}");
    }
}
