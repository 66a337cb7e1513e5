//! The service: a passive server of the highest priority among its users.
//!
//! Its only thread runs on two kinds of time. A request runs on the time of who asks. The interrupt of the device is a
//! signal of the notification that is bound to the thread, and to which a small scheduling context is bound in turn: the
//! kernel lends the thread that context when it waits and the signal comes, and takes it back when it waits again (ABI
//! 04, section 7.6). Nothing is shared with another thread, so nothing is locked.

use alloc::vec::Vec;
use core::convert::Infallible;

use sandglass::cap::Notification;
use sandglass::server::Service;
use sandglass::time::Tsc;
use sandglass::timer::{Timer, TimerError};
use sandglass::{cap, time, Environment, Message};
use sandglass_description::policy::timers::{
    self as described, names, Sender, SERVICE, TIMER_BYTES,
};
use sandglass_description::policy::Table;
use zerocopy::FromBytes;

use crate::alarm::Alarm;
use crate::decide::{Described, Limit, Refusal, Slot, Timers};
use crate::finish::Finisher;
use crate::protocol::{Answer, Request};

const _: () = assert!(size_of::<Slot>() as u64 <= TIMER_BYTES);

/// Serves the timers of the component's table, for good.
///
/// # Errors
/// There is no HPET, or the kernel refuses to acknowledge its interrupt.
///
/// # Panics
/// The component has no table, or lacks what `[[timer]]` gives.
pub fn run(env: &'static Environment) -> Result<Infallible, TimerError> {
    let table = table(env);
    let timer = Timer::described(env, names::REGISTERS, names::INTERRUPT, names::PIT)?;
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let finisher = Finisher::new(env, &table, timer.notification());
    env.thread(names::HANDLER)
        .prepare(move || finisher.serve(env.capability("handler.ready")));
    let signals = (0..table.groups.len()).map(|group| env.capability(&names::signal(group)));
    let clock = Clock {
        alarm: Alarm::new(timer, tsc),
        signals: signals.collect(),
        timers: Timers::new(&groups(&table, tsc), slots(env)),
    };
    clock.serve(env.service(SERVICE))
}

fn table(env: &Environment) -> described::Timers {
    // SAFETY: the builder packs the table as a file, which nobody writes.
    let bytes = unsafe { env.memory(described::Timers::NAME).as_bytes() };
    described::Timers::decode(bytes).expect("the builder made the table")
}

fn groups(table: &described::Timers, tsc: Tsc) -> Vec<Described> {
    let groups = table.groups.iter().map(|group| Described {
        timers: group.timers,
        limit: Limit {
            every: tsc.us_to_ticks(group.every_us),
            burst: group.burst,
        },
    });
    groups.collect()
}

/// The memory for the timers.
fn slots(env: &Environment) -> &'static mut [Slot] {
    let memory = env.memory(names::STATE);
    // SAFETY: the system maps it writable for good, for this component only, and this is called once.
    let bytes =
        unsafe { core::slice::from_raw_parts_mut(memory.as_mut_ptr(), memory.len as usize) };
    let count = bytes.len() / size_of::<Slot>();
    let (slots, _) =
        <[Slot]>::mut_from_prefix_with_elems(bytes, count).expect("whole pages hold whole slots");
    slots
}

/// The service at work.
struct Clock {
    alarm: Alarm,
    /// Of each group: what is signalled when a timer of it expires.
    signals: Vec<Notification>,
    timers: Timers<'static>,
}

impl Clock {
    fn serve(mut self, service: Service) -> Result<Infallible, TimerError> {
        let mut received = cap::nb_send_recv(
            service.ready,
            Message::EMPTY,
            service.endpoint,
            service.reply,
        );
        loop {
            let answer = match Sender::of(received.badge) {
                Sender::User(group) => Some(self.answer(group, received.message).message()),
                Sender::Clock => {
                    self.expire()?;
                    None
                }
            };
            self.set_alarm();
            received = match answer {
                Some(answer) => service.reply.reply_recv(service.endpoint, answer),
                None => service.endpoint.recv(service.reply),
            };
        }
    }

    fn answer(&mut self, group: usize, message: Message) -> Answer {
        let outcome = match Request::of(message) {
            Some(Request::Arm { timer, timing }) => self
                .timers
                .arm(time::ticks(), group, timer, timing)
                .map(Answer::Armed),
            Some(Request::Cancel { timer }) => self
                .timers
                .cancel(group, timer)
                .map(|was_armed| Answer::Number(was_armed.into())),
            Some(Request::Expiries { timer }) => {
                self.timers.expiries(group, timer).map(Answer::Number)
            }
            None => Err(Refusal::NoSuchRequest),
        };
        outcome.unwrap_or_else(Answer::Refused)
    }

    /// Tells all groups that have a timer which is due. The limits bound how many these are.
    fn expire(&mut self) -> Result<(), TimerError> {
        self.alarm.acknowledge()?;
        self.timers.rang();
        while let Some(group) = self.timers.expire(time::ticks()) {
            self.signals[group].signal();
        }
        Ok(())
    }

    fn set_alarm(&mut self) {
        let Some(at) = self.timers.setting() else {
            return;
        };
        let has_passed = match at {
            Some(at) => self.alarm.set(at),
            None => {
                self.alarm.clear();
                false
            }
        };
        self.timers.was_set(time::ticks());
        if has_passed {
            // What is due expires on the time that is there for it, and not on that of who asked.
            self.alarm.timer().notification().signal();
        }
    }
}
