//! What the threads run: one system call each, in assembly, without a stack; and the marks of a
//! measurement.

use core::arch::global_asm;

use sandglass::abi::context::x86_64 as order;
use sandglass::abi::message::MessageInfo;
use sandglass::abi::syscall::Syscall;
use sandglass::context::UserContext;

global_asm!(
    // The measurement begins.
    ".globl bounds_begin",
    "bounds_begin:",
    "ret",
    // It ends.
    ".globl bounds_end",
    "bounds_end:",
    "ret",
    // A system call with the registers that the thread was given; then nothing any more, since
    // nobody handles the fault.
    "bounds_once:",
    "syscall",
    "ud2",
    // The same, and the measurement begins right before it.
    ".globl bounds_begin_once",
    "bounds_begin_once:",
    "nop",
    "syscall",
    "ud2",
    // A system call, and then another that the other registers name; the measurement begins right
    // before that.
    "bounds_relay:",
    "syscall",
    "mov rdi, rbx",
    "mov rsi, rbp",
    "mov rdx, rax",
    ".globl bounds_begin_relay",
    "bounds_begin_relay:",
    "nop",
    "syscall",
    "ud2",
    // The same system call for ever.
    "bounds_repeat:",
    "mov rdi, rbx",
    "mov rsi, rbp",
    "syscall",
    "jmp bounds_repeat",
    "bounds_spin:",
    "jmp bounds_spin",
);

unsafe extern "C" {
    safe fn bounds_begin();
    safe fn bounds_end();
    static bounds_once: u8;
    static bounds_begin_once: u8;
    static bounds_relay: u8;
    static bounds_repeat: u8;
    static bounds_spin: u8;
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
        context.set(order::RBX, next.cap);
        context.set(order::RBP, next.info.raw());
        context.set(order::RAX, next.number.raw());
        context
    }

    /// A thread that makes the call for ever.
    pub fn repeated(self) -> UserContext {
        let mut context = self.at(&raw const bounds_repeat);
        context.set(order::RBX, self.cap);
        context.set(order::RBP, self.info.raw());
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
