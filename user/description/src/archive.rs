//! The archive: a description, and the executables and files that it names.
//!
//! ```text
//! header         magic, version, length of the description (24 bytes)
//! description    a `System`, encoded by postcard
//! blobs          each on a page boundary, padded with zeros
//! ```
//!
//! Offsets of blobs count from the first of them. An archive is mapped at a page boundary, so that
//! the pages of a file can be mapped into components as they are.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::System;

/// Bytes of a page.
pub const PAGE: usize = 4096;

const MAGIC: [u8; 8] = *b"SANDGLAS";
const VERSION: u64 = 1;
const HEADER: usize = 24;

/// Bytes of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    /// From the first blob, a multiple of [`PAGE`].
    pub offset: u64,
    pub len: u64,
}

/// Collects blobs, and makes the archive.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    blobs: Vec<u8>,
}

impl Builder {
    pub const fn new() -> Self {
        Self { blobs: Vec::new() }
    }

    /// Adds bytes, padded to whole pages.
    pub fn add(&mut self, bytes: &[u8]) -> Blob {
        let offset = self.blobs.len() as u64;
        self.blobs.extend_from_slice(bytes);
        self.blobs
            .resize(self.blobs.len().next_multiple_of(PAGE), 0);
        Blob {
            offset,
            len: bytes.len() as u64,
        }
    }

    /// The archive of `system`, whose blobs are those added here.
    ///
    /// # Errors
    /// Those of the encoding; there are none for descriptions that fit into memory.
    pub fn finish(self, system: &System) -> Result<Vec<u8>, postcard::Error> {
        let description = postcard::to_allocvec(system)?;
        let mut archive = Vec::from(MAGIC);
        archive.extend_from_slice(&VERSION.to_le_bytes());
        archive.extend_from_slice(&(description.len() as u64).to_le_bytes());
        archive.extend_from_slice(&description);
        archive.resize(archive.len().next_multiple_of(PAGE), 0);
        archive.extend_from_slice(&self.blobs);
        Ok(archive)
    }
}

/// An archive that was found well-formed.
#[derive(Clone, Copy, Debug)]
pub struct Archive<'a> {
    description: &'a [u8],
    blobs: &'a [u8],
}

/// Why bytes are no archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveError {
    /// Too short, or without the magic number.
    NotAnArchive,
    /// Made by a builder of another version.
    Version { found: u64 },
    /// The description is cut off, or no description.
    BadDescription,
    /// A blob exceeds the archive.
    BadBlob { offset: u64, len: u64 },
}

impl core::error::Error for ArchiveError {}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnArchive => write!(
                f,
                "there is no system in this image: it is made by `sandglass build SYSTEM.toml`"
            ),
            Self::Version { found } => write!(
                f,
                "the system was packed in version {found} of the format, not {VERSION}"
            ),
            Self::BadDescription => write!(f, "the packed description cannot be read"),
            Self::BadBlob { offset, len } => {
                write!(f, "{len} bytes at {offset:#x} exceed the packed system")
            }
        }
    }
}

impl<'a> Archive<'a> {
    /// Checks the frame of an archive.
    ///
    /// # Errors
    /// See [`ArchiveError`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ArchiveError> {
        let header = bytes
            .first_chunk::<HEADER>()
            .ok_or(ArchiveError::NotAnArchive)?;
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&header[at..at + 8]);
            word
        };
        if word(0) != MAGIC {
            return Err(ArchiveError::NotAnArchive);
        }
        let found = u64::from_le_bytes(word(8));
        if found != VERSION {
            return Err(ArchiveError::Version { found });
        }
        let bad = ArchiveError::BadDescription;
        let len = usize::try_from(u64::from_le_bytes(word(16))).map_err(|_| bad)?;
        let end = len.checked_add(HEADER).ok_or(bad)?;
        let first_blob = end.checked_next_multiple_of(PAGE).ok_or(bad)?;
        Ok(Self {
            description: bytes.get(HEADER..end).ok_or(bad)?,
            blobs: bytes.get(first_blob..).ok_or(bad)?,
        })
    }

    /// Decodes the description.
    ///
    /// # Errors
    /// It is none.
    pub fn system(&self) -> Result<System, ArchiveError> {
        postcard::from_bytes(self.description).map_err(|_| ArchiveError::BadDescription)
    }

    /// The bytes of a blob.
    ///
    /// # Errors
    /// It exceeds the archive.
    pub fn blob(&self, blob: Blob) -> Result<&'a [u8], ArchiveError> {
        let range = || {
            let start = usize::try_from(blob.offset).ok()?;
            let end = start.checked_add(usize::try_from(blob.len).ok()?)?;
            self.blobs.get(start..end)
        };
        range().ok_or(ArchiveError::BadBlob {
            offset: blob.offset,
            len: blob.len,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system() -> System {
        System {
            name: "test".into(),
            board: None,
            launcher_priority: 255,
            endpoints: 1,
            notifications: 2,
            memory: Vec::new(),
            trace: None,
            log: None,
            status: None,
            components: Vec::new(),
        }
    }

    #[test]
    fn what_is_packed_is_found_on_page_boundaries() {
        let mut builder = Builder::new();
        let first = builder.add(&[1; 5000]);
        let second = builder.add(b"second");
        let bytes = builder.finish(&system()).unwrap();
        assert_eq!(bytes.len(), 4 * PAGE);
        let archive = Archive::parse(&bytes).unwrap();
        assert_eq!(archive.system().unwrap(), system());
        assert_eq!(archive.blob(first).unwrap(), [1; 5000]);
        assert_eq!(archive.blob(second).unwrap(), b"second");
        assert_eq!((first.offset, second.offset), (0, 8192));
    }

    #[test]
    fn claims_beyond_the_archive_are_refused() {
        let bytes = Builder::new().finish(&system()).unwrap();
        let archive = Archive::parse(&bytes).unwrap();
        for (offset, len) in [(0, 1), (1, 0), (u64::MAX, u64::MAX)] {
            let error = archive.blob(Blob { offset, len }).unwrap_err();
            assert_eq!(error, ArchiveError::BadBlob { offset, len });
        }
        let mut long = bytes.clone();
        long[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(
            Archive::parse(&long).unwrap_err(),
            ArchiveError::BadDescription
        );
    }

    #[test]
    fn what_is_no_archive_is_told_apart() {
        let bytes = Builder::new().finish(&system()).unwrap();
        assert_eq!(Archive::parse(&[]).unwrap_err(), ArchiveError::NotAnArchive);
        assert_eq!(
            Archive::parse(&[0; 64]).unwrap_err(),
            ArchiveError::NotAnArchive
        );
        let mut newer = bytes;
        newer[8] = 2;
        assert_eq!(
            Archive::parse(&newer).unwrap_err(),
            ArchiveError::Version { found: 2 }
        );
    }
}
