//! The memory that the client shares with the server, and the copy of its first result.

use alloc::format;
use core::slice;

use demo_protocol::digest::Digest;
use sandglass::env::MemoryRegion;
use sandglass::Environment;

/// Bytes that are digested between two looks at the clock: a few µs.
const DIGEST_PIECE: u64 = 8 << 10;

/// The shared memory. All regions are at least a job long; the first pass's, as the input.
pub struct Buffers {
    /// Ours to write; the server reads it.
    plaintext: MemoryRegion,
    /// The server's to write.
    ciphertext: MemoryRegion,
    /// Ours to write; the recorder sends it to the host.
    first_pass: Option<MemoryRegion>,
}

impl Buffers {
    /// # Panics
    /// If they are too small for a job of `job_bytes`: the description of the system is wrong.
    pub fn new(env: &Environment, job_bytes: u64) -> Self {
        let name = env.name();
        let buffers = Self {
            plaintext: env.memory(&format!("{name}.plaintext")),
            ciphertext: env.memory(&format!("{name}.ciphertext")),
            first_pass: env.find_memory(&format!("{name}.first-pass")),
        };
        for region in [buffers.plaintext, buffers.ciphertext] {
            assert!(
                region.len >= job_bytes,
                "a buffer of {} bytes is too small for a job of {job_bytes}",
                region.len
            );
        }
        buffers
    }

    /// Repeats the input over the plaintext, as often as it fits whole.
    pub fn fill(&mut self, input: MemoryRegion) {
        let len = input.len as usize;
        // SAFETY: the input is mapped read-only for good, and `len` bytes long.
        let input = unsafe { slice::from_raw_parts(input.as_mut_ptr(), len) };
        // SAFETY: only this component writes here. The server does not read before it is asked.
        let plaintext = unsafe {
            slice::from_raw_parts_mut(self.plaintext.as_mut_ptr(), self.plaintext.len as usize)
        };
        for copy in plaintext.chunks_exact_mut(len) {
            copy.copy_from_slice(input);
        }
    }

    /// Copies the first `len` bytes of ciphertext to where the recorder finds them, if it wants
    /// them.
    pub fn keep_first_pass(&mut self, len: u64) {
        let Some(first_pass) = self.first_pass else {
            return;
        };
        let len = len.min(first_pass.len) as usize;
        // SAFETY: both are mapped for good and long enough; the server, which writes to the
        // ciphertext, waits for our next request.
        unsafe {
            first_pass
                .as_mut_ptr()
                .copy_from_nonoverlapping(self.ciphertext.as_mut_ptr(), len);
        }
    }

    /// Adds `len` bytes of ciphertext at `from` to `digest`; calls `touch` every few µs.
    pub fn digest(&self, digest: &mut Digest, from: u64, len: u64, mut touch: impl FnMut()) {
        let end = from + len;
        let mut at = from;
        while at < end {
            let piece = DIGEST_PIECE.min(end - at);
            // SAFETY: `new` made sure that a job fits, and progress never exceeds it. The server
            // does not write before the next request.
            let bytes = unsafe {
                let start = self.ciphertext.as_mut_ptr().add(at as usize);
                slice::from_raw_parts(start, piece as usize)
            };
            digest.bytes(bytes);
            touch();
            at += piece;
        }
    }
}
