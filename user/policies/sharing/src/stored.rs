//! A message that is kept: while one waits, others arrive.

use sandglass::abi::message::MAX_LENGTH;
use sandglass::Message;

/// A message without capabilities.
pub struct Stored {
    label: u64,
    len: usize,
    words: [u64; MAX_LENGTH],
}

impl Default for Stored {
    fn default() -> Self {
        Self {
            label: 0,
            len: 0,
            words: [0; MAX_LENGTH],
        }
    }
}

impl Stored {
    /// Keeps the message that was just received.
    pub fn store(&mut self, message: Message) {
        self.label = message.label();
        self.len = message.copy_words(&mut self.words);
    }

    /// The message, to be sent next.
    pub fn message(&self) -> Message {
        Message::long(self.label, &self.words[..self.len])
    }
}
