//! What is encrypted, with what, and in which pieces.
//!
//! A client's text is the input file, over and over. Its buffers hold a *lap*: as many whole
//! copies of the file as make what it wants in a period ([`lap_bytes`]). Each lap is one AES-256-CTR stream with an
//! initialisation vector of its own, so no two laps have the same ciphertext and a stale result
//! cannot pass for a fresh one.

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

const _: () = assert!(BATCH_BYTES.is_multiple_of(BLOCK_BYTES));

/// Largest input file, and the most that a lap is made to hold, bytes: the 4 MiB that a client
/// shares with the server in thesis 8.3.2.
pub const MAX_INPUT_BYTES: u64 = 4 << 20;

/// Bytes of a lap over an input of `input_bytes`, for a client that wants `demand_bytes` in a period;
/// neither is 0. At least the demand, or [`MAX_INPUT_BYTES`] of a larger one, which then takes several
/// requests; less than twice that, or one copy of a longer input.
pub const fn lap_bytes(input_bytes: u64, demand_bytes: u64) -> u64 {
    let least = if demand_bytes < MAX_INPUT_BYTES {
        demand_bytes
    } else {
        MAX_INPUT_BYTES
    };
    input_bytes * least.div_ceil(input_bytes)
}

/// The initialisation vector of lap `lap` of the client with `badge`: the first counter block.
pub fn initial_counter(badge: u64, lap: u64) -> [u8; 16] {
    let mut block = [0; 16];
    block[..4].copy_from_slice(&(badge as u32).to_be_bytes());
    block[4..8].copy_from_slice(&(lap as u32).to_be_bytes());
    block
}

/// Bytes to ask for at `at`, a multiple of [`BATCH_BYTES`], in a lap of `lap_bytes`, to get
/// `wanted` more: so many that the next request begins at a whole batch too, or at the next lap.
pub const fn request_bytes(lap_bytes: u64, at: u64, wanted: u64) -> u64 {
    let batches = wanted.next_multiple_of(BATCH_BYTES);
    let left = lap_bytes - at;
    if batches < left {
        batches
    } else {
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMAND_BYTES: u64 = 384 << 10;

    #[test]
    fn a_lap_is_whole_copies_of_the_input() {
        let lap = |input| lap_bytes(input, DEMAND_BYTES);
        assert_eq!(lap(1), DEMAND_BYTES);
        assert_eq!(lap(DEMAND_BYTES - 1), 2 * (DEMAND_BYTES - 1));
        assert_eq!(lap(DEMAND_BYTES), DEMAND_BYTES);
        assert_eq!(lap(MAX_INPUT_BYTES), MAX_INPUT_BYTES);
        for input in [2, 7, 1000, 4096, 123_457, DEMAND_BYTES + 1] {
            let lap = lap(input);
            assert!(lap % input == 0 && lap >= DEMAND_BYTES, "{input}");
        }
    }

    #[test]
    fn a_lap_is_no_longer_than_what_is_shared_however_much_is_wanted() {
        for input in [1, 1000, MAX_INPUT_BYTES - 1, MAX_INPUT_BYTES] {
            let lap = lap_bytes(input, u64::MAX);
            assert!(lap.is_multiple_of(input), "{input}");
            assert!(
                (MAX_INPUT_BYTES..2 * MAX_INPUT_BYTES).contains(&lap),
                "{input}"
            );
        }
    }

    #[test]
    fn requests_begin_at_whole_batches_and_end_with_the_lap() {
        for lap in [DEMAND_BYTES, DEMAND_BYTES + 1, DEMAND_BYTES + 700] {
            let mut at = 0;
            while at < lap {
                assert_eq!(at % BATCH_BYTES, 0);
                let len = request_bytes(lap, at, 10_000);
                assert!(len >= 10_000 || at + len == lap);
                at += len;
            }
            assert_eq!(at, lap);
        }
    }

    #[test]
    fn no_two_streams_share_a_counter_block() {
        // 2^64 blocks lie between two vectors: more than any lap has.
        let streams = [(1, 0), (1, 1), (2, 0), (2, 1)];
        let vectors: std::collections::BTreeSet<_> = streams
            .iter()
            .map(|&(badge, lap)| initial_counter(badge, lap))
            .collect();
        assert_eq!(vectors.len(), streams.len());
        assert!(vectors.iter().all(|vector| vector[8..] == [0; 8]));
    }
}
