//! From the start on: faults without another handler, and the system's end.

use alloc::vec::Vec;
use core::fmt;
use core::ops::ControlFlow;

use sandglass::cap::{Notification, Rights};
use sandglass::context::UserContext;
use sandglass::exit;
use sandglass::fault::Fault;
use sandglass::{boot, component, println, Error, Message, Process, Received};
use sandglass_description::{Component, Signal, System, ThreadId};

use crate::failure::{Context, Failure};
use crate::launch::Thread;
use crate::objects::Objects;
use crate::status::StatusPages;

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
    /// For a monitor.
    status: StatusPages<'a>,
    /// Those of the components whose end is the system's that can still end.
    awaited: Vec<u32>,
    /// Of each component: it has ended.
    ended: Vec<bool>,
}

/// What is signalled when threads end: by component and thread, in the description's order.
pub struct EndSignals(Vec<Vec<Vec<Notification>>>);

impl EndSignals {
    /// Makes the capabilities that it takes.
    pub fn make(
        process: &mut Process,
        system: &System,
        objects: &Objects,
    ) -> Result<Self, Failure> {
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
    pub fn new(
        system: &'a System,
        components: &'a [component::Component],
        threads: &'a [Vec<Thread>],
        objects: &'a Objects,
        end_signals: EndSignals,
        status: StatusPages<'a>,
    ) -> Self {
        let with_exit = |(index, component): (u32, &Component)| component.exit.then_some(index);
        Self {
            system,
            components,
            threads,
            objects,
            end_signals,
            status,
            awaited: (0..)
                .zip(&system.components)
                .filter_map(with_exit)
                .collect(),
            ended: alloc::vec![false; system.components.len()],
        }
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
        // So that what arrives first, signal or message, ends the same wait.
        boot::TCB
            .bind_notification(ready)
            .map_err(NeverReady::Refused)?;
        let outcome = self.until_signal(id);
        boot::TCB
            .unbind_notification()
            .map_err(NeverReady::Refused)?;
        outcome
    }

    fn until_signal(&mut self, id: ThreadId) -> Result<ControlFlow<u8>, NeverReady> {
        loop {
            let received = self.receive();
            if received.badge == SIGNAL {
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
            if component.exit {
                return (news, ControlFlow::Break(status));
            }
            self.end(id.component, component, status);
            news
        } else if is_own_call {
            // Nonsense. Who called is not answered, and so does not do it again.
            News::Nothing
        } else if let Some(fault) = Fault::decode(&received.message) {
            if fault.is_end() && self.has_ended(id.component) {
                return (News::Nothing, ControlFlow::Continue(()));
            }
            self.end_signals.of_thread(id);
            self.status.faulted(id, fault);
            report(component, id.thread, fault);
            if id.thread == 0 {
                self.awaited.retain(|&index| index != id.component);
            }
            News::Fault(id)
        } else {
            News::Nothing
        };
        let may_end = system.components.iter().any(|component| component.exit);
        if may_end && self.awaited.is_empty() {
            println!("launcher: every component with `exit = true` has been stopped by a fault");
            return (news, ControlFlow::Break(NOBODY_LEFT));
        }
        (news, ControlFlow::Continue(()))
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
            println!(
                "launcher: component `{}` ended with {}",
                component.name,
                Status(status)
            );
        }
    }
}

/// A status in words.
struct Status(u8);

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status {}", self.0)?;
        if self.0 == exit::PANIC_STATUS {
            write!(f, " (a panic; its message needs `console = true`)")?;
        }
        Ok(())
    }
}

fn report(component: &Component, thread: u32, fault: Fault) {
    let fault = Description(fault);
    match component.threads.get(thread as usize) {
        Some(thread) if thread.name != component.name => println!(
            "launcher: `{}/{}` was stopped by a fault: {fault}",
            component.name, thread.name
        ),
        Some(_) => println!(
            "launcher: `{}` was stopped by a fault: {fault}",
            component.name
        ),
        None => println!(
            "launcher: a thread that `{}` made was stopped by a fault: {fault}",
            component.name
        ),
    }
}

/// A fault in words.
struct Description(Fault);

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Fault::Memory {
                ip,
                address,
                instruction,
                status,
            } => {
                const WRITE: u64 = 1 << 1;
                let access = match (instruction, status & WRITE != 0) {
                    (true, _) => "executing",
                    (false, true) => "writing",
                    (false, false) => "reading",
                };
                write!(f, "{access} address {address:#x}, at instruction {ip:#x}")
            }
            Fault::Capability {
                ip,
                address,
                in_receive_phase,
                failure,
            } => {
                let phase = if in_receive_phase {
                    "receiving from"
                } else {
                    "sending to"
                };
                write!(
                    f,
                    "{phase} the capability {address:#x}, which does not exist ({failure:?}), at \
                     instruction {ip:#x}"
                )
            }
            Fault::UnknownSyscall { ip, number } => {
                write!(f, "system call {number:#x}, at instruction {ip:#x}")
            }
            Fault::Exception {
                ip, number, code, ..
            } => write!(
                f,
                "processor exception {number} with error code {code:#x}, at instruction {ip:#x}"
            ),
            Fault::Timeout { badge, consumed_us } => write!(
                f,
                "its budget ran out; it consumed {consumed_us} µs since the last report (badge \
                 {badge} of its scheduling context)"
            ),
        }
    }
}
