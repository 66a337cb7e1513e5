//! Clients and servers at work: calls that find somebody waiting, and answers by who waits for the next.

use sandglass_abi::message::MessageInfo;
use sandglass_abi::syscall::Syscall;
use sandglass_model::state::{Cap, Endpoint, Signals, SlotId, State, ThreadSlot, ThreadState};

use super::{Generator, View};
use crate::isa;
use crate::script::{Action, Call};

impl Generator {
    /// The same, where most of what happens are exchanges of messages.
    #[must_use]
    pub fn serving(mut self) -> Generator {
        self.serves = true;
        self
    }

    /// Whoever has a caller answers; else somebody who waits is called, if there is one; else the thread waits itself.
    pub(super) fn exchange(&mut self, view: &View) -> Option<Action> {
        if !self.serves || self.chance(35) {
            return None;
        }
        let (fault, timeout) = (ThreadSlot::FaultHandler, ThreadSlot::TimeoutHandler);
        if Self::would_be_told(view, fault) && self.chance(30) {
            return Some(if self.chance(50) {
                Action::PageFault(self.edge(), isa::fault_code(&mut self.rng))
            } else {
                isa::exception_event(&mut self.rng)
            });
        }
        if Self::would_be_told(view, timeout) && self.chance(30) {
            let left = Self::budget_end(view.state)?.saturating_sub(view.state.core().now);
            return Some(Action::Pass(self.about(left)));
        }
        if self.chance(35) {
            return self.unanswered(view);
        }
        let s = view.state;
        let answered = |cap: &Cap| match cap {
            Cap::Reply { object, .. } => {
                let thread = s.replies.get(object).and_then(|reply| reply.thread);
                let state = thread
                    .and_then(|thread| s.threads.get(&thread))
                    .map(|it| it.state);
                matches!(state, Some(ThreadState::BlockedOnReply { reply }) if reply == *object)
            }
            _ => false,
        };
        let waited = |cap: &Cap| match cap {
            Cap::Endpoint { object, rights, .. } => {
                (rights.write || rights.call)
                    && matches!(s.endpoints.get(object), Some(Endpoint::Receivers(_)))
            }
            _ => false,
        };
        let length = self.rng.usize(0..12);
        let mut call = Call {
            info: MessageInfo::new(self.edge(), 0, 0, length).raw(),
            words: (0..length).map(|_| self.edge()).collect(),
            ..Call::default()
        };
        if let Some(reply) = self.pick(view, answered) {
            call.number = Syscall::ReplyRecv as i64;
            call.cap = self.pick(view, |cap| is_quiet(s, cap))?;
            call.reply = reply;
            if self.chance(50) {
                // Threads get over their faults by no other.
                call.info = MessageInfo::new(0, 0, 0, length).raw();
            }
        } else if let Some(endpoint) = self.pick(view, waited) {
            call.number = Syscall::Call as i64;
            call.cap = endpoint;
        } else {
            call.number = Syscall::Recv as i64;
            self.receive(view, &mut call)?;
        }
        Some(Action::Call(call))
    }

    /// Where `call` receives, while somebody else can run.
    fn receive(&mut self, view: &View, call: &mut Call) -> Option<()> {
        let s = view.state;
        let quiet = self.pick(view, |cap| is_quiet(s, cap));
        call.cap = quiet.filter(|_| !Self::is_lonely(view))?;
        call.reply = self.pick(view, |cap| is_free(s, cap))?;
        Some(())
    }

    /// Whether somebody waits to be told by the handler in `slot` of the current thread.
    fn would_be_told(view: &View, slot: ThreadSlot) -> bool {
        let slot = SlotId::Thread(view.thread, slot);
        let cap = view.state.caps.slots.get(&slot).map(|it| it.cap);
        let Some(Cap::Endpoint { object, .. }) = cap else {
            return false;
        };
        let endpoint = view.state.endpoints.get(&object);
        matches!(endpoint, Some(Endpoint::Receivers(_)))
    }

    /// What nobody answers: signals and waiting for them, messages, alone or before a Recv, and giving up the rest of a slice.
    fn unanswered(&mut self, view: &View) -> Option<Action> {
        let s = view.state;
        let heard = |cap: &Cap| match cap {
            Cap::Endpoint { object, rights, .. } => {
                rights.write && matches!(s.endpoints.get(object), Some(Endpoint::Receivers(_)))
            }
            Cap::Notification { rights, .. } => rights.write,
            _ => false,
        };
        let hears = |cap: &Cap| match cap {
            Cap::Notification { object, rights, .. } => {
                let state = s.notifications.get(object).map(|it| &it.state);
                let is_active = matches!(state, Some(Signals::Active(_)));
                rights.read && (is_active || !Self::is_lonely(view))
            }
            _ => false,
        };
        let mut call = Call {
            info: MessageInfo::new(self.edge(), 0, 0, 0).raw(),
            ..Call::default()
        };
        call.number = match self.rng.usize(0..12) {
            0 | 1 => Syscall::Yield,
            2..6 => {
                call.cap = self.pick(view, heard)?;
                Syscall::Send
            }
            6..9 => {
                call.cap = self.pick(view, hears)?;
                Syscall::Wait
            }
            _ => {
                call.destination = self.pick(view, heard)?;
                self.receive(view, &mut call)?;
                Syscall::NBSendRecv
            }
        } as i64;
        Some(Action::Call(call))
    }
}

/// Whether a thread that receives with `cap` waits.
fn is_quiet(s: &State, cap: &Cap) -> bool {
    match cap {
        Cap::Endpoint { object, rights, .. } => {
            rights.read && !matches!(s.endpoints.get(object), Some(Endpoint::Senders(_)))
        }
        _ => false,
    }
}

/// Whether `cap` is to a reply object that nobody uses.
fn is_free(s: &State, cap: &Cap) -> bool {
    match cap {
        Cap::Reply { object, .. } => s.replies.get(object).is_some_and(|it| it.thread.is_none()),
        _ => false,
    }
}
