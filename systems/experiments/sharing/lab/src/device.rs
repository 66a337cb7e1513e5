//! A device of the store, as far as its server sees it: told to begin, it signals 300 µs later.

use sandglass::cap::Notification;
use sandglass::{time, Environment};

/// How long it takes.
const WORK_US: u64 = 300;

/// Does what it is told, for good. The timer is the conductor's; this one waits by using up its budget,
/// whose period is as long as its work.
pub fn drive(env: &Environment) -> ! {
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let start: Notification = env.capability("drive.start");
    let done: Notification = env.capability("device.store");
    loop {
        start.wait();
        let end = time::ticks() + tsc.us_to_ticks(WORK_US);
        while time::ticks() < end {
            time::pass();
        }
        done.signal();
    }
}
