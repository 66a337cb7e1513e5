//! What the launcher tells a monitor: which threads have started, ended or faulted, and by which capability a
//! component knows what it may wait for.
//!
//! The monitor only reads the memory, whose words are written one by one: it may see a state before the numbers that
//! belong to it, which are written first.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use sandglass::cap::{Attributes, CPtr, FrameSize, Rights};
use sandglass::fault::Fault;
use sandglass::image::PAGE;
use sandglass::Process;
use sandglass_description::monitor::status;
use sandglass_description::{System, ThreadId};

use crate::failure::{Context, Failure};
use crate::objects::Objects;

const WORDS_PER_PAGE: usize = PAGE as usize / 8;

/// The memory, or none if nobody watches.
pub struct StatusPages<'a> {
    system: &'a System,
    pages: Vec<&'static [AtomicU64; WORDS_PER_PAGE]>,
}

impl<'a> StatusPages<'a> {
    /// Maps the memory here, and writes what is known from the beginning. `granted` has the capabilities of each
    /// component, in the description's order.
    pub fn start(
        process: &mut Process,
        system: &'a System,
        objects: &Objects,
        granted: &[Vec<CPtr>],
    ) -> Result<Self, Failure> {
        let mut pages = Vec::new();
        if let Some(described) = &system.status {
            for &frame in &objects.memory(described.memory)?.frames {
                let address = process
                    .space
                    .map_frame(
                        &mut process.resources,
                        frame,
                        FrameSize::Small,
                        Rights::READ_WRITE,
                        Attributes::WriteBack,
                    )
                    .context("cannot map what a monitor is told")?;
                // SAFETY: the page is mapped from now on, and nobody accesses it but by whole words; others only
                // read it.
                pages.push(unsafe { &*(address as *const [AtomicU64; WORDS_PER_PAGE]) });
            }
        }
        let status = Self { system, pages };
        status.tell_capabilities(granted)?;
        Ok(status)
    }

    fn tell_capabilities(&self, granted: &[Vec<CPtr>]) -> Result<(), Failure> {
        let Some(described) = &self.system.status else {
            return Ok(());
        };
        let threads = self.system.components.iter().map(|c| c.threads.len()).sum();
        for (index, &(component, grant)) in described.known.iter().enumerate() {
            let cptr = granted
                .get(component as usize)
                .and_then(|granted| granted.get(grant as usize))
                .context("the description names a capability that was not granted")?;
            self.write(status::known(threads, index), cptr.raw());
        }
        Ok(())
    }

    pub fn started(&self, id: ThreadId) {
        self.tell(id, status::STARTED, [0; 3]);
    }

    /// All threads of a component have ended.
    pub fn ended(&self, component: u32, code: u8) {
        for id in self.threads(component) {
            self.tell(id, status::ENDED, [code.into(), 0, 0]);
        }
    }

    /// A component has failed, and all its threads begin anew.
    pub fn restarted(&self, component: u32) {
        for id in self.threads(component) {
            self.started(id);
        }
    }

    fn threads(&self, component: u32) -> impl Iterator<Item = ThreadId> {
        let described = self.system.components.get(component as usize);
        let threads = described.map_or(0, |component| component.threads.len() as u32);
        (0..threads).map(move |thread| ThreadId { component, thread })
    }

    pub fn faulted(&self, id: ThreadId, fault: Fault) {
        let numbers = match fault {
            Fault::Capability { ip, address, .. } => [1, ip, address],
            Fault::UnknownSyscall { ip, number } => [2, ip, number],
            Fault::Exception { ip, number, .. } => [3, ip, number],
            Fault::Timeout { consumed_us, .. } => [5, 0, consumed_us],
            Fault::Memory { ip, address, .. } => [6, ip, address],
        };
        self.tell(id, status::FAULTED, numbers);
    }

    /// A thread that a component has made is in no description, and is not told of.
    fn tell(&self, id: ThreadId, state: u64, numbers: [u64; 3]) {
        let Some(number) = self.number(id) else {
            return;
        };
        let first = status::thread(number);
        for (place, number) in (first + 1..).zip(numbers) {
            self.write(place, number);
        }
        self.write(first, state);
    }

    /// The thread's number among all.
    fn number(&self, id: ThreadId) -> Option<usize> {
        let component = id.component as usize;
        let (thread, own) = (id.thread as usize, self.system.components.get(component)?);
        let before = self.system.components.iter().take(component);
        let before: usize = before.map(|component| component.threads.len()).sum();
        (thread < own.threads.len()).then_some(before + thread)
    }

    fn write(&self, place: usize, word: u64) {
        if let Some(page) = self.pages.get(place / WORDS_PER_PAGE) {
            page[place % WORDS_PER_PAGE].store(word, Ordering::Release);
        }
    }
}
