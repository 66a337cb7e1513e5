//! Message registers and IPC buffers (01, sections 2, 3 and 5.6).

use sandglass_abi::message::{ipc_buffer, MessageInfo, REGISTER_MRS};

use crate::arch::bounds::turns;
use crate::arch::{Context, MessageRegister};
use crate::mem::user::Buffer;
use crate::mem::{objects, Ref};
use crate::object::{FrameRights, Tcb, TcbSlot};
use crate::{Kernel, View};

/// The IPC buffer of `thread`, to read arguments from or, if `write`, to write results to.
#[inline(always)]
pub fn buffer(k: &View, thread: Ref<Tcb>, write: bool) -> Option<Buffer> {
    let frame = objects::tcb_slot(thread, TcbSlot::Buffer)
        .at(k)
        .cap()
        .frame()?;
    match frame.rights {
        FrameRights::READ_WRITE => {}
        FrameRights::READ_ONLY if !write => {}
        _ => return None,
    }
    Buffer::in_frame(frame.word, thread.at(k).buffer_address())
}

/// Copies as many of `length` message words from `sender` to `receiver` as there are registers for.
#[inline(always)]
pub fn copy_registers(k: &Kernel, sender: Ref<Tcb>, receiver: Ref<Tcb>, length: usize) {
    let (from, to) = (sender.at(k).context(), receiver.at(k).context());
    // One after the other: a loop costs more than twice as much.
    let copy = |i, register| {
        if i < length {
            to.set_message(k, register, from.message(register));
        }
    };
    let [first, second, third, fourth] = MessageRegister::ALL;
    copy(0, first);
    copy(1, second);
    copy(2, third);
    copy(3, fourth);
}

/// Copies `length` message words from `sender` to `receiver`; returns how many arrived.
#[inline(always)]
pub fn copy_words(k: &Kernel, sender: Ref<Tcb>, receiver: Ref<Tcb>, length: usize) -> usize {
    copy_registers(k, sender, receiver, length);
    if length <= REGISTER_MRS {
        return length;
    }
    let (Some(source), Some(target)) = (buffer(k, sender, false), buffer(k, receiver, true)) else {
        return REGISTER_MRS;
    };
    let first = ipc_buffer::MESSAGE + REGISTER_MRS;
    source.copy(k, target, first, ipc_buffer::MESSAGE + length);
    length
}

/// Writes message words one after the other into the registers and the buffer of a thread.
pub struct Writer<'k> {
    k: &'k Kernel,
    context: &'k Context,
    buffer: Option<Buffer>,
    length: usize,
}

impl<'k> Writer<'k> {
    /// A message of at most `most` words to `thread`.
    #[inline(always)]
    pub fn new(k: &'k Kernel, thread: Ref<Tcb>, most: usize) -> Self {
        let buffer = if most > REGISTER_MRS {
            buffer(k, thread, true)
        } else {
            None
        };
        Writer {
            k,
            context: thread.at(k).context(),
            buffer,
            length: 0,
        }
    }

    /// Adds a word; it is lost if it does not fit into a register and there is no buffer.
    #[inline(always)]
    pub fn push(&mut self, value: u64) {
        match (MessageRegister::new(self.length), self.buffer) {
            (Some(register), _) => self.context.set_message(self.k, register, value),
            (None, Some(buffer)) => buffer.write(self.k, ipc_buffer::MESSAGE + self.length, value),
            (None, None) => return,
        }
        self.length += 1;
    }

    /// Adds what `word` says of each place, from 0 to before `count`, to a message that has no words yet, as
    /// [`push`](Self::push) does; at most `BEHIND` of them behind those in registers.
    #[inline(always)]
    pub fn fill<const BEHIND: u64>(&mut self, count: usize, word: impl Fn(usize) -> u64) {
        // One after the other: a loop costs more.
        let to_register = |i, register| {
            if i < count {
                self.context.set_message(self.k, register, word(i));
            }
        };
        let [first, second, third, fourth] = MessageRegister::ALL;
        to_register(0, first);
        to_register(1, second);
        to_register(2, third);
        to_register(3, fourth);
        self.length = count.min(REGISTER_MRS);
        let Some(buffer) = self.buffer else {
            return;
        };
        for i in turns::<BEHIND, _>(REGISTER_MRS..count) {
            buffer.write(self.k, ipc_buffer::MESSAGE + i, word(i));
        }
        self.length = count;
    }

    /// Ends the message: the thread receives it with `label` and `badge`.
    #[inline(always)]
    pub fn finish(self, label: u64, badge: u64) {
        self.context
            .set_info(self.k, MessageInfo::new(label, 0, 0, self.length).raw());
        self.context.set_badge(self.k, badge);
    }
}

/// The message that a thread sends. Its words are read where they are: claims of the user.
#[derive(Clone, Copy)]
pub struct Message {
    /// Where words beyond the registers and capability pointers are, if there are any to read.
    buffer: Option<Buffer>,
    info: MessageInfo,
}

impl Message {
    /// The message that `info` describes, of `sender`; without a buffer it has no more than the
    /// words in registers.
    #[inline(always)]
    pub fn new(k: &View, sender: Ref<Tcb>, info: MessageInfo) -> Self {
        let buffer = if info.is_short() {
            None
        } else {
            buffer(k, sender, false)
        };
        Message { buffer, info }
    }

    /// Its label.
    pub fn label(&self) -> u64 {
        self.info.label()
    }

    /// Number of words.
    #[inline(always)]
    pub fn length(&self) -> usize {
        match self.buffer {
            Some(_) => self.info.length(),
            None => self.info.length().min(REGISTER_MRS),
        }
    }

    /// Whether there are `words` words at least.
    pub fn has(&self, words: usize) -> bool {
        self.info.length() >= words && (words <= REGISTER_MRS || self.buffer.is_some())
    }

    /// Word `i`, as `sender` has it; 0 past the end.
    #[inline(always)]
    pub fn word(&self, k: &View, sender: Ref<Tcb>, i: usize) -> u64 {
        match (MessageRegister::new(i), self.buffer) {
            _ if i >= self.info.length() => 0,
            (Some(register), _) => sender.at(k).context().message(register),
            (None, Some(buffer)) => buffer.read(k, ipc_buffer::MESSAGE + i),
            (None, None) => 0,
        }
    }

    /// What the words are that are not in registers; `None` without a buffer.
    #[inline(always)]
    pub fn behind_registers<'k>(&self, k: &'k View) -> Option<impl Fn(usize) -> u64 + 'k> {
        let buffer = self.buffer?;
        Some(move |i| buffer.read(k, ipc_buffer::MESSAGE + i))
    }

    /// The capability pointer of extra capability `i`; `None` without a buffer.
    pub fn extra_cap(&self, k: &View, i: usize) -> Option<u64> {
        Some(self.buffer?.read(k, ipc_buffer::CAPS_OR_BADGES + i))
    }
}
