//! From the start on: faults without another handler, and the system's end.

use alloc::vec::Vec;
use core::fmt;
use core::ops::ControlFlow;

use sandglass::cap::{Notification, Rights};
use sandglass::context::UserContext;
use sandglass::exit::{self, Panic};
use sandglass::fault::Fault;
use sandglass::{boot, component, Error, Message, Process, Received};
use sandglass_description::{Component, Signal, System, ThreadId};

use crate::failure::{Context, Failure};
use crate::launch::Thread;
use crate::log::Log;
use crate::made::Made;
use crate::objects::Objects;
use crate::report::{self, Status, Who};
use crate::restart::signals::{Arrived, Signals};
use crate::restart::{Fate, How, Restarts};
use crate::say;
use crate::status::StatusPages;
use crate::window::Window;

/// Status of a system that no component can end any more.
const NOBODY_LEFT: u8 = 1;

/// The badge of signals that a thread is ready, which are not badged.
const SIGNAL: u64 = 0;

/// The badge under which a thread's faults and end arrive.
pub const fn badge(id: ThreadId) -> u64 {
    ((id.component as u64) << 32 | id.thread as u64) + 1
}

/// In the badge under which a component itself calls, where its threads' faults are not believed.
const OWN_CALL: u64 = 1 << 63;

/// The badge under which a component tells of its end.
pub const fn call_badge(component: u32) -> u64 {
    OWN_CALL
        | badge(ThreadId {
            component,
            thread: 0,
        })
}

const fn thread_of(badge: u64) -> ThreadId {
    let number = badge.wrapping_sub(1);
    ThreadId {
        component: (number >> 32) as u32,
        thread: number as u32,
    }
}

/// Receives all ends, and faults without another handler, from the start on.
pub struct Watch<'a> {
    system: &'a System,
    components: &'a [component::Component],
    threads: &'a [Vec<Thread>],
    objects: &'a Objects,
    end_signals: EndSignals,
    log: Log,
    window: Window,
    restarts: Restarts<'a>,
    /// For a monitor.
    status: StatusPages<'a>,
    /// Those of the components whose end is the system's that can still end.
    awaited: Vec<u32>,
    /// Of each component: it has ended.
    ended: Vec<bool>,
}

/// What is signalled when threads end: by component and thread, in the description's order.
struct EndSignals(Vec<Vec<Vec<Notification>>>);

impl EndSignals {
    /// Makes the capabilities that it takes.
    fn make(process: &mut Process, system: &System, objects: &Objects) -> Result<Self, Failure> {
        let mut make = |signal: &Signal| {
            let notification = objects.notification(signal.notification)?;
            let minted = process
                .resources
                .mint(notification, Rights::WRITE, signal.badge);
            minted.context("cannot make what is signalled at an end")
        };
        let components = system.components.iter();
        let signals = components.map(|component| {
            let threads = component.threads.iter();
            let signals = threads.map(|thread| thread.end_signals.iter().map(&mut make).collect());
            signals.collect()
        });
        Ok(Self(signals.collect::<Result<_, _>>()?))
    }

    fn of_thread(&self, id: ThreadId) {
        let threads = self.0.get(id.component as usize);
        let signals = threads.and_then(|threads| threads.get(id.thread as usize));
        for notification in signals.into_iter().flatten() {
            notification.signal();
        }
    }

    fn of_component(&self, index: u32) {
        let threads = self.0.get(index as usize);
        for notification in threads.into_iter().flatten().flatten() {
            notification.signal();
        }
    }
}

/// A component will not say any more that it is ready.
pub enum NeverReady {
    Ended {
        status: u8,
    },
    Stopped,
    /// The kernel refuses to let the launcher wait.
    Refused(Error),
}

impl fmt::Display for NeverReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended { status } => {
                write!(f, "it ended before it was ready, with {}", Status(*status))
            }
            Self::Stopped => write!(f, "it was stopped by a fault before it was ready"),
            Self::Refused(error) => write!(f, "cannot wait until it is ready: {error}"),
        }
    }
}

/// What a message to the launcher was about.
enum News {
    /// Nothing of a component: a signal, say.
    Nothing,
    End {
        component: u32,
        status: u8,
    },
    Fault(ThreadId),
}

impl<'a> Watch<'a> {
    /// Makes all that it takes to receive them.
    pub fn prepare(
        process: &mut Process,
        made: &Made<'a>,
        signals: Option<&'a Signals>,
        status: StatusPages<'a>,
    ) -> Result<Self, Failure> {
        let Made {
            info,
            system,
            components,
            threads,
            objects,
            ..
        } = *made;
        let end_signals = EndSignals::make(process, system, objects)?;
        let log = Log::open(process, info, system, objects, threads)?;
        let window = Window::open(process)?;
        let restarts = Restarts::prepare(process, made, signals)?;
        let with_exit = |(index, component): (u32, &Component)| component.exit.then_some(index);
        Ok(Self {
            system,
            components,
            threads,
            objects,
            end_signals,
            log,
            window,
            restarts,
            status,
            awaited: (0..)
                .zip(&system.components)
                .filter_map(with_exit)
                .collect(),
            ended: alloc::vec![false; system.components.len()],
        })
    }

    /// A thread of a component has begun to run.
    pub fn started(&self, id: ThreadId) {
        self.status.started(id);
    }

    /// Waits until the thread `id` signals `ready`. Breaks with the status if the system ends
    /// meanwhile.
    ///
    /// # Errors
    /// It cannot signal any more. A fault that a described handler takes is that one's business.
    pub fn until_ready(
        &mut self,
        ready: Notification,
        id: ThreadId,
    ) -> Result<ControlFlow<u8>, NeverReady> {
        if self.restarts.has_own_ready(id) {
            return self.until_signal(id);
        }
        // So that what arrives first, signal or message, ends the same wait. Signals of restarts wait meanwhile.
        let signals = self.restarts.signals();
        if signals.is_some() {
            boot::TCB
                .unbind_notification()
                .map_err(NeverReady::Refused)?;
        }
        boot::TCB
            .bind_notification(ready)
            .map_err(NeverReady::Refused)?;
        let outcome = self.until_signal(id);
        boot::TCB
            .unbind_notification()
            .map_err(NeverReady::Refused)?;
        if let Some(signals) = signals {
            signals.bind().map_err(NeverReady::Refused)?;
        }
        outcome
    }

    /// Notes that a component begins to start, for the first time.
    pub fn first_starts(&self, component: u32) {
        self.restarts.first_starts(component);
    }

    /// Notes that a component has been started completely.
    pub fn first_started(&mut self, component: u32) {
        self.restarts.first_started(component);
    }

    fn until_signal(&mut self, id: ThreadId) -> Result<ControlFlow<u8>, NeverReady> {
        loop {
            let received = self.receive();
            let arrived = Arrived::of_badge(received.badge);
            let is_ready = self.restarts.is_ready(id, arrived);
            if is_ready.unwrap_or(received.badge == SIGNAL) {
                return Ok(ControlFlow::Continue(()));
            }
            let (news, system) = self.take(&received);
            match news {
                // Its own end: that of the system is as much of an accident.
                News::End { component, status } if component == id.component => {
                    return Err(NeverReady::Ended { status });
                }
                News::Fault(thread) if thread == id => return Err(NeverReady::Stopped),
                _ if system.is_break() => return Ok(system),
                _ => {}
            }
        }
    }

    /// Goes on until a component ends whose end is the system's; returns the status. Stopped
    /// threads stay stopped: what else to do about a fault is the business of a described handler.
    pub fn until_end(&mut self) -> u8 {
        loop {
            let received = self.receive();
            if let (_, ControlFlow::Break(status)) = self.take(&received) {
                return status;
            }
        }
    }

    /// Receiving anew drops the previous caller, who then never runs again.
    fn receive(&self) -> Received {
        self.objects.launcher.recv(self.objects.launcher_reply)
    }

    /// Reports what a message says. Breaks with the status if it is the system's end.
    fn take(&mut self, received: &Received) -> (News, ControlFlow<u8>) {
        if let Some(arrived) = Arrived::of_badge(received.badge) {
            return (News::Nothing, self.take_signals(arrived));
        }
        let id = thread_of(received.badge & !OWN_CALL);
        let is_own_call = received.badge & OWN_CALL != 0;
        let system = self.system;
        let Some(component) = system.components.get(id.component as usize) else {
            return (News::Nothing, ControlFlow::Continue(()));
        };
        let news = if is_own_call && received.message.label() == exit::LABEL {
            let status = received.message.word(0) as u8;
            let news = News::End {
                component: id.component,
                status,
            };
            if self.has_ended(id.component) {
                return (News::Nothing, ControlFlow::Continue(()));
            }
            let panic = Panic::decode(&received.message).filter(|_| status == exit::PANIC_STATUS);
            if let (Some(panic), Some(made)) = (panic, self.components.get(id.component as usize)) {
                report::panic(&self.log, &mut self.window, component, made, &panic);
            }
            match self.fail(id.component, How::End(status)) {
                Fate::AsEver if component.exit => return (news, ControlFlow::Break(status)),
                Fate::AsEver => self.end(id.component, component, status),
                Fate::Restarted | Fate::Stopped => {}
            }
            news
        } else if is_own_call {
            // Nonsense. Who called is not answered, and so does not do it again; unless it is awaited.
            self.restarts.hears_call(id.component);
            News::Nothing
        } else if let Some(fault) = Fault::decode(&received.message) {
            let is_back = fault.is_end() && self.restarts.comes_back(&self.log, id);
            if is_back || fault.is_end() && self.has_ended(id.component) {
                return (News::Nothing, ControlFlow::Continue(()));
            }
            self.end_signals.of_thread(id);
            self.status.faulted(id, fault);
            self.report_fault(component, id, fault);
            self.log.stopped(id.component);
            let fate = self.fail(id.component, How::Fault(id.thread));
            if fate == Fate::AsEver && id.thread == 0 {
                self.awaited.retain(|&index| index != id.component);
            }
            News::Fault(id)
        } else {
            News::Nothing
        };
        (news, self.is_over())
    }

    /// Goes on with restarts, and deals with components that were not heard of.
    fn take_signals(&mut self, arrived: Arrived) -> ControlFlow<u8> {
        self.restarts.proceed_with(&self.log, arrived);
        if arrived.has_watchdog() {
            while let Some(component) = self.restarts.next_silent() {
                self.fail(component, How::Silence);
            }
        }
        self.is_over()
    }

    /// Deals with a failure as the description says.
    fn fail(&mut self, component: u32, how: How) -> Fate {
        let fate = self.restarts.fail(&self.log, component, how);
        if fate != Fate::AsEver {
            self.end_signals.of_component(component);
        }
        if fate == Fate::Restarted {
            self.status.restarted(component);
        }
        if fate == Fate::Stopped {
            self.awaited.retain(|&index| index != component);
        }
        fate
    }

    /// Whether nobody is left who could end the system.
    fn is_over(&self) -> ControlFlow<u8> {
        let may_end = self
            .system
            .components
            .iter()
            .any(|component| component.exit);
        if may_end && self.awaited.is_empty() {
            say!(
                self.log,
                Error,
                "every component with `exit = true` has been stopped by a fault"
            );
            return ControlFlow::Break(NOBODY_LEFT);
        }
        ControlFlow::Continue(())
    }

    fn has_ended(&self, component: u32) -> bool {
        self.ended.get(component as usize) == Some(&true)
    }

    /// Stops what is left of a component that has ended: when one of its threads would go on, it does so where nothing is, and
    /// its fault handler hears of that. None is suspended, since one that waits for a server would leave its time there,
    /// and others would be served on that from then on.
    fn end(&mut self, index: u32, component: &Component, status: u8) {
        if let Some(ended) = self.ended.get_mut(index as usize) {
            *ended = true;
        }
        self.restarts.ended(index);
        let nowhere = UserContext::start(exit::ENDED_AT, 0, 0, 0);
        for thread in self.threads.iter().skip(index as usize).take(1).flatten() {
            // The capability is the launcher's own: nothing can fail.
            let _ = thread.tcb().write_registers(&nowhere, false);
        }
        // So the thread that told of the end goes there, too.
        self.objects.launcher_reply.send(Message::EMPTY);
        self.end_signals.of_component(index);
        self.status.ended(index, status);
        if let Some(ended) = self.components.get(index as usize) {
            let _ = ended.end_spawned();
        }
        if status != 0 {
            let name = &component.name;
            say!(
                self.log,
                Warn,
                "component `{name}` ended with {}",
                Status(status)
            );
        }
        self.log.stopped(index);
    }

    fn report_fault(&mut self, component: &Component, id: ThreadId, fault: Fault) {
        let Some(made) = self.components.get(id.component as usize) else {
            return;
        };
        let who = Who {
            component,
            thread: id.thread,
        };
        let threads = self.threads.get(id.component as usize);
        let thread = threads.and_then(|threads| threads.get(id.thread as usize));
        let registers = thread.and_then(|thread| thread.tcb().read_registers(false).ok());
        report::fault(
            &self.log,
            &mut self.window,
            &who,
            made,
            fault,
            registers.as_ref(),
        );
    }

    /// Where the launcher's lines go.
    pub fn log(&self) -> &Log {
        &self.log
    }
}
