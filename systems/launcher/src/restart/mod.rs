//! Components that fail and are started anew, or stopped for good: what the description says.
//!
//! A failure is dealt with in steps, between which the launcher does other things:
//!
//! 1. All threads of the component are stopped ([`State::Stopping`]). A thread that waits for a server's answer is not
//!    suspended, since its time is with that server, and would stay there: it is sent where nothing is, and has come back
//!    when its fault arrives.
//! 2. Those who wait for its answers are answered [`FAILED`](sandglass::server::FAILED), and so have their time back.
//! 3. Its memory gets its first content again, on the component's own time ([`State::Reloading`]).
//! 4. Its threads start in turn, as they did first ([`State::Starting`]).

pub mod reload;
pub mod signals;
pub mod watchdog;

use alloc::format;
use alloc::vec::Vec;

use sandglass::abi::syscall::Syscall;
use sandglass::arch::order;
use sandglass::component;
use sandglass::image::Image;
use sandglass::time::{self, Tsc};
use sandglass::{exit, server, trace, Error, Message, Process};
use sandglass_description::{Component, Object, Restart, System, ThreadId};

use crate::failure::{Context, Failure};
use crate::launch::Thread;
use crate::log::Log;
use crate::made::Made;
use crate::objects::Objects;
use crate::report::Status;
use crate::say;
use crate::window::Window;
use reload::Reloader;
use signals::{Arrived, Signals};
use watchdog::Watched;

/// Where a component is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has not been started completely yet, for the first time.
    New,
    Running,
    /// Its threads are being stopped.
    Stopping,
    Reloading,
    /// This thread of it has started, and is to say when it is ready.
    Starting(u32),
    /// For good.
    Stopped,
}

/// A component whose failures the launcher deals with.
struct Supervised {
    policy: Option<Restart>,
    /// `None` if it is never restarted.
    reloader: Option<Reloader>,
    state: State,
    /// Of each thread: it has not come back from a server.
    is_away: Vec<bool>,
    /// When it was restarted: the last times, ticks. It has room for all that are looked at.
    restarts: Vec<u64>,
}

/// What becomes of a component that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The launcher does not deal with it.
    AsEver,
    /// It will run again.
    Restarted,
    /// It was stopped for good.
    Stopped,
}

/// How a component has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// This thread waits for the launcher to handle its fault.
    Fault(u32),
    /// It has told of its end, with this status.
    End(u8),
    /// It gave no sign of life.
    Silence,
}

pub struct Restarts<'a> {
    system: &'a System,
    threads: &'a [Vec<Thread>],
    components: &'static [component::Component],
    objects: &'a Objects,
    signals: Option<&'a Signals>,
    watched: &'static [(u32, Watched)],
    /// By component.
    supervised: Vec<Option<Supervised>>,
    tsc: Option<Tsc>,
}

impl<'a> Restarts<'a> {
    /// Makes all that restarts and watchdogs take, so that no restart needs memory.
    pub fn prepare(
        process: &mut Process,
        made: &Made<'a>,
        signals: Option<&'a Signals>,
    ) -> Result<Self, Failure> {
        let mut supervised = Vec::new();
        for (index, description) in made.system.components.iter().enumerate() {
            supervised.push(match signals {
                Some(signals) if signals::is_supervised(description) => {
                    let prepared = Supervised::prepare(process, made, signals, index, description);
                    Some(prepared.map_err(|failure| {
                        failure.within(format!("cannot prepare restarts of `{}`", description.name))
                    })?)
                }
                _ => None,
            });
        }
        let watched = match signals {
            None => &[],
            Some(signals) => {
                let signal = signals.watchdog(process)?;
                signals.bind().context("cannot bind a notification")?;
                watchdog::start(process, made.info, made.system, made.objects, signal)?
            }
        };
        Ok(Self {
            system: made.system,
            threads: made.threads,
            components: made.components,
            objects: made.objects,
            signals,
            watched,
            supervised,
            tsc: made.info.tsc(),
        })
    }

    /// Notes that a component begins to start, for the first time: signs of life are expected from now on.
    pub fn first_starts(&self, component: u32) {
        self.arm(component);
    }

    /// Notes that a component has been started completely.
    pub fn first_started(&mut self, component: u32) {
        if let Some(Some(supervised)) = self.supervised.get_mut(component as usize) {
            if supervised.state == State::New {
                supervised.state = State::Running;
            }
        }
    }

    fn arm(&self, component: u32) {
        let mut watched = self.watched.iter();
        if let Some((_, watched)) = watched.find(|(index, _)| *index == component) {
            watched.arm();
        }
    }

    fn disarm(&self, component: u32) {
        let mut watched = self.watched.iter();
        if let Some((_, watched)) = watched.find(|(index, _)| *index == component) {
            watched.disarm();
        }
    }

    /// The components whose watchdog has noticed something, one after the other.
    pub fn next_silent(&self) -> Option<u32> {
        let mut watched = self.watched.iter();
        watched
            .find(|(_, watched)| watched.take_failure())
            .map(|(index, _)| *index)
    }

    /// Whether the signal with which the thread says that it is ready has arrived; `None` if it has another.
    pub fn is_ready(&self, id: ThreadId, arrived: Option<Arrived>) -> Option<bool> {
        let bit = self.signals?.ready(id)?;
        Some(arrived.is_some_and(|arrived| arrived.has(bit)))
    }

    /// Whether a thread says that it is ready by a signal of the launcher's own.
    pub fn has_own_ready(&self, id: ThreadId) -> bool {
        self.signals
            .is_some_and(|signals| signals.ready(id).is_some())
    }

    /// Whether there are signals, which are bound to the launcher's thread.
    pub const fn signals(&self) -> Option<&'a Signals> {
        self.signals
    }

    /// Deals with a failure. It has been reported.
    pub fn fail(&mut self, log: &Log, index: u32, how: How) -> Fate {
        let Some((supervised, description)) = self.find(index) else {
            return Fate::AsEver;
        };
        let is_failure = match how {
            How::End(0) => supervised.policy.is_some_and(|policy| policy.always),
            How::End(_) | How::Fault(_) => supervised.policy.is_some(),
            How::Silence => true,
        };
        match supervised.state {
            State::New | State::Stopped => return Fate::AsEver,
            // It is being dealt with.
            State::Stopping | State::Reloading => {
                if matches!(how, How::End(_)) {
                    self.hears_call(index);
                }
                return Fate::Restarted;
            }
            State::Running | State::Starting(_) if !is_failure => return Fate::AsEver,
            State::Running | State::Starting(_) => {}
        }
        let name = &description.name;
        if let How::End(status) = how {
            say!(
                log,
                Warn,
                "component `{name}` ended with {}",
                Status(status)
            );
        }
        if how == How::Silence {
            say!(
                log,
                Error,
                "`{name}` has given no sign of life for the period of its watchdog"
            );
        }
        let fate = self.decide(log, index);
        self.disarm(index);
        self.stop(index, how);
        self.proceed(log, index);
        fate
    }

    /// Notes that a component has ended, and is as it was left.
    pub fn ended(&mut self, index: u32) {
        self.disarm(index);
        if let Some((supervised, _)) = self.find_mut(index) {
            supervised.state = State::Stopped;
        }
    }

    /// Lets a thread come back that called the launcher after it was sent away.
    pub fn hears_call(&self, index: u32) {
        let supervised = self.find(index);
        if supervised.is_some_and(|(supervised, _)| supervised.state == State::Stopping) {
            self.objects.launcher_reply.send(Message::EMPTY);
        }
    }

    fn find(&self, index: u32) -> Option<(&Supervised, &'a Component)> {
        let supervised = self.supervised.get(index as usize)?.as_ref()?;
        Some((supervised, self.system.components.get(index as usize)?))
    }

    fn find_mut(&mut self, index: u32) -> Option<(&mut Supervised, &'a Component)> {
        let supervised = self.supervised.get_mut(index as usize)?.as_mut()?;
        Some((supervised, self.system.components.get(index as usize)?))
    }

    /// Whether a component that fails now is restarted; if so, that counts.
    fn decide(&mut self, log: &Log, index: u32) -> Fate {
        let tsc = self.tsc;
        let Some((supervised, description)) = self.find_mut(index) else {
            return Fate::AsEver;
        };
        let name = &description.name;
        let Some(policy) = supervised.policy else {
            say!(log, Warn, "`{name}` is stopped");
            supervised.reloader = None;
            return Fate::Stopped;
        };
        let now = time::ticks();
        // Without a clock, all restarts count.
        let within = tsc.map_or(u64::MAX, |tsc| tsc.us_to_ticks(policy.within_us));
        supervised
            .restarts
            .retain(|&at| now.wrapping_sub(at) < within);
        if supervised.restarts.len() >= policy.times as usize {
            let (times, ms) = (policy.times, policy.within_us / 1000);
            say!(
                log,
                Error,
                "`{name}` is stopped: it has failed again, restarted {times} times within {ms} ms"
            );
            supervised.reloader = None;
            return Fate::Stopped;
        }
        supervised.restarts.push(now);
        say!(log, Warn, "`{name}` is restarted");
        Fate::Restarted
    }

    /// Stops all threads of a component, or lets them come back.
    fn stop(&mut self, index: u32, how: How) {
        let threads = self
            .threads
            .get(index as usize)
            .map_or(&[][..], Vec::as_slice);
        let reply = self.objects.launcher_reply;
        let Some((supervised, _)) = self.find_mut(index) else {
            return;
        };
        supervised.state = State::Stopping;
        let is_away = &mut supervised.is_away;
        for ((thread, number), is_away) in threads.iter().zip(0..).zip(is_away) {
            *is_away = how != How::Fault(number) && is_sent_away(thread);
            if !*is_away {
                // The capability is the launcher's own: nothing can fail.
                let _ = thread.tcb().suspend();
            }
        }
        if matches!(how, How::End(_)) {
            // Whoever told of the end comes back, too.
            reply.send(Message::EMPTY);
        }
    }

    /// Notes that a thread has come back, or failed on the way. Returns whether this is dealt with.
    pub fn comes_back(&mut self, log: &Log, id: ThreadId) -> bool {
        let thread = self.threads.get(id.component as usize);
        let thread = thread.and_then(|threads| threads.get(id.thread as usize));
        let Some((supervised, _)) = self.find_mut(id.component) else {
            return false;
        };
        let is_away = supervised.is_away.get_mut(id.thread as usize);
        let (State::Stopping, Some(is_away), Some(thread)) = (supervised.state, is_away, thread)
        else {
            return matches!(supervised.state, State::Reloading | State::Stopped);
        };
        *is_away = false;
        let _ = thread.tcb().suspend();
        self.proceed(log, id.component);
        true
    }

    /// Goes on with a component whose threads have all stopped.
    fn proceed(&mut self, log: &Log, index: u32) {
        let Some((supervised, description)) = self.find(index) else {
            return;
        };
        if supervised.is_away.contains(&true) {
            return;
        }
        for grant in &description.grants {
            if let Object::Reply(reply) = grant.object {
                if let Ok(reply) = self.objects.reply(reply) {
                    // If nobody waits, nothing happens.
                    reply.send(Message::new(server::FAILED, []));
                }
            }
        }
        let begun = match &supervised.reloader {
            None => Ok(State::Stopped),
            Some(reloader) => self.reload(index, reloader).map(|()| State::Reloading),
        };
        self.enter(log, index, begun);
    }

    /// Lends a component's time to the thread that reloads it.
    fn reload(&self, index: u32, reloader: &Reloader) -> Result<(), Error> {
        let threads = self.threads.get(index as usize);
        let Some(main) = threads.and_then(|threads| threads.first()) else {
            return Ok(());
        };
        // A passive one does not have it.
        let _ = main.context().unbind_tcb(main.tcb());
        // First: a context without budget is not bound to a thread that waits.
        reloader.begin();
        main.context().bind(reloader.tcb())
    }

    /// Notes where a component is now, or that it cannot be restarted.
    fn enter(&mut self, log: &Log, index: u32, state: Result<State, Error>) {
        let Some((supervised, description)) = self.find_mut(index) else {
            return;
        };
        supervised.state = state.unwrap_or_else(|error| {
            let name = &description.name;
            say!(log, Error, "`{name}` cannot be restarted: {error}");
            State::Stopped
        });
    }

    /// Goes on with components that signals tell of.
    pub fn proceed_with(&mut self, log: &Log, arrived: Arrived) {
        for index in 0..self.supervised.len() as u32 {
            let Some((supervised, _)) = self.find(index) else {
                continue;
            };
            let Some(signals) = self.signals else { return };
            match supervised.state {
                State::Starting(thread) => {
                    let id = ThreadId {
                        component: index,
                        thread,
                    };
                    if self.is_ready(id, Some(arrived)) == Some(true) {
                        self.rest(id);
                        let state = self.start_from(index, thread + 1);
                        self.enter(log, index, state);
                    }
                }
                State::Reloading => {
                    let bit = signals.reloaded(index as usize);
                    if bit.is_some_and(|bit| arrived.has(bit)) {
                        let state = self.start(index);
                        self.enter(log, index, state);
                    }
                }
                _ => {}
            }
        }
    }

    /// Starts a component that was reloaded.
    fn start(&self, index: u32) -> Result<State, Error> {
        let reloader = self.find(index).and_then(|(s, _)| s.reloader.as_ref());
        let main = self.threads.get(index as usize).and_then(|t| t.first());
        if let (Some(reloader), Some(main)) = (reloader, main) {
            main.context().unbind_tcb(reloader.tcb())?;
        }
        self.arm(index);
        self.start_from(index, 0)
    }

    /// Starts the threads of a component from one on, up to one that is to say when it is ready.
    fn start_from(&self, index: u32, first: u32) -> Result<State, Error> {
        let described = self.system.components.get(index as usize);
        let described = described.map_or(&[][..], |component| &component.threads);
        for (number, thread) in (0..).zip(described).skip(first as usize) {
            self.start_thread(ThreadId {
                component: index,
                thread: number,
            })?;
            if thread.ready.is_some() {
                return Ok(State::Starting(number));
            }
        }
        Ok(State::Running)
    }

    /// As when the launcher started it first, but with what is left of its budget: a restart gives nobody more time than
    /// is described.
    fn start_thread(&self, id: ThreadId) -> Result<(), Error> {
        let (component, number) = (id.component as usize, id.thread as usize);
        let made = self.components.get(component);
        let thread = self.threads.get(component).and_then(|t| t.get(number));
        let described = self.system.components.get(component);
        let described = described.and_then(|component| component.threads.get(number));
        let (Some(made), Some(thread), Some(described)) = (made, thread, described) else {
            return Ok(());
        };
        if number == 0 || described.passive {
            thread.context().bind(thread.tcb())?;
        }
        let context = match thread.added() {
            None => made.start_context(),
            Some(added) => made.thread_start_context(added),
        };
        thread.tcb().write_registers(&context, false)?;
        thread.tcb().resume()
    }

    /// Takes the time of a passive thread that is ready.
    fn rest(&self, id: ThreadId) {
        let described = self.system.components.get(id.component as usize);
        let described = described.and_then(|c| c.threads.get(id.thread as usize));
        let thread = self.threads.get(id.component as usize);
        let thread = thread.and_then(|threads| threads.get(id.thread as usize));
        if let (Some(thread), Some(true)) = (thread, described.map(|thread| thread.passive)) {
            // If it waits for its first request, the time is there.
            let _ = thread.context().unbind_tcb(thread.tcb());
        }
    }
}

/// Sends a thread where nothing is. Returns whether it has to come back: it waits for an answer.
///
/// From the first of the two on, the thread executes nothing any more, so what its registers say of a call, if it waits,
/// stays true. They may say so of a thread that does not wait: that one comes at once.
fn is_sent_away(thread: &Thread) -> bool {
    let tcb = thread.tcb();
    // The capability is the launcher's own: nothing can fail.
    let _ = tcb.write_first_registers(&[exit::ENDED_AT], false);
    let registers = tcb.read_registers(false);
    registers.is_ok_and(|registers| registers.get(order::CALL) == Syscall::Call.raw())
}

impl Supervised {
    fn prepare(
        process: &mut Process,
        made: &Made<'_>,
        signals: &Signals,
        index: usize,
        description: &Component,
    ) -> Result<Self, Failure> {
        let component = made
            .components
            .get(index)
            .context("there is no such component")?;
        let elf = made.archive.blob(description.executable);
        let elf = elf.context("its executable cannot be read")?;
        let reloader = match signals.reloaded(index) {
            None => None,
            Some(bit) => {
                let image = Image::parse(elf).context("its executable cannot be loaded")?;
                let done = signals.signaller(process, bit)?;
                let window = Window::open(process)?;
                let priority = description.threads.first().map_or(0, |main| main.priority);
                let reloader = Reloader::make(process, component, image, priority, window, done);
                Some(reloader.context("the thread that reloads it")?)
            }
        };
        if let Some(reloader) = &reloader {
            trace::name(reloader.tcb(), &format!("{}/reload", description.name));
        }
        let most = description.restart.map_or(0, |policy| policy.times);
        Ok(Self {
            policy: description.restart,
            reloader,
            state: State::New,
            is_away: alloc::vec![false; description.threads.len()],
            restarts: Vec::with_capacity(most as usize),
        })
    }
}
