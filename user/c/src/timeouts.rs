//! Timeout policies on the server's side: what clients are told whose time runs out.

use core::ffi::c_int;

use sandglass_timeouts::{Action, Answers, Event, Handler};

use crate::environment;
use crate::foreign::{Context, Text};
use crate::message::Message;

/// What a client is told; `caller` is the badge of its request if `is_known`.
type Answer = extern "C" fn(is_known: bool, caller: u64, context: Context) -> Message;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TimeoutFunctions {
    pub rolled_back: Answer,
    pub reset: Option<Answer>,
    pub killed: Option<Answer>,
    pub observe: Option<extern "C" fn(event: *const TimeoutEvent, context: Context)>,
    pub context: Context,
}

/// What a handler did.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TimeoutEvent {
    /// `SG_TIMEOUT_...`.
    pub what: c_int,
    /// Of the context that ran out.
    pub badge: u64,
    /// That it used since the last report.
    pub consumed_us: u64,
    /// Of an emergency or an extension.
    pub budget_us: u64,
}

/// The numbers of the header.
pub mod what {
    use super::c_int;

    pub const OTHER: c_int = 0;
    pub const ROLLED_BACK: c_int = 1;
    pub const RESET: c_int = 2;
    pub const KILLED: c_int = 3;
    pub const EMERGENCY: c_int = 4;
    pub const EXTENDED: c_int = 5;
    pub const FAULT: c_int = 6;
}

impl From<Event> for TimeoutEvent {
    fn from(event: Event) -> Self {
        let nothing = Self {
            what: what::OTHER,
            badge: 0,
            consumed_us: 0,
            budget_us: 0,
        };
        match event {
            Event::Other(_) => nothing,
            Event::Fault { .. } => Self {
                what: what::FAULT,
                ..nothing
            },
            Event::Timeout {
                badge,
                consumed_us,
                action,
            } => {
                let (what, budget_us) = match action {
                    Action::RolledBack => (what::ROLLED_BACK, 0),
                    Action::Reset => (what::RESET, 0),
                    Action::Killed => (what::KILLED, 0),
                    Action::Emergency { budget_us } => (what::EMERGENCY, budget_us),
                    Action::Extended { budget_us } => (what::EXTENDED, budget_us),
                };
                Self {
                    what,
                    badge,
                    consumed_us,
                    budget_us,
                }
            }
        }
    }
}

struct Foreign(TimeoutFunctions);

impl Foreign {
    fn ask(&self, answer: Answer, caller: Option<u64>) -> sandglass::Message {
        answer(caller.is_some(), caller.unwrap_or(0), self.0.context).into()
    }

    fn timed_out(&self, answer: Option<Answer>, caller: Option<u64>) -> sandglass::Message {
        match answer {
            Some(answer) => self.ask(answer, caller),
            None => sandglass::Message::new(sandglass_timeouts::TIMED_OUT, []),
        }
    }
}

impl Answers for Foreign {
    fn rolled_back(&mut self, caller: Option<u64>) -> sandglass::Message {
        self.ask(self.0.rolled_back, caller)
    }

    fn reset(&mut self, caller: Option<u64>) -> sandglass::Message {
        self.timed_out(self.0.reset, caller)
    }

    fn killed(&mut self, caller: Option<u64>) -> sandglass::Message {
        self.timed_out(self.0.killed, caller)
    }
}

#[no_mangle]
pub extern "C" fn sg_prepare_timeout_handler(
    server: Text,
    thread: Text,
    functions: Option<&TimeoutFunctions>,
) {
    let env = environment::get();
    let functions = *functions.expect("`sg_prepare_timeout_handler` needs its functions");
    let handler = Handler::new(env, server.text());
    let thread = thread.text();
    let ready = env.capability(&alloc::format!("{thread}.ready"));
    let observe = move |_: &Handler, event| {
        if let Some(observe) = functions.observe {
            let event = TimeoutEvent::from(event);
            observe(&raw const event, functions.context);
        }
    };
    env.thread(thread)
        .prepare(move || handler.serve(ready, Foreign(functions), observe));
}
