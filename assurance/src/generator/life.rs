//! Keeps the world alive: where everybody waits for somebody else, nothing happens any more that is
//! worth comparing.

use sandglass_abi::invocation as label;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::syscall::Syscall;
use sandglass_model::state::{Cap, Endpoint, Thread, ThreadState};

use super::{Generator, Invocation, View};
use crate::script::{Action, Call};

/// With fewer threads that can go on than this, no thread should stop.
const FEW: usize = 3;

impl Generator {
    /// Something that lets another thread go on, the more often the fewer can; or that makes a
    /// server passive, so that time is lent to it.
    pub(super) fn enliven(&mut self, view: &View) -> Option<Action> {
        let percent = match Self::going(view) {
            0..=1 => 60,
            2 => 40,
            FEW => 20,
            _ => 6,
        };
        if !self.chance(percent) {
            return None;
        }
        match self.rng.u32(0..10) {
            0..3 => self.resume(view),
            3 => self.give_time(view),
            4 | 5 => self.make_passive(view),
            _ => self.meet(view),
        }
    }

    /// Whether hardly anybody can go on.
    pub(super) fn is_lonely(view: &View) -> bool {
        Self::going(view) < FEW
    }

    /// Number of threads that can go on, given time.
    fn going(view: &View) -> usize {
        let threads = view.state.threads.values();
        threads
            .filter(|thread| thread.state.is_runnable() && thread.context.is_some())
            .count()
    }

    /// A thread that is `wanted`.
    fn pick_thread(&mut self, view: &View, wanted: impl Fn(&Thread) -> bool) -> Option<u64> {
        self.pick(view, |&cap| view.thread_of(cap).is_some_and(&wanted))
    }

    fn resume(&mut self, view: &View) -> Option<Action> {
        let stopped = |thread: &Thread| {
            thread.context.is_some()
                && matches!(
                    thread.state,
                    ThreadState::Inactive | ThreadState::BlockedOnNotification { .. }
                )
        };
        let stuck = |thread: &Thread| thread.context.is_some() && thread.state.is_blocked();
        let cap = match self.pick_thread(view, stopped) {
            None => self.pick_thread(view, stuck)?,
            Some(cap) => cap,
        };
        Some(self.invoke(view, cap, label::TCB_RESUME, vec![]))
    }

    fn give_time(&mut self, view: &View) -> Option<Action> {
        let s = view.state;
        let free = |cap: &Cap| match cap {
            Cap::SchedContext { object, .. } => {
                let context = s.contexts.get(object);
                context.is_some_and(|context| context.max_refills > 0 && context.thread.is_none())
            }
            _ => false,
        };
        let cap = self.pick(view, free)?;
        let waits = |thread: &Thread| thread.context.is_none() && !thread.state.is_blocked();
        let thread = self.pick_thread(view, waits)?;
        Some(self.invoke(view, cap, label::SCHED_CONTEXT_BIND, vec![thread]))
    }

    /// Takes the time of a thread that waits for calls.
    fn make_passive(&mut self, view: &View) -> Option<Action> {
        let s = view.state;
        let serves = |thread: &Thread| {
            matches!(
                thread.state,
                ThreadState::BlockedOnReceive { reply: Some(_), .. }
                    | ThreadState::BlockedOnNotification { .. }
            )
        };
        let lends = |cap: &Cap| match cap {
            Cap::SchedContext { object, .. } => s.contexts.get(object).is_some_and(|context| {
                let thread = context.thread.and_then(|thread| s.threads.get(&thread));
                thread.is_some_and(serves)
            }),
            _ => false,
        };
        let cap = self.pick(view, lends)?;
        Some(self.invoke(view, cap, label::SCHED_CONTEXT_UNBIND, vec![]))
    }

    fn invoke(&mut self, view: &View, cap: u64, label: u64, caps: Vec<u64>) -> Action {
        let invocation = Invocation {
            cap,
            label,
            words: vec![],
            caps,
        };
        self.send(view, invocation)
    }

    /// A message to or from a thread that waits for one.
    fn meet(&mut self, view: &View) -> Option<Action> {
        let s = view.state;
        let receives = |cap: &Cap| match cap {
            Cap::Endpoint { object, rights, .. } => {
                (rights.write || rights.call)
                    && (rights.grant || rights.grant_reply)
                    && matches!(s.endpoints.get(object), Some(Endpoint::Receivers(_)))
            }
            _ => false,
        };
        let sends = |cap: &Cap| match cap {
            Cap::Endpoint { object, rights, .. } => {
                rights.read && matches!(s.endpoints.get(object), Some(Endpoint::Senders(_)))
            }
            _ => false,
        };
        let calls = |cap: &Cap| match cap {
            Cap::Reply { object, .. } => s.replies.get(object).is_some_and(|reply| {
                let caller = reply.thread.and_then(|thread| s.threads.get(&thread));
                caller.is_some_and(|t| matches!(t.state, ThreadState::BlockedOnReply { .. }))
            }),
            _ => false,
        };
        let unused = |cap: &Cap| match cap {
            Cap::Reply { object, .. } => s.replies.get(object).is_some_and(|r| r.thread.is_none()),
            _ => false,
        };
        let mut call = Call::default();
        let number = match self.rng.u32(0..4) {
            0 => {
                call.cap = self.pick(view, sends)?;
                call.reply = self.pick(view, unused)?;
                Syscall::NBRecv
            }
            1 => {
                call.cap = self.pick(view, calls)?;
                Syscall::NBSend
            }
            _ => {
                call.cap = self.pick(view, receives)?;
                Syscall::Call
            }
        };
        call.number = number as i64;
        let label = if self.chance(70) { 0 } else { self.edge() };
        call.info = MessageInfo::new(label, 0, 0, self.rng.usize(0..6)).raw();
        Some(Action::Call(call))
    }
}
