//! The machine's memory, as a file of the host: where the logs are, and what is in them.
//!
//! QEMU keeps the machine's memory in a file that it shares; whoever reads that disturbs nothing.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use anyhow::{bail, ensure, Context, Result};
use nix::errno::Errno;
use nix::unistd::{lseek, Whence};
use sandglass_abi::trace::{header, Tag, RECORD_BYTES, RECORD_WORDS};

use crate::arch::Arch;
use crate::qemu::Machine;

/// Memory up to here lies in one piece, as in the file.
pub const MOST_MIB: u32 = 3 << 10;
const MIB: u64 = 1 << 20;

/// A place of a log without a record.
const EMPTY: [u8; RECORD_BYTES as usize] = [0; RECORD_BYTES as usize];

/// The words of a record.
pub type Words = [u64; RECORD_WORDS];

/// The memory of a machine that runs, or has run. The file goes with this value.
#[derive(Debug)]
pub struct Memory {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// Physical address of its first byte.
    start: u64,
}

/// The log of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Log {
    pub core: u64,
    /// Physical address.
    pub start: u64,
    pub bytes: u64,
}

impl Log {
    /// Places for records.
    pub fn places(&self) -> u64 {
        self.bytes / RECORD_BYTES
    }
}

impl Memory {
    /// Makes memory for a machine of `arch` of `mib`, at `path`.
    ///
    /// # Errors
    /// The file cannot be made; or the machine has too much.
    pub fn make(arch: Arch, path: PathBuf, mib: u32) -> Result<Self> {
        ensure!(
            mib <= MOST_MIB,
            "a machine of {mib} MiB, the memory for the trace included, cannot be traced: {MOST_MIB} \
             MiB at most"
        );
        let make = || {
            let file = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(&path)?;
            file.set_len(u64::from(mib) * MIB)?;
            Ok::<_, std::io::Error>(file)
        };
        let file = make().with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self {
            path,
            file,
            bytes: u64::from(mib) * MIB,
            start: arch.memory_start(),
        })
    }

    /// Lets `machine`, which has as much memory, run on this.
    ///
    /// # Errors
    /// The path is not UTF-8.
    pub fn lend(&self, machine: &mut Machine) -> Result<[String; 2]> {
        let path = self.path.to_str().context("a path that is not UTF-8")?;
        machine.model.push_str(",memory-backend=traced");
        let size = self.bytes / MIB;
        Ok([
            "-object".to_owned(),
            format!(
                "memory-backend-file,id=traced,size={size}M,share=on,mem-path={}",
                path.replace(',', ",,")
            ),
        ])
    }

    /// Where the logs are; `None` if that is not known yet.
    ///
    /// # Errors
    /// The memory cannot be read.
    pub fn logs(&self) -> Result<Option<Vec<Log>>> {
        const PAGE: u64 = header::BYTES as u64;
        const PAGES_AT_ONCE: u64 = 256;
        let first = header::MAGIC[0].to_le_bytes();
        let mut block = vec![0; (PAGE * PAGES_AT_ONCE) as usize];
        let mut start = 0;
        while let Some(written) = self.written_from(start) {
            start = written / PAGE * PAGE;
            block.truncate((self.bytes - start).min(PAGE * PAGES_AT_ONCE) as usize);
            self.read(self.start + start, &mut block)?;
            let pages = block.chunks_exact(PAGE as usize);
            for (page, at) in pages.zip((self.start + start..).step_by(PAGE as usize)) {
                if page.starts_with(&first) {
                    if let Some(logs) = header_of(page, at) {
                        return Ok(Some(logs));
                    }
                }
            }
            start += block.len() as u64;
        }
        Ok(None)
    }

    /// The first place of the file from `at` on that has been written to; `None` if there is none. Most of the memory never is, and
    /// is no part of the file: to look through it takes longer than many runs.
    fn written_from(&self, at: u64) -> Option<u64> {
        if at >= self.bytes {
            return None;
        }
        match lseek(&self.file, i64::try_from(at).ok()?, Whence::SeekData) {
            Ok(written) => u64::try_from(written).ok(),
            Err(Errno::ENXIO) => None,
            // The file system does not know: it may all be written.
            Err(_) => Some(at),
        }
    }

    /// The words of the records in `log`, in the order of their places.
    ///
    /// # Errors
    /// The memory cannot be read.
    pub fn records(&self, log: &Log) -> Result<Vec<Words>> {
        let mut bytes = vec![0; (log.places() * RECORD_BYTES) as usize];
        self.read(log.start, &mut bytes)?;
        let places = bytes.chunks_exact(RECORD_BYTES as usize);
        // Most places are empty, which is seen at once.
        let used = places.filter(|place| **place != EMPTY).map(words_of);
        Ok(used.filter(is_written).collect())
    }

    /// The words at `place` of `log`, which [are](is_written) a record or not.
    ///
    /// # Errors
    /// The memory cannot be read.
    pub fn record(&self, log: &Log, place: u64) -> Result<Words> {
        let mut bytes = [0; RECORD_BYTES as usize];
        self.read(log.start + place * RECORD_BYTES, &mut bytes)?;
        Ok(words_of(&bytes))
    }

    /// Reads what is at the physical address `at`.
    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<()> {
        let offset = at.checked_sub(self.start);
        let offset = offset.filter(|offset| offset + bytes.len() as u64 <= self.bytes);
        let Some(offset) = offset else {
            bail!("the log at {at:#x} is outside of the machine's memory");
        };
        self.file
            .read_exact_at(bytes, offset)
            .with_context(|| format!("cannot read {}", self.path.display()))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // It is of no use to anybody; if it stays, a later run removes it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether `words` are a record: one that is being written has no number yet.
pub fn is_written(words: &Words) -> bool {
    Tag::from_word(words[0]).sequence != 0
}

fn words_of(bytes: &[u8]) -> Words {
    let mut words = [0; RECORD_WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    }
    words
}

/// The logs that the header on `page`, which is at the physical address `at`, names.
fn header_of(page: &[u8], at: u64) -> Option<Vec<Log>> {
    let word = |i: usize| {
        let bytes = page.get(i * 8..)?.first_chunk::<8>()?;
        Some(u64::from_le_bytes(*bytes))
    };
    let is_magic = header::MAGIC
        .iter()
        .enumerate()
        .all(|(i, &magic)| word(i) == Some(magic));
    if !is_magic || word(header::ADDRESS)? != at {
        return None;
    }
    (0..usize::try_from(word(header::LOGS)?).ok()?)
        .map(|i| {
            let first = header::FIRST_LOG + i * header::LOG_WORDS;
            Some(Log {
                core: word(first)?,
                start: word(first + 1)?,
                bytes: word(first + 2)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(name: &str) -> Memory {
        let path = std::env::temp_dir().join(format!("sandglass-{name}-{}", std::process::id()));
        Memory::make(Arch::X86_64, path, 4).unwrap()
    }

    fn write(memory: &Memory, at: u64, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        memory.file.write_all_at(&bytes, at).unwrap();
    }

    #[test]
    fn the_header_says_where_the_logs_are() {
        let memory = memory("header");
        assert_eq!(memory.logs().unwrap(), None);
        let mut page = header::MAGIC.to_vec();
        page.extend([0x30_0000, 1, 2, 0x20_0000, 4096]);
        // A copy of the page somewhere else is none.
        write(&memory, 0x10_0000, &page);
        assert_eq!(memory.logs().unwrap(), None);
        write(&memory, 0x30_0000, &page);
        let log = Log {
            core: 2,
            start: 0x20_0000,
            bytes: 4096,
        };
        assert_eq!(memory.logs().unwrap(), Some(vec![log]));

        write(&memory, 0x20_0000 + 80, &[7, 1, 2, 3, 4]);
        // One that is being written: all but its number is there.
        write(&memory, 0x20_0000 + 120, &[7 << 32, 1, 2, 3, 4]);
        assert_eq!(memory.records(&log).unwrap(), [[7, 1, 2, 3, 4]]);
        assert_eq!(memory.record(&log, 2).unwrap(), [7, 1, 2, 3, 4]);
        assert!(!is_written(&memory.record(&log, 3).unwrap()));
        let path = memory.path.clone();
        drop(memory);
        assert!(!path.exists());
    }
}
