//! Endpoints, notifications and reply objects (ABI 01, section 5).
//!
//! Receiving needs a [`Reply`] object, which then stands for the caller until it is replied to;
//! `wait` receives without one, so callers cannot be answered. Capability errors of these system
//! calls are faults of the calling thread, not results (ABI 01, sections 5.1 and 5.2).

use sandglass_abi::message::MessageInfo;
use sandglass_abi::syscall::Syscall;

use super::{capability, Capability};
use crate::message::{Message, Received};
use crate::sys;

capability! {
    /// Where messages pass synchronously from senders to receivers.
    Endpoint
}
capability! {
    /// A word of flags to set and to wait for.
    Notification
}
capability! {
    /// Stands for one caller that waits for an answer, and carries the return of its scheduling
    /// context.
    Reply
}

/// What one can receive from: an [`Endpoint`], or a [`Notification`] where a system call allows
/// either.
pub trait Receivable: Capability {}
impl Receivable for Endpoint {}
impl Receivable for Notification {}

/// What one can send to without waiting for an answer.
pub trait Sendable: Capability {}
impl Sendable for Endpoint {}
impl Sendable for Notification {}
impl Sendable for Reply {}

impl Endpoint {
    /// Sends, and waits until a receiver takes the message. Lends no scheduling context.
    #[inline(always)]
    pub fn send(self, message: Message) {
        sys::send(
            Syscall::Send,
            self.cptr().raw(),
            message.info(),
            message.registers(),
        );
    }

    /// Sends if a receiver waits; the message is otherwise lost.
    #[inline(always)]
    pub fn nb_send(self, message: Message) {
        sys::send(
            Syscall::NBSend,
            self.cptr().raw(),
            message.info(),
            message.registers(),
        );
    }

    /// Sends and waits for the answer; a passive receiver runs on the caller's scheduling
    /// context meanwhile.
    #[inline(always)]
    pub fn call(self, message: Message) -> Message {
        let answer = sys::call(self.cptr().raw(), message.info(), message.registers());
        Message::from_parts(answer.info, answer.registers)
    }

    /// Waits for a message, or for a signal of the bound notification.
    #[inline(always)]
    pub fn recv(self, reply: Reply) -> Received {
        receive(Syscall::Recv, self, reply.cptr().raw())
    }

    /// Takes a message if a sender waits; badge 0 and an empty message otherwise.
    #[inline(always)]
    pub fn nb_recv(self, reply: Reply) -> Received {
        receive(Syscall::NBRecv, self, reply.cptr().raw())
    }

    /// Waits for a message that will not be answered.
    #[inline(always)]
    pub fn wait(self) -> Received {
        receive(Syscall::Wait, self, 0)
    }

    /// Takes a message that will not be answered, if a sender waits.
    #[inline(always)]
    pub fn nb_wait(self) -> Received {
        receive(Syscall::NBWait, self, 0)
    }
}

impl Notification {
    /// Sets the flags of this capability's badge. Never blocks.
    #[inline(always)]
    pub fn signal(self) {
        sys::send(
            Syscall::Send,
            self.cptr().raw(),
            MessageInfo::new(0, 0, 0, 0),
            [0; 4],
        );
    }

    /// Waits until a flag is set; returns the flags and clears them.
    #[inline(always)]
    pub fn wait(self) -> u64 {
        receive(Syscall::Wait, self, 0).badge
    }

    /// Returns the flags, 0 if none is set, and clears them.
    #[inline(always)]
    pub fn poll(self) -> u64 {
        receive(Syscall::NBWait, self, 0).badge
    }
}

impl Reply {
    /// Answers the caller, returning its scheduling context if that was lent; does nothing if
    /// there is no caller.
    #[inline(always)]
    pub fn send(self, message: Message) {
        sys::send(
            Syscall::Send,
            self.cptr().raw(),
            message.info(),
            message.registers(),
        );
    }

    /// Answers the caller and waits at `source` for the next message, in one step.
    #[inline(always)]
    pub fn reply_recv<S: Receivable>(self, source: S, message: Message) -> Received {
        sys::send_receive(
            Syscall::ReplyRecv,
            source.cptr().raw(),
            message.info(),
            message.registers(),
            self.cptr().raw(),
            0,
        )
        .into()
    }
}

/// Sends to `destination` without waiting and, in the same system call, waits at `source` with
/// the reply object `reply`. A passive receiver gets the caller's scheduling context for good;
/// this is how a server becomes passive (thesis 7.2.4).
#[inline(always)]
pub fn nb_send_recv<D: Sendable, S: Receivable>(
    destination: D,
    message: Message,
    source: S,
    reply: Reply,
) -> Received {
    sys::send_receive(
        Syscall::NBSendRecv,
        source.cptr().raw(),
        message.info(),
        message.registers(),
        reply.cptr().raw(),
        destination.cptr().raw(),
    )
    .into()
}

/// As [`nb_send_recv`], waiting without a reply object.
#[inline(always)]
pub fn nb_send_wait<D: Sendable, S: Receivable>(
    destination: D,
    message: Message,
    source: S,
) -> Received {
    sys::send_receive(
        Syscall::NBSendWait,
        source.cptr().raw(),
        message.info(),
        message.registers(),
        destination.cptr().raw(),
        0,
    )
    .into()
}

/// A receiving system call. The message sent in the registers is empty, so that after a signal,
/// which writes only the badge, an empty message is found.
#[inline(always)]
fn receive<S: Receivable>(call: Syscall, source: S, reply: u64) -> Received {
    sys::send_receive(
        call,
        source.cptr().raw(),
        Message::EMPTY.info(),
        [0; 4],
        reply,
        0,
    )
    .into()
}
