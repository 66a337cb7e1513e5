//! The phases of the system calls (01, section 5): what is sent, what is received, and how.

use sandglass_abi::syscall::Syscall;

use crate::arch::opaque;

/// The phases of a system call (01, section 5), as a set of flags.
#[derive(Clone, Copy)]
pub struct Phases(u32);

impl Phases {
    /// There is an invocation phase, of the capability in the capability register.
    pub const INVOKE: u32 = 1 << 0;
    /// Not there, but in the reply register.
    pub const TO_REPLY: u32 = 1 << 1;
    /// Not there, but in the destination register.
    pub const TO_DESTINATION: u32 = 1 << 2;
    /// One of these two.
    pub const ELSEWHERE: u32 = Self::TO_REPLY | Self::TO_DESTINATION;
    /// The invocation blocks until somebody receives.
    pub const BLOCKS: u32 = 1 << 3;
    /// The invocation waits for an answer.
    pub const CALLS: u32 = 1 << 4;
    /// The invocation may lend or give the caller's scheduling context.
    pub const DONATES: u32 = 1 << 5;
    /// There is a receive phase.
    pub const RECEIVE: u32 = 1 << 6;
    /// The receive phase waits for a message.
    pub const WAITS: u32 = 1 << 7;
    /// The reply register names the reply object to receive with.
    pub const WITH_REPLY: u32 = 1 << 8;
    /// The rest of the budget is given up.
    pub const YIELDS: u32 = 1 << 9;

    /// Whether `flag` is set, or one of several.
    pub const fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }

    /// Whether the caller waits for an answer to its invocation.
    pub const fn is_call(self) -> bool {
        self.has(Self::CALLS)
    }

    /// Whether the invocation is the send phase of a call that also receives.
    pub const fn is_first(self) -> bool {
        self.has(Self::RECEIVE)
    }

    /// The phases of the system call of `number`; `None` if that is none of those that have any.
    #[inline(always)]
    pub fn of(number: u64) -> Option<Phases> {
        // The numbers are -1, -2 and so on. The compiler is not to see through the table: it would
        // replace tests of flags by longer ones of the number.
        let flags = PHASES.get(!number as usize).copied();
        flags.map(|flags| Phases(opaque(flags)))
    }
}

/// The phases of the system calls, in the order of their numbers.
const PHASES: [u32; 11] = {
    const SEND: u32 = Phases::INVOKE;
    const SEND_FIRST: u32 = SEND | Phases::DONATES;
    const WAIT: u32 = Phases::RECEIVE | Phases::WAITS;
    const RECV: u32 = WAIT | Phases::WITH_REPLY;
    let all = [
        (Syscall::Call, SEND_FIRST | Phases::BLOCKS | Phases::CALLS),
        (Syscall::ReplyRecv, SEND_FIRST | Phases::TO_REPLY | RECV),
        (
            Syscall::NBSendRecv,
            SEND_FIRST | Phases::TO_DESTINATION | RECV,
        ),
        (Syscall::NBSendWait, SEND_FIRST | Phases::TO_REPLY | WAIT),
        (Syscall::Send, SEND | Phases::BLOCKS),
        (Syscall::NBSend, SEND),
        (Syscall::Recv, RECV),
        (Syscall::NBRecv, RECV & !Phases::WAITS),
        (Syscall::Wait, WAIT),
        (Syscall::NBWait, Phases::RECEIVE),
        (Syscall::Yield, Phases::YIELDS),
    ];
    let mut phases = [0; 11];
    let mut i = 0;
    while i < all.len() {
        phases[!(all[i].0 as i64) as usize] = all[i].1;
        i += 1;
    }
    phases
};
