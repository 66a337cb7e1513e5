//! A digest over ciphertext: cheap enough to be taken of every byte on the machine, and taken
//! again on the host over what an independent implementation computes. It finds differences; it
//! does not withstand deliberate construction.

/// The digest of the bytes so far, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Digest {
    /// Of no bytes.
    pub const EMPTY: Self = Self(0x5361_6e64_676c_6173);
    /// Bytes that are taken at a time.
    pub const WORD_BYTES: usize = 8;

    /// Continues a digest.
    pub const fn from_value(value: u64) -> Self {
        Self(value)
    }

    pub const fn value(self) -> u64 {
        self.0
    }

    /// Adds eight bytes, as a little-endian number.
    #[inline(always)]
    pub const fn word(&mut self, word: u64) {
        // Multiplication by an odd number and rotation lose nothing: two streams that differ in
        // one word have different digests from there on, as long as the rest is equal.
        self.0 = (self.0 ^ word)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
    }

    /// Adds bytes; a last piece shorter than a word is filled up with zeros, so only the end of
    /// a lap may be one.
    pub fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: every eight bytes are a number.
        let (before, words, after) = unsafe { bytes.align_to::<u64>() };
        if !before.is_empty() {
            return self.unaligned(bytes);
        }
        // Where it is aligned, that is one load, also for a processor of whose memory the compiler does not know that it
        // can be read at any address.
        for word in words {
            self.word(u64::from_le(*word));
        }
        self.unaligned(after);
    }

    /// The same, wherever they are.
    fn unaligned(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(Self::WORD_BYTES);
        for word in &mut words {
            self.word(little_endian(word));
        }
        if !words.remainder().is_empty() {
            self.word(little_endian(words.remainder()));
        }
    }
}

/// At most eight bytes as a number, filled up with zeros.
#[inline(always)]
fn little_endian(bytes: &[u8]) -> u64 {
    let mut word = [0; Digest::WORD_BYTES];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> u64 {
        let mut digest = Digest::EMPTY;
        digest.bytes(bytes);
        digest.value()
    }

    #[test]
    fn every_bit_counts() {
        let text: Vec<u8> = (0..100).collect();
        let whole = of(&text);
        for bit in 0..text.len() * 8 {
            let mut changed = text.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(of(&changed), whole, "bit {bit}");
        }
        assert_ne!(of(&text[8..]), whole);
    }

    #[test]
    fn pieces_of_whole_words_give_the_same() {
        let text: Vec<u8> = (0..100).collect();
        let mut digest = Digest::EMPTY;
        for piece in [&text[..16], &text[16..64], &text[64..]] {
            digest.bytes(piece);
        }
        assert_eq!(digest.value(), of(&text));
    }

    #[test]
    fn it_does_not_matter_where_bytes_are() {
        let text: Vec<u8> = (0..100).collect();
        for begin in 1..16 {
            let moved = [&vec![0; begin], &text[..]].concat();
            assert_eq!(of(&moved[begin..]), of(&text), "{begin} bytes further");
        }
    }
}
