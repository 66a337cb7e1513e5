//! What those tell the launcher who can be started anew, and those who do it: each by a bit of a badge, so that nobody has to
//! wait for the launcher, nor it for them.

use alloc::vec::Vec;

use sandglass::cap::{Notification, Rights};
use sandglass::{boot, Error, Process};
use sandglass_description::{Component, System, ThreadId};

use crate::failure::{Context, Failure};

/// In each badge of a signal, and in no badge of a message.
const MARK: u64 = 1 << 62;
/// The bit of the one that looks after watchdogs.
const WATCHDOG: u32 = 61;

/// The notification, which is bound to the launcher's thread, and who has which bit.
pub struct Signals {
    notification: Notification,
    /// Of each component that can fail and be dealt with: the bit of the thread that reloads it, and those of its threads
    /// that say when they are ready.
    bits: Vec<Option<Bits>>,
}

struct Bits {
    reloaded: u32,
    ready: Vec<Option<u32>>,
}

/// Bits of signals that have arrived.
#[derive(Clone, Copy)]
pub struct Arrived(u64);

impl Arrived {
    /// `None` if the badge is that of a message.
    pub fn of_badge(badge: u64) -> Option<Self> {
        (badge & MARK != 0 && badge >> 63 == 0).then_some(Self(badge))
    }

    pub const fn has(self, bit: u32) -> bool {
        self.0 & 1 << bit != 0
    }

    pub const fn has_watchdog(self) -> bool {
        self.has(WATCHDOG)
    }
}

/// Whether the launcher deals with a failure of the component.
pub const fn is_supervised(component: &Component) -> bool {
    component.restart.is_some() || component.watchdog.is_some()
}

impl Signals {
    /// `None` if no component needs them.
    pub fn make(process: &mut Process, system: &System) -> Result<Option<Self>, Failure> {
        if !system.components.iter().any(is_supervised) {
            return Ok(None);
        }
        let mut free = 0..WATCHDOG;
        let mut next = || free.next().context("too many signals for restarts");
        let mut bits = Vec::new();
        for component in &system.components {
            bits.push(match component.restart {
                None => None,
                Some(_) => Some(Bits {
                    reloaded: next()?,
                    ready: component
                        .threads
                        .iter()
                        .map(|thread| thread.ready.map(|_| next()).transpose())
                        .collect::<Result<_, _>>()?,
                }),
            });
        }
        let notification = process.resources.notification();
        let notification = notification.context("cannot make a notification")?;
        Ok(Some(Self { notification, bits }))
    }

    /// Lets the launcher hear of them while it waits for messages.
    pub fn bind(&self) -> Result<(), Error> {
        boot::TCB.bind_notification(self.notification)
    }

    /// The bit with which a thread says that it is ready, if it has one.
    pub fn ready(&self, id: ThreadId) -> Option<u32> {
        let bits = self.bits.get(id.component as usize)?.as_ref()?;
        *bits.ready.get(id.thread as usize)?
    }

    pub fn reloaded(&self, component: usize) -> Option<u32> {
        Some(self.bits.get(component)?.as_ref()?.reloaded)
    }

    pub const fn notification(&self) -> Notification {
        self.notification
    }

    pub const fn badge(bit: u32) -> u64 {
        MARK | 1 << bit
    }

    /// What signals a bit.
    pub fn signaller(&self, process: &mut Process, bit: u32) -> Result<Notification, Failure> {
        let badge = Self::badge(bit);
        let minted = process
            .resources
            .mint(self.notification, Rights::WRITE, badge);
        minted.context("cannot make what signals the launcher")
    }

    /// What the one that looks after watchdogs signals.
    pub fn watchdog(&self, process: &mut Process) -> Result<Notification, Failure> {
        self.signaller(process, WATCHDOG)
    }
}
