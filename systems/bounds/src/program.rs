//! What the threads run: one system call each, in assembly, without a stack; and the marks of a
//! measurement. The assembly is the architecture's ([`crate::isa`]).

use sandglass::abi::message::MessageInfo;
use sandglass::abi::syscall::Syscall;
use sandglass::context::UserContext;

use crate::isa::{order, KEPT_CAP, KEPT_INFO, KEPT_NUMBER};

unsafe extern "C" {
    safe fn bounds_begin();
    safe fn bounds_end();
    static bounds_once: u8;
    static bounds_begin_once: u8;
    static bounds_relay: u8;
    static bounds_repeat: u8;
    static bounds_spin: u8;
    static bounds_begin_spin: u8;
}

/// Marks the beginning of a measurement; one that has begun begins anew.
pub fn begin() {
    bounds_begin();
}

/// Marks its end.
pub fn end() {
    bounds_end();
}

/// A system call with its arguments.
#[derive(Clone, Copy)]
pub struct Call {
    pub number: Syscall,
    pub cap: u64,
    pub info: MessageInfo,
    pub words: [u64; 4],
    pub reply: u64,
    pub destination: u64,
}

impl Call {
    /// With an empty message.
    pub const fn new(number: Syscall, cap: u64) -> Self {
        Self {
            number,
            cap,
            info: MessageInfo::new(0, 0, 0, 0),
            words: [0; 4],
            reply: 0,
            destination: 0,
        }
    }

    pub const fn info(self, info: MessageInfo) -> Self {
        Self { info, ..self }
    }

    pub const fn words(self, words: [u64; 4]) -> Self {
        Self { words, ..self }
    }

    /// With the reply register.
    pub const fn reply(self, reply: u64) -> Self {
        Self { reply, ..self }
    }

    /// With the destination register.
    pub const fn destination(self, destination: u64) -> Self {
        Self {
            destination,
            ..self
        }
    }

    /// The registers of a thread that makes this call, starting at `code`.
    fn at(self, code: *const u8) -> UserContext {
        let mut context = UserContext::start(code as u64, 0, self.cap, 0);
        context.set(order::SYSCALL_NUMBER, self.number.raw());
        context.set(order::MESSAGE_INFO, self.info.raw());
        for (register, word) in order::MESSAGE_REGISTERS.into_iter().zip(self.words) {
            context.set(register, word);
        }
        context.set(order::REPLY, self.reply);
        context.set(order::NB_SEND_RECV_DEST, self.destination);
        context
    }

    /// A thread that makes the call, once.
    pub fn once(self) -> UserContext {
        self.at(&raw const bounds_once)
    }

    /// The same; the measurement begins with it.
    pub fn measured(self) -> UserContext {
        self.at(&raw const bounds_begin_once)
    }

    /// A thread that makes the call, and then `next`, with the message registers that it has then;
    /// the measurement begins with that.
    pub fn then(self, next: Call) -> UserContext {
        let mut context = self.at(&raw const bounds_relay);
        context.set(KEPT_CAP, next.cap);
        context.set(KEPT_INFO, next.info.raw());
        context.set(KEPT_NUMBER, next.number.raw());
        context
    }

    /// A thread that makes the call for ever.
    pub fn repeated(self) -> UserContext {
        let mut context = self.at(&raw const bounds_repeat);
        context.set(KEPT_CAP, self.cap);
        context.set(KEPT_INFO, self.info.raw());
        context
    }
}

/// Whether a thread with these registers, of [`Call::once`], has not made its call yet.
pub fn is_before_call(registers: &UserContext) -> bool {
    registers.ip() == &raw const bounds_once as u64
}

/// A thread that only runs.
pub fn spinning() -> UserContext {
    UserContext::start(&raw const bounds_spin as u64, 0, 0, 0)
}

/// The same; the measurement begins when it starts.
pub fn spinning_measured() -> UserContext {
    UserContext::start(&raw const bounds_begin_spin as u64, 0, 0, 0)
}
