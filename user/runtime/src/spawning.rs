//! Threads that a component makes at run time, of memory that its description sets aside for them.
//!
//! The loader gives a component what one thread takes, as often as it may make one
//! ([`Component::give_spawning`](crate::component::Component::give_spawning)): untyped memory, slots, and
//! addresses whose paging structures are there. So a thread is made of nothing but its own share,
//! and what it takes is the same each time. Nothing here uses the heap.
//!
//! ```text
//! slots       untyped | TCB | a frame for each page
//! addresses   unmapped page | stack, thread block at its end | IPC buffer
//! ```

use crate::cap::{
    Attributes, CNode, Endpoint, Frame, FrameSize, GuardData, ObjectType, Pml4, Rights,
    SchedArguments, SchedContext, Tcb, Untyped,
};
use crate::env::Environment;
use crate::error::Error;
use crate::image::PAGE;
use crate::thread;

/// Names under which a component finds what it spawns with.
pub(crate) mod name {
    pub const CSPACE: &str = "spawning.cspace";
    pub const VSPACE: &str = "spawning.vspace";
    pub const AUTHORITY: &str = "spawning.tcb";
    pub const FAULTS: &str = "spawning.faults";
    pub const THREADS: &str = "spawning.threads";
    pub const STACK: &str = "spawning.stack";
    pub const PRIORITY: &str = "spawning.priority";
    pub const SLOT: &str = "spawning.slot";
    pub const ADDRESS: &str = "spawning.address";
}

/// What a thread takes whose stack has so many bytes, a multiple of the page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    stack_bytes: u64,
}

impl Share {
    pub const fn of(stack_bytes: u64) -> Self {
        Self { stack_bytes }
    }

    /// Of the stack, and of the IPC buffer above it.
    const fn pages(self) -> u64 {
        self.stack_bytes / PAGE + 1
    }

    /// Slots of the component's CNode.
    pub const fn slots(self) -> u64 {
        2 + self.pages()
    }

    /// Log2 bytes of its untyped memory.
    pub const fn memory_bits(self) -> u32 {
        let bytes = self.pages() * PAGE + (1 << ObjectType::Tcb.size_bits());
        bytes.next_power_of_two().ilog2()
    }

    /// Bytes of the address space, with the page that stays unmapped.
    pub const fn addresses(self) -> u64 {
        (self.pages() + 1) * PAGE
    }
}

/// What this component makes threads of.
#[derive(Clone, Copy, Debug)]
pub struct Spawning {
    cspace: CNode,
    vspace: Pml4,
    /// Whose maximum controlled priority allows the threads' priority.
    authority: Tcb,
    /// Where faults of the threads go.
    faults: Endpoint,
    share: Share,
    threads: usize,
    priority: u8,
    first_slot: u64,
    first_address: u64,
}

impl Environment {
    /// What this component makes threads of.
    ///
    /// # Panics
    /// If its description does not let it.
    pub fn spawning(&self) -> Spawning {
        Spawning {
            cspace: self.capability(name::CSPACE),
            vspace: self.capability(name::VSPACE),
            authority: self.capability(name::AUTHORITY),
            faults: self.capability(name::FAULTS),
            share: Share::of(self.parameter(name::STACK)),
            threads: self.parameter(name::THREADS) as usize,
            priority: self.parameter(name::PRIORITY) as u8,
            first_slot: self.parameter(name::SLOT),
            first_address: self.parameter(name::ADDRESS),
        }
    }
}

impl Spawning {
    /// Most threads that there can be at a time.
    pub const fn threads(&self) -> usize {
        self.threads
    }

    /// Makes thread `number`, from 0 on, below [`Self::threads`], which there must not be yet. It runs
    /// `body` on `context` once its TCB is resumed. If this fails, nothing is left of it.
    ///
    /// # Errors
    /// The kernel refuses a step.
    ///
    /// # Panics
    /// If there is no such number.
    pub fn make<T: Sync>(
        &self,
        number: usize,
        context: SchedContext,
        body: extern "C" fn(&'static T) -> !,
        argument: &'static T,
    ) -> Result<Tcb, Error> {
        assert!(
            number < self.threads,
            "no memory is set aside for thread {number} of {}",
            self.threads
        );
        let made = self.try_make(number, context, body, argument);
        if made.is_err() {
            // The memory is the component's own: nothing can fail.
            let _ = self.free(number);
        }
        made
    }

    /// Ends thread `number` and takes back all that it was made of; does nothing if there is none. It
    /// must not be the current thread.
    ///
    /// # Errors
    /// None, except for a capability that is not what the loader gave.
    pub fn free(&self, number: usize) -> Result<(), Error> {
        self.cspace.slot(self.slot(number)).revoke()
    }

    fn slot(&self, number: usize) -> u64 {
        self.first_slot + number as u64 * self.share.slots()
    }

    fn try_make<T: Sync>(
        &self,
        number: usize,
        context: SchedContext,
        body: extern "C" fn(&'static T) -> !,
        argument: &'static T,
    ) -> Result<Tcb, Error> {
        let slot = self.slot(number);
        let (memory, tcb) = (Untyped::at(slot), Tcb::at(slot + 1));
        let pages = self.share.pages();
        let mut made = 0;
        while made < pages {
            // As many as one Retype makes.
            let count = (pages - made).min(256);
            let first = self.cspace.slot(slot + 2 + made);
            memory.retype(FrameSize::Small.object_type(), first, count)?;
            made += count;
        }
        memory.retype(ObjectType::Tcb, self.cspace.slot(slot + 1), 1)?;
        let stack = self.first_address + number as u64 * self.share.addresses() + PAGE;
        for page in 0..pages {
            Frame::at(slot + 2 + page).map(
                self.vspace,
                stack + page * PAGE,
                Rights::READ_WRITE,
                Attributes::WriteBack,
            )?;
        }
        let buffer = stack + self.share.stack_bytes;
        let frame = Frame::at(slot + 1 + pages);
        let guard_as_it_is = GuardData(0);
        tcb.configure(
            self.cspace,
            guard_as_it_is,
            self.vspace,
            Some((buffer, frame)),
        )?;
        tcb.set_sched_params(
            self.authority,
            SchedArguments {
                mcp: 0,
                priority: self.priority,
                sched_context: Some(context),
                fault_handler: Some(self.faults),
            },
        )?;
        // SAFETY: the memory is this thread's: fresh, and mapped where nothing else is.
        unsafe { thread::load_function(tcb, buffer, body, argument)? };
        Ok(tcb)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_holds_a_thread() {
        let share = Share::of(0x4000);
        assert_eq!(
            (share.slots(), share.memory_bits(), share.addresses()),
            (7, 15, 6 * PAGE)
        );
        // Two pages and a TCB.
        assert_eq!(Share::of(PAGE).memory_bits(), 14);
    }
}
