//! Sending the entries of the record ([`demo_protocol::record`]).

use core::slice;

use demo_protocol::record::{Buffer, Entry, BEGIN, CIPHERTEXT_BYTES};
use sandglass::arch::OutputPort;
use sandglass::env::MemoryRegion;
use sandglass::Error;

/// The record, on its way to the host.
pub struct Record {
    port: OutputPort,
}

impl Record {
    pub fn begin(port: OutputPort) -> Result<Self, Error> {
        port.write(&BEGIN)?;
        Ok(Self { port })
    }

    pub fn send(&self, entry: &Entry) -> Result<(), Error> {
        let mut buffer = Buffer::new();
        let bytes = buffer.encode(entry).expect("the parts of what is long fit");
        self.port.write(bytes)
    }

    /// Sends the first `len` bytes of memory as ciphertext.
    pub fn ciphertext(&self, memory: MemoryRegion, len: u64) -> Result<(), Error> {
        let len = len.min(memory.len);
        // SAFETY: mapped for good; who writes there does not run while the recorder does.
        let bytes = unsafe { slice::from_raw_parts(memory.as_mut_ptr(), len as usize) };
        let mut parts = bytes.chunks(CIPHERTEXT_BYTES);
        parts.try_for_each(|part| self.send(&Entry::Ciphertext(part)))
    }
}
