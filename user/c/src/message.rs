//! Messages, as C sees them: the first four words, and what tells how long the message is. The others are in the thread's
//! IPC buffer, where the kernel reads and writes them.

use sandglass::abi::message::{ipc_buffer, MessageInfo, MAX_EXTRA_CAPS, MAX_LENGTH, REGISTER_MRS};
use sandglass::cap::{CNode, CPtr, Slot};
use sandglass::{thread_block, Received};

use crate::environment::Capability;
use crate::foreign::{Elements, Room};

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub label: u64,
    /// Words.
    pub length: u32,
    /// Capabilities that come along.
    pub capabilities: u16,
    /// Bit i: capability i arrived as a badge.
    pub unwrapped: u16,
    pub words: [u64; REGISTER_MRS],
}

/// A message with the badge under which it arrived.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub badge: u64,
    pub message: Message,
}

impl From<Message> for sandglass::Message {
    #[inline]
    fn from(message: Message) -> Self {
        let length = (message.length as usize).min(MAX_LENGTH);
        let count = usize::from(message.capabilities).min(MAX_EXTRA_CAPS);
        Self::from_parts(
            MessageInfo::new(message.label, 0, count, length),
            message.words,
        )
    }
}

impl From<sandglass::Message> for Message {
    #[inline]
    fn from(message: sandglass::Message) -> Self {
        let info = message.info();
        Self {
            label: info.label(),
            length: info.length() as u32,
            capabilities: info.extra_caps() as u16,
            unwrapped: info.caps_unwrapped() as u16,
            words: message.registers(),
        }
    }
}

impl From<Received> for Request {
    #[inline]
    fn from(received: Received) -> Self {
        Self {
            badge: received.badge,
            message: received.message.into(),
        }
    }
}

#[no_mangle]
pub extern "C" fn sg_word(message: Option<&Message>, index: usize) -> u64 {
    match message {
        Some(message) if index < message.length as usize => match message.words.get(index) {
            Some(word) => *word,
            None => thread_block::read_word(ipc_buffer::MESSAGE + index),
        },
        _ => 0,
    }
}

#[no_mangle]
pub extern "C" fn sg_add_word(message: Option<&mut Message>, word: u64) -> bool {
    let Some(message) = message else {
        return false;
    };
    let index = message.length as usize;
    if index >= MAX_LENGTH {
        return false;
    }
    match message.words.get_mut(index) {
        Some(place) => *place = word,
        None => thread_block::write_word(ipc_buffer::MESSAGE + index, word),
    }
    message.length += 1;
    true
}

#[no_mangle]
pub extern "C" fn sg_long_message(label: u64, words: Elements<u64>, count: usize) -> Message {
    sandglass::Message::long(label, words.slice(count.min(MAX_LENGTH))).into()
}

#[no_mangle]
pub extern "C" fn sg_copy_words(
    message: Option<&Message>,
    words: Room<u64>,
    count: usize,
) -> usize {
    let length = message.map_or(0, |message| message.length as usize);
    let copied = length.min(count);
    for (index, word) in words.slice(copied).iter_mut().enumerate() {
        *word = sg_word(message, index);
    }
    copied
}

#[no_mangle]
pub extern "C" fn sg_add_capability(message: Option<&mut Message>, capability: Capability) -> bool {
    let Some(message) = message else {
        return false;
    };
    let index = usize::from(message.capabilities);
    if index >= MAX_EXTRA_CAPS {
        return false;
    }
    thread_block::write_word(ipc_buffer::CAPS_OR_BADGES + index, capability);
    message.capabilities += 1;
    true
}

#[no_mangle]
pub extern "C" fn sg_unwrapped_badge(
    message: Option<&Message>,
    index: usize,
    badge: Option<&mut u64>,
) -> bool {
    let is_unwrapped = index < MAX_EXTRA_CAPS
        && message.is_some_and(|message| message.unwrapped >> index & 1 == 1);
    if let (true, Some(badge)) = (is_unwrapped, badge) {
        *badge = thread_block::read_word(ipc_buffer::CAPS_OR_BADGES + index);
    }
    is_unwrapped
}

#[no_mangle]
pub extern "C" fn sg_receive_capability_to(root: Capability, index: u64, depth: u8) {
    let slot: Slot = CNode::at(CPtr::new(root).raw()).slot_at(index, depth);
    thread_block::set_receive_slot(slot);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_same_on_both_sides() {
        let message = Message {
            label: 7,
            length: 3,
            words: [1, 2, 3, 0],
            ..Message::default()
        };
        let inner = sandglass::Message::from(message);
        assert_eq!(inner, sandglass::Message::new(7, [1, 2, 3]));
        assert_eq!(Message::from(inner), message);
        let too_long = Message {
            length: u32::MAX,
            capabilities: u16::MAX,
            ..message
        };
        let inner = sandglass::Message::from(too_long);
        assert_eq!(inner.len(), MAX_LENGTH);
        assert_eq!(inner.info().extra_caps(), MAX_EXTRA_CAPS);
    }

    #[test]
    fn words_are_there_up_to_the_length() {
        let mut message = Message::default();
        for word in 1..=4 {
            assert!(sg_add_word(Some(&mut message), word));
        }
        assert_eq!(
            [0, 3, 4].map(|index| sg_word(Some(&message), index)),
            [1, 4, 0]
        );
        assert_eq!(sg_word(None, 0), 0);
        assert!(!sg_add_word(None, 1));
        message.length = MAX_LENGTH as u32;
        assert!(!sg_add_word(Some(&mut message), 1));
    }
}
