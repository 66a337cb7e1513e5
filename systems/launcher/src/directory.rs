//! Which capability is of what: for debuggers, which look at the launcher's memory from outside.
//!
//! `sandglass debug` waits at [`made`], finds the table by its name, and every kernel object through the
//! launcher's capability space. Nothing here reads the table.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hint::black_box;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use sandglass::cap::{CPtr, Capability};
use sandglass_description::System;

use crate::failure::Failure;
use crate::launch::Thread;
use crate::objects::Objects;

/// What a capability is of. The debugger's commands (`tools/gdb/sg/system.py`) know the numbers.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Kind {
    Thread,
    Context,
    Endpoint,
    Notification,
    /// Where faults and ends arrive that nobody else handles.
    Launcher,
}

/// A capability in the launcher's space, and what the description says of it.
#[derive(Clone, Copy)]
#[repr(C)]
struct Entry {
    kind: Kind,
    /// Of threads and contexts that of the component, else that of the object, in the description's
    /// order.
    index: u32,
    /// Of threads and contexts: which of the component's.
    thread: u32,
    cptr: u32,
}

impl Entry {
    fn of(kind: Kind, index: usize, thread: usize, cptr: CPtr) -> Self {
        Entry {
            kind,
            index: index as u32,
            thread: thread as u32,
            cptr: cptr.raw() as u32,
        }
    }
}

#[used]
static ENTRIES: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());
#[used]
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Publishes what was made, and shows it to a debugger that waits.
///
/// # Errors
/// The description has more objects than were made.
pub fn publish(system: &System, objects: &Objects, threads: &[Vec<Thread>]) -> Result<(), Failure> {
    let mut entries = Vec::new();
    for (index, threads) in threads.iter().enumerate() {
        for (number, thread) in threads.iter().enumerate() {
            let (tcb, context) = (thread.tcb().cptr(), thread.context().cptr());
            entries.push(Entry::of(Kind::Thread, index, number, tcb));
            entries.push(Entry::of(Kind::Context, index, number, context));
        }
    }
    for index in 0..system.endpoints {
        let endpoint = objects.endpoint(index)?.cptr();
        entries.push(Entry::of(Kind::Endpoint, index as usize, 0, endpoint));
    }
    for index in 0..system.notifications {
        let notification = objects.notification(index)?.cptr();
        entries.push(Entry::of(
            Kind::Notification,
            index as usize,
            0,
            notification,
        ));
    }
    entries.push(Entry::of(Kind::Launcher, 0, 0, objects.launcher.cptr()));
    let entries = Box::leak(entries.into_boxed_slice());
    COUNT.store(entries.len(), Ordering::Relaxed);
    ENTRIES.store(entries.as_mut_ptr(), Ordering::Release);
    made(entries);
    Ok(())
}

/// Everything is made, and nothing has been started: a place for a breakpoint.
#[inline(never)]
fn made(entries: &[Entry]) {
    black_box(entries);
}
