//! The phases of the system calls (01, section 5): what is sent, what is received, and how.

use sandglass_abi::syscall::Syscall;

use crate::arch::opaque;

/// The phases of a system call (01, section 5), as a set of flags.
#[derive(Clone, Copy)]
pub struct Phases(u32);

impl Phases {
    /// There is an invocation phase, of the capability in the capability register.
    pub const INVOKE: Phases = Phases(1 << 0);
    /// Not there, but in the reply register.
    pub const TO_REPLY: Phases = Phases(1 << 1);
    /// Not there, but in the destination register.
    pub const TO_DESTINATION: Phases = Phases(1 << 2);
    /// One of these two.
    pub const ELSEWHERE: Phases = Phases::TO_REPLY.and(Phases::TO_DESTINATION);
    /// The invocation blocks until somebody receives.
    pub const BLOCKS: Phases = Phases(1 << 3);
    /// The invocation waits for an answer.
    pub const CALLS: Phases = Phases(1 << 4);
    /// The invocation may lend or give the caller's scheduling context.
    pub const DONATES: Phases = Phases(1 << 5);
    /// There is a receive phase.
    pub const RECEIVE: Phases = Phases(1 << 6);
    /// The receive phase waits for a message.
    pub const WAITS: Phases = Phases(1 << 7);
    /// The reply register names the reply object to receive with.
    pub const WITH_REPLY: Phases = Phases(1 << 8);
    /// The rest of the budget is given up.
    pub const YIELDS: Phases = Phases(1 << 9);

    const fn and(self, other: Phases) -> Phases {
        Phases(self.0 | other.0)
    }

    /// Whether `flag` is set.
    #[inline(always)]
    pub const fn has(self, flag: Phases) -> bool {
        self.0 & flag.0 != 0
    }

    /// Whether the caller waits for an answer to its invocation.
    #[inline(always)]
    pub const fn is_call(self) -> bool {
        self.has(Self::CALLS)
    }

    /// Whether the invocation is the send phase of a call that also receives.
    #[inline(always)]
    pub const fn is_first(self) -> bool {
        self.has(Self::RECEIVE)
    }

    /// The phases of the system call of `number`; `None` if that is none of those that have any.
    #[inline(always)]
    pub fn of(number: u64) -> Option<Phases> {
        // The numbers are -1, -2 and so on. The compiler is not to see through the table: it would
        // replace tests of flags by longer ones of the number.
        PHASES
            .get(!number as usize)
            .copied()
            .map(|Phases(flags)| Phases(opaque(flags)))
    }
}

/// The phases of the system calls, in the order of their numbers.
const PHASES: [Phases; 11] = {
    pub const SEND_FIRST: Phases = Phases::INVOKE.and(Phases::DONATES);
    pub const RECV: Phases = Phases::RECEIVE.and(Phases::WITH_REPLY);
    let mut phases = [Phases(0); 11];
    let all = [
        (
            Syscall::Call,
            Phases::INVOKE
                .and(Phases::BLOCKS)
                .and(Phases::CALLS)
                .and(Phases::DONATES),
        ),
        (
            Syscall::ReplyRecv,
            SEND_FIRST
                .and(Phases::TO_REPLY)
                .and(RECV)
                .and(Phases::WAITS),
        ),
        (
            Syscall::NBSendRecv,
            SEND_FIRST
                .and(Phases::TO_DESTINATION)
                .and(RECV)
                .and(Phases::WAITS),
        ),
        (
            Syscall::NBSendWait,
            SEND_FIRST
                .and(Phases::TO_REPLY)
                .and(Phases::RECEIVE)
                .and(Phases::WAITS),
        ),
        (Syscall::Send, Phases::INVOKE.and(Phases::BLOCKS)),
        (Syscall::NBSend, Phases::INVOKE),
        (Syscall::Recv, RECV.and(Phases::WAITS)),
        (Syscall::NBRecv, RECV),
        (Syscall::Wait, Phases::RECEIVE.and(Phases::WAITS)),
        (Syscall::NBWait, Phases::RECEIVE),
        (Syscall::Yield, Phases::YIELDS),
    ];
    let mut i = 0;
    while i < all.len() {
        phases[!(all[i].0 as i64) as usize] = all[i].1;
        i += 1;
    }
    phases
};
