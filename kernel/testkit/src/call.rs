//! A system call as a thread makes it: what it puts into its registers and its IPC buffer; and what it is told.

use std::fmt;

use sandglass_abi::error::ErrorNumber;
use sandglass_abi::message::{ipc_buffer, MessageInfo, REGISTER_MRS};
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::arch::{MessageRegister, Register};
use sandglass_kernel::ipc::message;
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::tcb::Tcb;
use sandglass_kernel::Kernel;

use crate::isa::{self, SYSCALL_INSTRUCTION_BYTES};

/// A system call: what the thread puts into its registers and its IPC buffer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Call {
    pub number: i64,
    pub cap: u64,
    /// The raw message-info word.
    pub info: u64,
    /// The reply object.
    pub reply: u64,
    /// Where NBSendRecv sends to.
    pub destination: u64,
    /// Message words, the first four in registers, the others in the buffer.
    pub words: Vec<u64>,
    /// Addresses of extra capabilities, in the buffer.
    pub caps: Vec<u64>,
}

impl Call {
    /// The system call `number` of the capability at `cap`, with a message of `label`, `words` and the
    /// capabilities at `caps`.
    pub fn new(number: Syscall, cap: u64, label: u64, words: &[u64], caps: &[u64]) -> Call {
        Call {
            number: number.raw() as i64,
            cap,
            info: MessageInfo::new(label, 0, caps.len(), words.len()).raw(),
            words: words.to_vec(),
            caps: caps.to_vec(),
            ..Call::default()
        }
    }

    /// What goes into registers.
    pub fn registers(&self) -> impl Iterator<Item = (Register, u64)> + '_ {
        let arguments = [
            (isa::NUMBER, self.number as u64),
            (isa::CAP, self.cap),
            (isa::INFO, self.info),
            (isa::REPLY, self.reply),
            (isa::DESTINATION, self.destination),
        ];
        let words = isa::MESSAGE.into_iter().zip(self.words.iter().copied());
        arguments.into_iter().chain(words)
    }

    /// What goes into words of the IPC buffer, by their numbers.
    pub fn buffer(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let words = self.words.iter().copied().enumerate().skip(REGISTER_MRS);
        let words = words.map(|(i, word)| (ipc_buffer::MESSAGE + i, word));
        let caps = self.caps.iter().copied().enumerate();
        words.chain(caps.map(|(i, cap)| (ipc_buffer::CAPS_OR_BADGES + i, cap)))
    }

    /// `thread` sets its registers and its buffer, and executes the system-call instruction. What goes into a
    /// buffer is lost if it has none.
    pub fn issue(&self, k: &Kernel, thread: Ref<Tcb>) {
        let context = thread.at(k).context();
        for (register, value) in self.registers() {
            context.set(k, register, value);
        }
        for (word, value) in self.buffer() {
            store(k, thread, word, value);
        }
        step(k, thread);
    }
}

/// A thread writes a word of its IPC buffer, if it has one.
pub fn store(k: &Kernel, thread: Ref<Tcb>, word: usize, value: u64) {
    if let Some(buffer) = message::buffer(k, thread, true) {
        buffer.write(k, word, value);
    }
}

/// `thread` executes an instruction that enters the kernel, as long as the system-call instruction.
pub fn step(k: &Kernel, thread: Ref<Tcb>) {
    let context = thread.at(k).context();
    let ip = context.get(Register::NextIp);
    context.set(k, Register::FaultIp, ip);
    context.set(
        k,
        Register::NextIp,
        ip.wrapping_add(SYSCALL_INSTRUCTION_BYTES),
    );
}

/// Whether the last system call of `thread` was preempted: it is to execute the instruction again.
pub fn is_preempted(k: &Kernel, thread: Ref<Tcb>) -> bool {
    let context = thread.at(k).context();
    context.get(Register::NextIp) == context.fault_ip()
}

/// The message words that `thread` has received.
///
/// # Panics
/// If there are more than registers hold, and it has no buffer.
pub fn received(k: &Kernel, thread: Ref<Tcb>) -> Vec<u64> {
    let context = thread.at(k).context();
    let word = |i| match MessageRegister::new(i) {
        Some(register) => context.message(register),
        None => {
            let buffer = message::buffer(k, thread, false).expect("a buffer");
            buffer.read(k, ipc_buffer::MESSAGE + i)
        }
    };
    let length = MessageInfo::from_raw(context.info()).length();
    (0..length).map(word).collect()
}

/// A refused invocation: its number and detail words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    pub error: ErrorNumber,
    pub details: Vec<u64>,
}

/// What the last invocation told `thread`, which made it by Call.
///
/// # Errors
/// It was refused.
///
/// # Panics
/// If the thread was told something else.
pub fn answer(k: &Kernel, thread: Ref<Tcb>) -> Result<Vec<u64>, Refused> {
    let label = MessageInfo::from_raw(thread.at(k).context().info()).label();
    let words = received(k, thread);
    match ErrorNumber::from_raw(label).expect("an error number") {
        ErrorNumber::NoError => Ok(words),
        error => Err(Refused {
            error,
            details: words,
        }),
    }
}

/// As Rust source, the way the scripts of the lock step have it.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "script::Call {{ number: {}, cap: {:#x}, info: {:#x}, reply: {:#x}, destination: {:#x}, \
             words: vec!{:?}, caps: vec!{:?} }}",
            self.number,
            self.cap,
            self.info,
            self.reply,
            self.destination,
            self.words,
            self.caps
        )
    }
}
