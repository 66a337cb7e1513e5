//! The end of a program.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::cap::{Endpoint, IoPort};
use crate::console::Output;
use crate::message::Message;
use crate::{console, sys};

/// The I/O port of QEMU's isa-debug-exit device (`iobase=0xf4`): writing `v` ends QEMU with
/// status `2 v + 1`.
pub const DEBUG_EXIT_PORT: u16 = 0xf4;
/// Exit status of a program that panicked.
pub const PANIC_STATUS: u8 = 101;

/// Name under which a component finds the endpoint of [`use_launcher`].
pub const LAUNCHER: &str = "launcher";
/// Label of the message that tells a launcher of an end; its word is the status. No fault has it.
pub const LABEL: u64 = 0x6578_6974;

/// Where a launcher lets the threads of a component go on that has ended. Nothing is ever mapped there (it is below
/// [`LOWEST_PROGRAM`](sandglass_abi::vspace::x86_64::LOWEST_PROGRAM)), so that each of them is stopped by a fault, of which
/// its fault handler hears: see [`Fault::is_end`](crate::fault::Fault::is_end).
pub const ENDED_AT: u64 = 0xed0;

/// Capability pointer of the exit port; 0 if there is none.
static EXIT_PORT: AtomicU64 = AtomicU64::new(0);
/// Capability pointer of the launcher's endpoint; 0 if there is none.
static LAUNCHER_ENDPOINT: AtomicU64 = AtomicU64::new(0);

/// Lets [`exit`] end the machine through isa-debug-exit. `port` must cover [`DEBUG_EXIT_PORT`].
pub fn use_port(port: IoPort) {
    EXIT_PORT.store(port.address(), Ordering::Relaxed);
}

/// Lets [`exit`] tell the launcher of this component, and leave to it what follows.
pub fn use_launcher(endpoint: Endpoint) {
    LAUNCHER_ENDPOINT.store(endpoint.address(), Ordering::Relaxed);
}

/// Ends the program. A component with a launcher tells it, and continues where the launcher lets
/// it: at [`ENDED_AT`]. Else the machine
/// ends, if the program has the exit port, or if its console is the debug kernel's, by DebugHalt,
/// where the status is lost. Else this thread ends alone, by a capability fault (its fault
/// handler, if any, learns of it).
pub fn exit(status: u8) -> ! {
    let launcher = LAUNCHER_ENDPOINT.load(Ordering::Relaxed);
    let port = EXIT_PORT.load(Ordering::Relaxed);
    if launcher != 0 {
        Endpoint::at(launcher).call(Message::new(LABEL, [u64::from(status)]));
    } else if port != 0 {
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
