//! What is encrypted, with what, and in which pieces.
//!
//! A client's work comes in *jobs*: the input file, repeated whole until it is at least
//! [`DEMAND_BYTES`] long. A job is one AES-256-CTR stream with an initialisation vector of its
//! own, so no two jobs have the same ciphertext and a stale result cannot pass for a fresh one.

/// The key. A demonstration has no secret: it is the example key of FIPS 197, so that anybody can
/// decrypt the ciphertext with any tool.
pub const KEY: [u8; 32] = [
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
    0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f,
];

/// Bytes of an AES block.
pub const BLOCK_BYTES: u64 = 16;

/// Bytes that the server encrypts between two consistent states, its unit of rollback: what a
/// client loses at most when its budget runs out. A multiple of [`BLOCK_BYTES`].
pub const BATCH_BYTES: u64 = 512;

/// Bytes that a client wants encrypted per period, at least: 1 MiB.
pub const DEMAND_BYTES: u64 = 1 << 20;

/// Largest input file, bytes: the 4 MiB that a client shares with the server in thesis 8.3.2.
pub const MAX_INPUT_BYTES: u64 = 4 << 20;

/// Bytes of a job over an input of `input_bytes`, which must not be 0: less than 2 MiB, or one
/// pass over a longer input.
pub const fn job_bytes(input_bytes: u64) -> u64 {
    input_bytes * DEMAND_BYTES.div_ceil(input_bytes)
}

/// The initialisation vector of job `job` of the client with `badge`: the first counter block.
pub fn initial_counter(badge: u64, job: u64) -> [u8; 16] {
    let mut block = [0; 16];
    block[..4].copy_from_slice(&(badge as u32).to_be_bytes());
    block[4..8].copy_from_slice(&(job as u32).to_be_bytes());
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_whole_passes_over_the_input() {
        assert_eq!(job_bytes(1), DEMAND_BYTES);
        assert_eq!(job_bytes(DEMAND_BYTES - 1), 2 * (DEMAND_BYTES - 1));
        assert_eq!(job_bytes(DEMAND_BYTES), DEMAND_BYTES);
        assert_eq!(job_bytes(MAX_INPUT_BYTES), MAX_INPUT_BYTES);
        for input in [2, 7, 1000, 4096, 123_457, DEMAND_BYTES + 1] {
            let job = job_bytes(input);
            assert!(job % input == 0 && job >= DEMAND_BYTES, "{input}");
        }
    }

    #[test]
    fn no_two_streams_share_a_counter_block() {
        // 2^64 blocks lie between two vectors: more than any job has.
        let streams = [(1, 0), (1, 1), (2, 0), (2, 1)];
        let vectors: std::collections::BTreeSet<_> = streams
            .iter()
            .map(|&(badge, job)| initial_counter(badge, job))
            .collect();
        assert_eq!(vectors.len(), streams.len());
        assert!(vectors.iter().all(|vector| vector[8..] == [0; 8]));
    }
}
