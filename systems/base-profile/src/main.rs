//! What the ABI's profile for aarch64 keeps from programs (07, section 2): every register of counters and timers. Other programs
//! of this repository run on kernels with an option that lets them have some, so that they cannot show it.

#![no_std]
#![no_main]

extern crate alloc;

mod arch;

use sandglass::cap::{Endpoint, Reply, SchedParams};
use sandglass::fault::Fault;
use sandglass::testing::{Suite, TestResult};
use sandglass::thread::{Thread, ThreadParams};
use sandglass::{ensure, heap, BootInfo, Process, SetupError};

sandglass::entry!(main, stack = 0x8000, heap = 0x1_0000);

const PRIORITY: u8 = 100;
/// Round robin.
const FULL: SchedParams = SchedParams::new(5_000, 5_000);

fn main(boot: &'static BootInfo) -> Result<u8, SetupError> {
    let mut process = Process::root_task(boot);
    process.use_serial_console()?;
    process.use_exit_port()?;
    heap::share(process.resources.notification()?);
    let mut suite = Suite::new();
    for attempt in arch::ATTEMPTS {
        suite.run(attempt.name, || is_refused(&mut process, boot, attempt));
    }
    Ok(suite.finish())
}

/// Something that a program may try.
pub struct Attempt {
    pub name: &'static str,
    pub act: fn(),
}

/// Fails unless the attempt is an exception of the thread that makes it, as an access to a register that is not its.
fn is_refused(process: &mut Process, boot: &BootInfo, attempt: &'static Attempt) -> TestResult {
    let resources = &mut process.resources;
    let (handler, reply): (Endpoint, Reply) = (resources.endpoint()?, resources.reply()?);
    let context = resources.sched_context(FULL.size_bits())?;
    let control = boot.sched_control(0).ok_or("there is no first core")?;
    control.configure(context, FULL)?;
    let params = ThreadParams {
        fault_handler: Some(handler),
        ..ThreadParams::new(PRIORITY, context)
    };
    let thread = Thread::spawn(process, params, || {
        (attempt.act)();
        // Another exception, if that was none.
        sandglass::arch::invalid_instruction()
    })?;
    let fault = Fault::decode(&handler.recv(reply).message).ok_or("no fault")?;
    thread.tcb().suspend()?;
    ensure!(
        matches!(fault, Fault::Exception { number, .. } if arch::is_refused_register(number)),
        "{fault:?}"
    );
    Ok(())
}
