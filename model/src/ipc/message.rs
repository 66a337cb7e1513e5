//! Messages: registers and the IPC buffer (01, sections 2 to 4).

use crate::isa::{CAP_OR_BADGE, MESSAGE_INFO, MESSAGE_REGISTERS};
use sandglass_abi::message::ipc_buffer::{self, CAPS_OR_BADGES, MESSAGE};
use sandglass_abi::message::MessageInfo;

use crate::state::{Address, Cap, FrameRights, SlotId, State, ThreadId, ThreadSlot};

/// What the kernel is about to do with an IPC buffer, which its frame's rights must allow (01,
/// section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Arguments, and messages that are sent.
    Read,
    /// Results, and messages that are received.
    Write,
}

/// The physical address of `thread`'s IPC buffer; `None` if it counts as absent (01, section 3).
pub fn buffer(s: &State, thread: ThreadId, access: Access) -> Option<Address> {
    let slot = SlotId::Thread(thread, ThreadSlot::Buffer);
    let Cap::Frame {
        start,
        bits,
        device: false,
        rights,
        ..
    } = s.caps.slots.get(&slot)?.cap
    else {
        return None;
    };
    let usable = match access {
        Access::Read => rights != FrameRights::KernelOnly,
        Access::Write => rights == FrameRights::ReadWrite,
    };
    let offset = s.threads[&thread].buffer_address % (1 << bits);
    usable.then_some(start + offset)
}

/// The word `index` of the IPC buffer at `buffer`.
pub fn load(s: &State, buffer: Address, index: usize) -> u64 {
    let address = buffer + 8 * index as u64;
    s.memory.get(&address).copied().unwrap_or(0)
}

/// Stores the word `index` of the IPC buffer at `buffer`.
pub fn store(s: &mut State, buffer: Address, index: usize, word: u64) {
    let address = buffer + 8 * index as u64;
    if word == 0 {
        s.memory.remove(&address);
    } else {
        s.memory.insert(address, word);
    }
}

/// What `thread` says about the message that it sends.
pub fn info(s: &State, thread: ThreadId) -> MessageInfo {
    MessageInfo::from_raw(s.threads[&thread].registers.user[MESSAGE_INFO])
}

/// The words of the message that `thread` sends, as many as it effectively has: four without a
/// buffer that can be read (01, sections 3 and 5.1 step 3).
pub fn words(s: &State, thread: ThreadId) -> Vec<u64> {
    let registers = &s.threads[&thread].registers.user;
    let buffer = buffer(s, thread, Access::Read);
    (0..info(s, thread).length())
        .map_while(|i| match MESSAGE_REGISTERS.get(i) {
            Some(&register) => Some(registers[register]),
            None => buffer.map(|buffer| load(s, buffer, MESSAGE + i)),
        })
        .collect()
}

/// The addresses of the capabilities that `thread` sends; none without a buffer that can be read
/// (01, section 5.1 step 2).
pub fn extra_cptrs(s: &State, thread: ThreadId) -> Vec<u64> {
    let Some(buffer) = buffer(s, thread, Access::Read) else {
        return Vec::new();
    };
    (0..info(s, thread).extra_caps())
        .map(|i| load(s, buffer, CAPS_OR_BADGES + i))
        .collect()
}

/// The receive slot that `thread` names: CNode, index and depth; `None` without a buffer that can
/// be written (02, section 8).
pub fn receive_window(s: &State, thread: ThreadId) -> Option<(u64, u64, u64)> {
    let buffer = buffer(s, thread, Access::Write)?;
    let word = |index| load(s, buffer, index);
    Some((
        word(ipc_buffer::RECEIVE_CNODE),
        word(ipc_buffer::RECEIVE_INDEX),
        word(ipc_buffer::RECEIVE_DEPTH),
    ))
}

/// Tells `thread` the badge of what it received, and nothing else (01, section 5.5).
pub fn set_badge(s: &mut State, thread: ThreadId, badge: u64) {
    set_register(s, thread, CAP_OR_BADGE, badge);
}

/// Tells `thread` what the message that it received consists of.
pub fn set_info(s: &mut State, thread: ThreadId, info: MessageInfo) {
    set_register(s, thread, MESSAGE_INFO, info.raw());
}

/// Gives `thread` the words of a message: the first four in registers, the others in its buffer.
/// Returns how many it got: four at most without a buffer that can be written (01, section 5.6).
pub fn set_words(s: &mut State, thread: ThreadId, words: &[u64]) -> usize {
    let buffer = buffer(s, thread, Access::Write);
    for (i, &word) in words.iter().enumerate() {
        match (MESSAGE_REGISTERS.get(i), buffer) {
            (Some(&register), _) => set_register(s, thread, register, word),
            (None, Some(buffer)) => store(s, buffer, MESSAGE + i, word),
            (None, None) => return i,
        }
    }
    words.len()
}

/// Writes a message of `label` and `words` with `badge` to `thread`, as the kernel does: without
/// capabilities.
pub fn write_with_badge(s: &mut State, thread: ThreadId, badge: u64, label: u64, words: &[u64]) {
    let length = set_words(s, thread, words);
    set_badge(s, thread, badge);
    set_info(s, thread, MessageInfo::new(label, 0, 0, length));
}

/// Writes a message of `label` and `words` with badge 0 to `thread`, as the kernel does (01,
/// section 6; 04, section 9.2).
pub fn write(s: &mut State, thread: ThreadId, label: u64, words: &[u64]) {
    write_with_badge(s, thread, 0, label, words);
}

fn set_register(s: &mut State, thread: ThreadId, register: usize, value: u64) {
    s.thread_mut(thread).registers.user[register] = value;
}
