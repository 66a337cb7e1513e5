//! The end of a program.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::cap::IoPort;
use crate::console::Output;
use crate::{console, sys};

/// The I/O port of QEMU's isa-debug-exit device (`iobase=0xf4`): writing `v` ends QEMU with
/// status `2 v + 1`.
pub const DEBUG_EXIT_PORT: u16 = 0xf4;
/// Exit status of a program that panicked.
pub const PANIC_STATUS: u8 = 101;

/// Capability pointer of the exit port; 0 if there is none.
static EXIT_PORT: AtomicU64 = AtomicU64::new(0);

/// Lets [`exit`] end the machine through isa-debug-exit. `port` must cover [`DEBUG_EXIT_PORT`].
pub fn use_port(port: IoPort) {
    EXIT_PORT.store(port.address(), Ordering::Relaxed);
}

/// Ends the program: the machine, if it has the exit port; else, if its console is the debug
/// kernel's, the machine by DebugHalt, where the status is lost; else this thread alone, by a
/// capability fault (its fault handler, if any, learns of it).
pub fn exit(status: u8) -> ! {
    let port = EXIT_PORT.load(Ordering::Relaxed);
    if port != 0 {
        // Without the device nothing happens.
        let _ = IoPort::at(port).out8(DEBUG_EXIT_PORT, status);
    } else if console::output() == Output::Debug {
        sys::debug_halt();
    }
    stop()
}

/// Stops the current thread for good: it waits on the null capability, which is a fault.
pub fn stop() -> ! {
    loop {
        crate::cap::Notification::at(0).wait();
    }
}
