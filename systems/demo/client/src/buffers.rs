//! The memory that the client shares with the server, and the copy of its first result.

use alloc::format;
use core::slice;

use demo_protocol::cipher::lap_bytes;
use demo_protocol::digest::Digest;
use sandglass::env::MemoryRegion;
use sandglass::Environment;

/// Bytes that are digested between two looks at the clock: a few µs.
const DIGEST_PIECE: u64 = 8 << 10;

/// The shared memory, filled with a lap of text.
pub struct Buffers {
    /// Of the input, and of a lap.
    input_bytes: u64,
    lap_bytes: u64,
    /// The server's to write; at least a lap long.
    ciphertext: MemoryRegion,
    /// Ours to write; the recorder sends it to the host. As long as the input.
    first_copy: Option<MemoryRegion>,
}

impl Buffers {
    /// Fills the plaintext, which the server reads, for a client that wants `demand_bytes` in a period.
    ///
    /// # Panics
    /// If memory is too small for a lap: the description of the system is wrong.
    pub fn new(env: &Environment, demand_bytes: u64) -> Self {
        let name = env.name();
        let input = env.memory("input");
        let plaintext = env.memory(&format!("{name}.plaintext"));
        let buffers = Self {
            input_bytes: input.len,
            lap_bytes: lap_bytes(input.len, demand_bytes),
            ciphertext: env.memory(&format!("{name}.ciphertext")),
            first_copy: env.find_memory(&format!("{name}.first-copy")),
        };
        for region in [plaintext, buffers.ciphertext] {
            assert!(
                region.len >= buffers.lap_bytes,
                "a buffer of {} bytes is too small for a lap of {}",
                region.len,
                buffers.lap_bytes
            );
        }
        repeat(input, plaintext);
        buffers
    }

    pub const fn lap_bytes(&self) -> u64 {
        self.lap_bytes
    }

    /// Copies the ciphertext of the first copy of the input to where the recorder finds it, if it
    /// wants it.
    pub fn keep_first_copy(&mut self) {
        let Some(first_copy) = self.first_copy else {
            return;
        };
        let len = self.input_bytes.min(first_copy.len) as usize;
        // SAFETY: both are mapped for good and long enough; the server, which writes to the
        // ciphertext, waits for our next request.
        unsafe {
            first_copy
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
            // SAFETY: `new` made sure that a lap fits, and progress never exceeds it. The server
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

/// Repeats the input over the plaintext, as often as it fits whole.
fn repeat(input: MemoryRegion, plaintext: MemoryRegion) {
    let len = input.len as usize;
    // SAFETY: the input is mapped read-only for good, and `len` bytes long.
    let input = unsafe { slice::from_raw_parts(input.as_mut_ptr(), len) };
    // SAFETY: only this component writes here, and the server does not read before it is asked.
    let plaintext =
        unsafe { slice::from_raw_parts_mut(plaintext.as_mut_ptr(), plaintext.len as usize) };
    for copy in plaintext.chunks_exact_mut(len) {
        copy.copy_from_slice(input);
    }
}
