//! Messages: a label, up to 120 words, up to three capabilities (ABI 01, sections 2, 3 and 5.6).
//!
//! The first four words travel in registers and live in [`Message`]; the others live in the IPC
//! buffer of the current thread. A message with more than four words is therefore complete only
//! until the next message of the same thread.

use sandglass_abi::message::{ipc_buffer, MessageInfo, MAX_EXTRA_CAPS, MAX_LENGTH, REGISTER_MRS};

use crate::cap::CPtr;
use crate::sys::{RawReceived, Registers};
use crate::thread_block;

/// A message to send, or one that was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message {
    info: MessageInfo,
    registers: Registers,
}

/// A received message or signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Badge of the capability that the sender used; of a signal, all badges or-ed; 0 also when
    /// a non-blocking receive found no sender.
    pub badge: u64,
    /// After a signal, empty.
    pub message: Message,
}

impl Message {
    /// Label 0 and no words.
    pub const EMPTY: Self = Self {
        info: MessageInfo(0),
        registers: [0; REGISTER_MRS],
    };

    /// A message of at most four words, which needs no IPC buffer.
    #[inline(always)]
    pub const fn new<const N: usize>(label: u64, words: [u64; N]) -> Self {
        const {
            assert!(
                N <= REGISTER_MRS,
                "longer messages are made by `Message::long`"
            )
        };
        let mut registers = [0; REGISTER_MRS];
        let mut i = 0;
        while i < N {
            registers[i] = words[i];
            i += 1;
        }
        Self {
            info: MessageInfo::new(label, 0, 0, N),
            registers,
        }
    }

    /// A message of any length up to 120 words (the rest is cut off); words from the fifth on go
    /// to the current thread's IPC buffer.
    #[inline]
    pub fn long(label: u64, words: &[u64]) -> Self {
        let words = &words[..words.len().min(MAX_LENGTH)];
        let mut registers = [0; REGISTER_MRS];
        for (i, &word) in words.iter().enumerate() {
            match registers.get_mut(i) {
                Some(register) => *register = word,
                None => thread_block::write_word(ipc_buffer::MESSAGE + i, word),
            }
        }
        Self {
            info: MessageInfo::new(label, 0, 0, words.len()),
            registers,
        }
    }

    /// The same message with capabilities to send along, whose pointers go to the current
    /// thread's IPC buffer. At most three; the rest is cut off.
    #[inline(always)]
    pub fn with_caps(self, caps: &[CPtr]) -> Self {
        let count = caps.len().min(MAX_EXTRA_CAPS);
        for (i, cap) in caps.iter().take(count).enumerate() {
            thread_block::write_word(ipc_buffer::CAPS_OR_BADGES + i, cap.raw());
        }
        let info = MessageInfo::new(self.info.label(), 0, count, self.info.length());
        Self { info, ..self }
    }

    #[inline(always)]
    pub const fn info(&self) -> MessageInfo {
        self.info
    }

    #[inline(always)]
    pub const fn label(&self) -> u64 {
        self.info.label()
    }

    /// Number of words.
    #[inline(always)]
    pub const fn len(&self) -> usize {
        self.info.length()
    }

    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Words 0 to 3, whether or not they belong to the message.
    #[inline(always)]
    pub const fn registers(&self) -> Registers {
        self.registers
    }

    /// Word `i` of the message, from the IPC buffer from the fifth on; 0 beyond the end.
    #[inline(always)]
    pub fn word(&self, i: usize) -> u64 {
        if i >= self.len() {
            0
        } else if i < REGISTER_MRS {
            self.registers[i]
        } else {
            thread_block::read_word(ipc_buffer::MESSAGE + i)
        }
    }

    /// Copies the message's words to `words` and returns how many there were.
    #[inline]
    pub fn copy_words(&self, words: &mut [u64]) -> usize {
        let count = self.len().min(words.len());
        for (i, word) in words.iter_mut().take(count).enumerate() {
            *word = self.word(i);
        }
        count
    }

    /// Whether capability `i` arrived as a badge of the endpoint it was sent through, and which.
    #[inline]
    pub fn unwrapped_badge(&self, i: usize) -> Option<u64> {
        let unwrapped = i < MAX_EXTRA_CAPS && self.info.caps_unwrapped() >> i & 1 == 1;
        unwrapped.then(|| thread_block::read_word(ipc_buffer::CAPS_OR_BADGES + i))
    }

    /// A message of parts: what it consists of, and its first four words; the others are in the current thread's IPC
    /// buffer.
    #[inline(always)]
    pub const fn from_parts(info: MessageInfo, registers: Registers) -> Self {
        Self { info, registers }
    }
}

impl From<RawReceived> for Received {
    #[inline(always)]
    fn from(raw: RawReceived) -> Self {
        Self {
            badge: raw.badge,
            message: Message::from_parts(raw.info, raw.registers),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_beyond_the_length_read_as_zero() {
        let message = Message::new(7, [1, 2]);
        assert_eq!((message.label(), message.len()), (7, 2));
        assert_eq!(
            [message.word(0), message.word(1), message.word(2)],
            [1, 2, 0]
        );
        assert_eq!(message.word(usize::MAX), 0);
    }

    #[test]
    fn a_short_message_needs_no_ipc_buffer() {
        // There is none on the host: a write to it would crash this test.
        assert_eq!(
            Message::long(1, &[1, 2, 3, 4]),
            Message::new(1, [1, 2, 3, 4])
        );
        let mut words = [9; 6];
        assert_eq!(Message::new(1, [1, 2, 3]).copy_words(&mut words), 3);
        assert_eq!(words, [1, 2, 3, 9, 9, 9]);
    }
}
