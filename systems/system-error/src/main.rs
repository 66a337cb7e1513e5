//! What becomes of threads that a system error of aarch64 meets (SError; reference, deliberate difference 17). A loader of tests,
//! `systems/reference-loader`, raises one whenever user code waits for an interrupt.

#![no_std]
#![no_main]

extern crate alloc;

use core::arch::asm;

use sandglass::cap::{Endpoint, Reply, SchedParams};
use sandglass::fault::Fault;
use sandglass::thread::{Thread, ThreadParams};
use sandglass::{heap, println, BootInfo, Process, SetupError};

sandglass::entry!(main, stack = 0x8000, heap = 0x1_0000);

const PRIORITY: u8 = 100;
/// Round robin.
const FULL: SchedParams = SchedParams::new(5_000, 5_000);
/// More than interrupts can be pending for, one after another.
const TRIES: u32 = 100;

/// Ends with status 0 after two threads, whatever becomes of them.
fn main(boot: &'static BootInfo) -> Result<(), SetupError> {
    let mut process = Process::root_task(boot);
    process.use_serial_console()?;
    process.use_exit_port()?;
    heap::share(process.resources.notification()?);
    let control = boot.sched_control(0).expect("there is a first core");
    for number in 1..=2 {
        let resources = &mut process.resources;
        let (handler, reply): (Endpoint, Reply) = (resources.endpoint()?, resources.reply()?);
        let context = resources.sched_context(FULL.size_bits())?;
        control.configure(context, FULL)?;
        let params = ThreadParams {
            fault_handler: Some(handler),
            ..ThreadParams::new(PRIORITY, context)
        };
        let thread = Thread::spawn(&mut process, params, || {
            // Waiting is told only where it would be waiting: not while an interrupt is pending, such as that of the kernel's timer.
            for _ in 0..TRIES {
                wait();
            }
            // Another exception, if it was not met.
            sandglass::arch::invalid_instruction()
        })?;
        let fault = Fault::decode(&handler.recv(reply).message);
        thread.tcb().suspend()?;
        match fault {
            Some(Fault::Exception { number: what, .. }) => {
                println!("thread {number}: exception {what:#x}")
            }
            other => println!("thread {number}: {other:?}"),
        }
    }
    Ok(())
}

/// Waits for an interrupt, which the processor tells the loader.
fn wait() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: it changes nothing.
    unsafe {
        asm!("wfi", options(nomem, nostack, preserves_flags))
    }
    #[cfg(not(target_arch = "aarch64"))]
    // SAFETY: it changes nothing.
    unsafe {
        asm!("nop", options(nomem, nostack, preserves_flags))
    }
}
