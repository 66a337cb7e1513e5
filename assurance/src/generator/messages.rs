//! System calls that send and receive messages.

use sandglass_abi::message::MessageInfo;
use sandglass_abi::syscall::Syscall;
use sandglass_model::state::{Cap, Endpoint};

use super::{Generator, View};
use crate::script::{Action, Call};

impl Generator {
    /// A message to somebody, or from somebody.
    pub(super) fn message(&mut self, view: &View) -> Action {
        let receives = self.chance(45);
        let number = if Self::is_lonely(view) && self.chance(80) {
            let blocks_not = [Syscall::NBRecv, Syscall::NBWait, Syscall::NBSend];
            self.choose(if receives {
                &blocks_not[..2]
            } else {
                &blocks_not[2..]
            })
        } else if receives {
            self.choose(&[
                Syscall::Recv,
                Syscall::Recv,
                Syscall::NBRecv,
                Syscall::Wait,
                Syscall::NBWait,
                Syscall::ReplyRecv,
                Syscall::ReplyRecv,
                Syscall::NBSendRecv,
                Syscall::NBSendWait,
            ])
        } else {
            self.choose(&[
                Syscall::Call,
                Syscall::Call,
                Syscall::Call,
                Syscall::Send,
                Syscall::NBSend,
            ])
        };
        let number = number.unwrap_or(Syscall::Recv);
        let mut call = Call {
            number: number as i64,
            cap: if receives {
                self.receiving(view)
            } else {
                self.sending(view)
            },
            ..Call::default()
        };
        self.fill(view, &mut call);
        if receives {
            self.address(view, number, &mut call);
        }
        if self.chance(3) {
            call.cap = self.any(view);
        }
        Action::Call(call)
    }

    /// Where to send: a reply object that somebody waits with, an endpoint where somebody receives,
    /// or any other.
    fn sending(&mut self, view: &View) -> u64 {
        let s = view.state;
        let waits = |cap: &Cap| match cap {
            Cap::Reply { object, .. } => s.replies.get(object).is_some_and(|r| r.thread.is_some()),
            _ => false,
        };
        let received = |cap: &Cap| match cap {
            Cap::Endpoint { object, rights, .. } => {
                (rights.write || rights.call)
                    && matches!(s.endpoints.get(object), Some(Endpoint::Receivers(_)))
            }
            _ => false,
        };
        let any = |cap: &Cap| {
            matches!(
                cap,
                Cap::Endpoint { .. } | Cap::Notification { .. } | Cap::Reply { .. }
            )
        };
        let found = match self.rng.u32(0..10) {
            0..3 => self.pick(view, waits),
            3..6 => self.pick(view, received),
            6 | 7 => self.pick(view, |cap| matches!(cap, Cap::Notification { .. })),
            _ => None,
        };
        found.or_else(|| self.pick(view, any)).unwrap_or(0)
    }

    /// Where to receive: an endpoint where somebody sends, or any other.
    fn receiving(&mut self, view: &View) -> u64 {
        let s = view.state;
        let sent = |cap: &Cap| match cap {
            Cap::Endpoint { object, rights, .. } => {
                rights.read && matches!(s.endpoints.get(object), Some(Endpoint::Senders(_)))
            }
            _ => false,
        };
        let any = |cap: &Cap| match cap {
            Cap::Endpoint { rights, .. } | Cap::Notification { rights, .. } => rights.read,
            _ => false,
        };
        let found = if self.chance(50) {
            self.pick(view, sent)
        } else {
            None
        };
        found.or_else(|| self.pick(view, any)).unwrap_or(0)
    }

    /// Sets the registers that a system call which receives needs besides the capability register,
    /// which holds what it sends to where it does.
    pub(super) fn address(&mut self, view: &View, number: Syscall, call: &mut Call) {
        let s = view.state;
        let reply = |cap: &Cap| matches!(cap, Cap::Reply { .. });
        let idle = |cap: &Cap| match cap {
            Cap::Reply { object, .. } => s.replies.get(object).is_some_and(|r| r.thread.is_none()),
            _ => false,
        };
        let invoked = call.cap;
        call.reply = if self.chance(70) {
            self.pick(view, idle)
        } else {
            self.pick(view, reply)
        }
        .unwrap_or(0);
        match number {
            Syscall::ReplyRecv | Syscall::NBSendWait => {
                call.cap = self.receiving(view);
                // Mostly a reply to somebody who waits.
                call.reply = if self.chance(80) {
                    self.sending(view)
                } else {
                    invoked
                };
            }
            Syscall::NBSendRecv => {
                call.cap = self.receiving(view);
                call.destination = if self.chance(50) {
                    self.sending(view)
                } else {
                    invoked
                };
            }
            _ => {}
        }
        if self.chance(3) {
            call.reply = self.any(view);
        }
    }

    /// What a message says.
    fn fill(&mut self, view: &View, call: &mut Call) {
        let length = match self.rng.u32(0..20) {
            0 => self.rng.usize(0..128),
            1 | 2 => self.rng.usize(0..24),
            _ => self.rng.usize(0..6),
        };
        call.words = (0..length.min(24)).map(|_| self.edge()).collect();
        let count = if self.chance(25) {
            self.rng.usize(1..4)
        } else {
            0
        };
        call.caps = (0..count).map(|_| self.passed(view)).collect();
        // The label 0 lets a faulted thread go on.
        let label = if self.chance(70) { 0 } else { self.edge() };
        call.info = MessageInfo::new(label, 0, count, length).raw();
    }

    /// A capability to pass on: often an endpoint, which may arrive as a badge.
    fn passed(&mut self, view: &View) -> u64 {
        let endpoint = |cap: &Cap| matches!(cap, Cap::Endpoint { .. });
        let found = if self.chance(50) {
            self.pick(view, endpoint)
        } else {
            None
        };
        match found {
            Some(cptr) => cptr,
            None if self.chance(92) => self.pick(view, |_| true).unwrap_or(0),
            None => self.edge(),
        }
    }
}
