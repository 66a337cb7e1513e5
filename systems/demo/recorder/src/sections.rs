//! Writing the sections of the record ([`demo_protocol::record`]).

use core::slice;

use demo_protocol::record::{header, Tag};
use sandglass::env::MemoryRegion;
use sandglass::serial::SerialPort;
use sandglass::Error;

/// The record, on its way to the host.
pub struct Record {
    port: SerialPort,
}

impl Record {
    pub const fn new(port: SerialPort) -> Self {
        Self { port }
    }

    /// Sends a section of words. The words are counted first: the iterator must be repeatable.
    pub fn section(&self, tag: Tag, words: impl Iterator<Item = u64> + Clone) -> Result<(), Error> {
        let bytes = words.clone().count() as u64 * 8;
        self.port.write(&header(tag, bytes))?;
        for word in words {
            self.port.write(&word.to_le_bytes())?;
        }
        Ok(())
    }

    pub fn words(&self, tag: Tag, words: &[u64]) -> Result<(), Error> {
        self.section(tag, words.iter().copied())
    }

    /// Sends the first `len` bytes of memory.
    pub fn memory(&self, tag: Tag, memory: MemoryRegion, len: u64) -> Result<(), Error> {
        let len = len.min(memory.len);
        self.port.write(&header(tag, len))?;
        // SAFETY: mapped for good; who writes there does not run while the recorder does.
        let bytes = unsafe { slice::from_raw_parts(memory.as_mut_ptr(), len as usize) };
        self.port.write(bytes)
    }

    pub fn end(self) -> Result<(), Error> {
        self.port.write(&header(Tag::End, 0))
    }
}
