//! Ends the run when a test waits for something that does not happen: such a test fails by name,
//! at once in the host's time, since virtual time skips idleness.

use alloc::string::String;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

use sandglass::cap::SchedParams;
use sandglass::thread::{Thread, ThreadParams};
use sandglass::{exit, println, sys, time, SetupError};

use crate::fixture::Fixture;

/// No test takes longer, µs of virtual time.
const LIMIT_US: u64 = 200_000;
/// Below the root task alone, so that no other thread can keep it from running.
const PRIORITY: u8 = 254;

static TEST: AtomicPtr<String> = AtomicPtr::new(core::ptr::null_mut());
static STARTED: AtomicU64 = AtomicU64::new(0);

/// Notes that the test `name` begins.
pub fn begin(name: &str) {
    STARTED.store(time::ticks(), Relaxed);
    let name = alloc::boxed::Box::new(String::from(name));
    TEST.store(alloc::boxed::Box::into_raw(name), Relaxed);
}

/// Starts the watching thread: it looks once in [`LIMIT_US`].
pub fn start(fixture: &mut Fixture) -> Result<(), SetupError> {
    let limit = fixture.ticks(LIMIT_US);
    let context = fixture.context(SchedParams::new(1_000, LIMIT_US))?;
    Thread::spawn(
        &mut fixture.process,
        ThreadParams::new(PRIORITY, context),
        move || loop {
            if time::ticks() - STARTED.load(Relaxed) > limit {
                give_up();
            }
            sys::yield_now();
        },
    )?;
    Ok(())
}

fn give_up() -> ! {
    // SAFETY: null, or a box that was leaked by `begin`.
    let name = unsafe { TEST.load(Relaxed).as_ref() }.map_or("", String::as_str);
    println!("test {name} ... FAILED: no end within {LIMIT_US} µs of virtual time");
    exit::exit(1)
}
