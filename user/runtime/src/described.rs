//! What a component of a described system finds in its environment beyond single capabilities:
//! the names that the builder of systems gives to what belongs together.
//!
//! Of an endpoint `e` that the component serves: `e`, and `e.reply`, the reply object. Of itself:
//! `ready`, which its main thread signals. Of another thread `t` of its own: `t.stack`, `t.ready`. Of a thread `t` whose timeouts or faults it handles or which it controls: `t.tcb`,
//! `t.context`, `t.ready`, `t.badge`. What it handles arrives at `timeouts` and `faults`.

use alloc::format;
use core::ops::Range;

use crate::cap::{Notification, SchedContext, Tcb};
use crate::env::{Environment, MemoryRegion};
use crate::error::Error;
use crate::image::PAGE;
use crate::server::Service;
use crate::thread;
use crate::timeout::{Checkpoint, Rollback};
use crate::watchdog::{Signs, Watchdog};

/// A thread of this component that the launcher starts, once it is prepared and the main thread
/// is ready. No capability comes with it: a component that could stop one of its own threads could do so while a
/// server works for that, which would then be left with the thread's scheduling context.
#[derive(Clone, Copy, Debug)]
pub struct DescribedThread {
    /// Stack, and the page of the IPC buffer above it.
    memory: MemoryRegion,
}

impl DescribedThread {
    /// Says what the thread does. To be called once, before the main thread is ready.
    ///
    /// If it or another thread uses the heap while both run, see [`crate::heap::share_by`].
    pub fn prepare(self, body: impl FnOnce() + Send + 'static) {
        let buffer = self.memory.address + self.memory.len - PAGE;
        // SAFETY: the launcher mapped the memory for this thread.
        unsafe { thread::prepare(buffer, body) }
    }

    /// As [`Self::prepare`], for a thread that may be started anew: whoever has its TCB reads its registers before it starts,
    /// and writes them when it has a fault. Then it does `body` again, with what that captured as the fault has left it. What
    /// it held on its stack is lost, and not dropped.
    pub fn prepare_restartable(self, body: impl FnMut() + Send + 'static) {
        let buffer = self.memory.address + self.memory.len - PAGE;
        // SAFETY: the launcher mapped the memory for this thread.
        unsafe { thread::prepare_restartable(buffer, body) }
    }

    /// The addresses of its stack, where its local variables are and those of no other thread.
    pub const fn stack(self) -> Range<u64> {
        self.memory.address..self.memory.address + self.memory.len
    }
}

/// # Panics
/// All of these panic if the names are not there: the component and the description of its system
/// disagree.
impl Environment {
    /// What the main thread serves the endpoint `endpoint` with.
    pub fn service(&self, endpoint: &str) -> Service {
        Service {
            ready: self.ready(),
            endpoint: self.capability(endpoint),
            reply: self.capability(&format!("{endpoint}.reply")),
        }
    }

    /// What the main thread signals when it is ready.
    pub fn ready(&self) -> Notification {
        self.capability("ready")
    }

    /// Another thread of this component.
    pub fn thread(&self, name: &str) -> DescribedThread {
        DescribedThread {
            memory: self.memory(&format!("{name}.stack")),
        }
    }

    /// Where this component gives signs of life.
    pub fn watchdog(&self) -> Watchdog {
        let memory = self.memory("watchdog");
        // SAFETY: the launcher mapped it for good; any content is signs.
        Watchdog::new(unsafe { &*memory.as_mut_ptr().cast::<Signs>() })
    }

    /// The scheduling context of the thread `thread`, which this component controls or handles.
    pub fn context_of(&self, thread: &str) -> SchedContext {
        self.capability(&format!("{thread}.context"))
    }

    /// What it takes to roll back the passive thread `thread`, which serves `endpoint` and whose
    /// timeouts this component handles. The thread must wait for its first request: so it does
    /// when the launcher starts its handler.
    ///
    /// # Errors
    /// The kernel refuses to read its registers.
    pub fn rollback(&self, thread: &str, endpoint: &str) -> Result<Rollback, Error> {
        let server: Tcb = self.capability(&format!("{thread}.tcb"));
        Ok(Rollback {
            server,
            checkpoint: Checkpoint::take(server)?,
            client: self.capability(&format!("{endpoint}.reply")),
            ready: self.capability(&format!("{thread}.ready")),
            context: self.context_of(thread),
        })
    }
}
