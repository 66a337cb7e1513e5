//! The ciphertext once more, by an implementation that shares nothing with the server's: the
//! server uses RustCrypto's bit-sliced AES, this uses `libaes`, a port of OpenSSL's tables.

use demo_protocol::cipher::{initial_counter, BLOCK_BYTES, KEY};
use demo_protocol::digest::Digest;
use libaes::Cipher;

/// Encrypts the input as a client has it encrypted.
pub struct Reference<'i> {
    cipher: Cipher,
    input: &'i [u8],
    /// Bytes of a lap.
    lap_bytes: u64,
}

impl<'i> Reference<'i> {
    pub fn new(input: &'i [u8], lap_bytes: u64) -> Self {
        Self {
            cipher: Cipher::new_256(&KEY),
            input,
            lap_bytes,
        }
    }

    /// Bytes of a lap.
    pub const fn lap_bytes(&self) -> u64 {
        self.lap_bytes
    }

    /// The ciphertext of the first copy of the input, by the client with `badge`.
    pub fn first_copy(&self, badge: u64) -> Vec<u8> {
        self.encrypt(badge, 0, self.input.len())
    }

    /// The digest of the first `bytes` bytes of ciphertext of the client with `badge`, lap after
    /// lap.
    pub fn digest(&self, badge: u64, bytes: u64) -> u64 {
        let mut digest = Digest::EMPTY;
        let mut rest = bytes;
        for lap in 0.. {
            let len = rest.min(self.lap_bytes);
            if len == 0 {
                break;
            }
            digest.bytes(&self.encrypt(badge, lap, len as usize));
            rest -= len;
        }
        digest.value()
    }

    /// The first `len` bytes of a lap's ciphertext.
    fn encrypt(&self, badge: u64, lap: u64, len: usize) -> Vec<u8> {
        let mut text = self.keystream(initial_counter(badge, lap), len);
        for copy in text.chunks_mut(self.input.len().max(1)) {
            add(copy, self.input);
        }
        text
    }

    /// The key stream of CTR mode, which `libaes` does not have. It has CFB, whose decryption of
    /// c1 c2 .. with initialisation vector c0 is E(c0)^c1 E(c1)^c2 ..: with successive counter
    /// blocks as c, which is the key stream except for the counters.
    fn keystream(&self, initial: [u8; 16], len: usize) -> Vec<u8> {
        let first = u128::from_be_bytes(initial);
        let blocks = len.div_ceil(BLOCK_BYTES as usize) as u128;
        let mut counters = Vec::with_capacity(len.next_multiple_of(BLOCK_BYTES as usize));
        for number in 1..=blocks {
            counters.extend_from_slice(&first.wrapping_add(number).to_be_bytes());
        }
        let mut stream = self.cipher.cfb128_decrypt(&initial, &counters);
        add(&mut stream, &counters);
        stream.truncate(len);
        stream
    }
}

/// Adds the bits of `other`, which is as long or longer, to those of `text`: a word at a time, as nothing here is optimised.
fn add(text: &mut [u8], other: &[u8]) {
    let (words, rest) = text.as_chunks_mut::<8>();
    let (others, others_rest) = other.as_chunks::<8>();
    let others_rest = match words.len() < others.len() {
        true => &others[words.len()][..],
        false => others_rest,
    };
    for (word, other) in words.iter_mut().zip(others) {
        *word = (u64::from_ne_bytes(*word) ^ u64::from_ne_bytes(*other)).to_ne_bytes();
    }
    for (byte, other) in rest.iter_mut().zip(others_rest) {
        *byte ^= other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST SP 800-38A, F.5.5 (CTR-AES256.Encrypt).
    #[test]
    fn the_key_stream_is_that_of_the_standard() {
        const KEY: &str = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";
        const COUNTER: &str = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
        const PLAIN: &str = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51\
                             30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";
        const CIPHER: &str = "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5\
                              2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6";
        let reference = Reference {
            cipher: Cipher::new_256(&bytes(KEY).try_into().unwrap()),
            input: &[],
            lap_bytes: 1,
        };
        let stream = reference.keystream(bytes(COUNTER).try_into().unwrap(), 64);
        let expected: Vec<u8> = bytes(PLAIN)
            .iter()
            .zip(bytes(CIPHER))
            .map(|(plain, cipher)| plain ^ cipher)
            .collect();
        assert_eq!(stream, expected);
        let shorter = reference.keystream(bytes(COUNTER).try_into().unwrap(), 33);
        assert_eq!(shorter, expected[..33]);
    }

    #[test]
    fn a_lap_repeats_the_input_in_one_stream() {
        let reference = Reference::new(b"grains", 18);
        let whole = reference.encrypt(1, 0, 18);
        assert_eq!(whole[..6], reference.first_copy(1));
        let repeated = Reference::new(b"grainsgrainsgrains", 18);
        assert_eq!(whole, repeated.first_copy(1));
    }

    #[test]
    fn digests_cover_lap_after_lap() {
        let reference = Reference::new(b"grains", 18);
        let mut expected = Digest::EMPTY;
        expected.bytes(&reference.encrypt(2, 0, 18));
        expected.bytes(&reference.encrypt(2, 1, 8));
        assert_eq!(reference.digest(2, 26), expected.value());
        assert_ne!(reference.digest(1, 26), expected.value());
        assert_eq!(reference.digest(1, 0), Digest::EMPTY.value());
    }

    #[test]
    fn bits_are_added_at_every_length() {
        let (plain, other): (Vec<u8>, Vec<u8>) = ((0..40).collect(), (100..140).rev().collect());
        for length in 0..40 {
            let mut text = plain[..length].to_vec();
            add(&mut text, &other);
            let bits = plain.iter().zip(&other).map(|(plain, other)| plain ^ other);
            assert_eq!(text, bits.take(length).collect::<Vec<u8>>());
        }
    }

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect()
    }
}
