//! Bytes of an input, taken from its beginning.

/// What is left of an input. Past its end there are zeroes, so that every input is complete.
pub struct Bytes<'a> {
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    pub fn new(input: &'a [u8]) -> Self {
        Bytes { rest: input }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// All that is left.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub fn byte(&mut self) -> u8 {
        match self.rest.split_first() {
            Some((&first, rest)) => {
                self.rest = rest;
                first
            }
            None => 0,
        }
    }

    /// A little-endian number of `size` bytes, up to 8.
    pub fn number(&mut self, size: u32) -> u64 {
        (0..size).fold(0, |value, i| value | u64::from(self.byte()) << (8 * i))
    }
}
