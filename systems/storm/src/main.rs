//! The storm: hostile threads fire random system calls, beside a canary whose deadlines and data
//! must hold.
//!
//! | module | who |
//! | --- | --- |
//! | [`actor`] | a thread of the storm |
//! | [`canary`] | the thread of the highest priority that checks itself, on each core |
//! | [`supervisor`] | builds one [`arena`] after the other, each with the next seed |
//! | [`ground`] | what outlives the arenas |
//! | [`area`], [`catalogue`], [`tally`] | memory that threads and supervisor share |
//! | [`options`] | what a run is asked for |
//!
//! The storm holds a capability of every kind but of I/O port control, and none to an object of
//! the canary, of the supervisor, or of a device. Its maximum controlled priorities are below
//! theirs, so it cannot starve them by right. Its threads are spread over all cores, and have
//! authority over the time of each, so that they move one another about.

#![no_std]
#![no_main]

extern crate alloc;

mod actor;
mod area;
mod arena;
mod canary;
mod catalogue;
mod ground;
mod options;
mod supervisor;
mod tally;

use alloc::boxed::Box;
use core::sync::atomic::Ordering::Relaxed;

use sandglass::abi::fault;
use sandglass::testing::Suite;
use sandglass::{boot, ensure, heap, println, BootInfo, Process, SetupError};

use actor::operations::OPERATIONS;
use canary::Watch;
use ground::Ground;
use options::Options;
use supervisor::Summary;

sandglass::entry!(main, stack = 0x1_0000, heap = 0x10_0000);

fn main(boot: &'static BootInfo) -> Result<u8, SetupError> {
    let mut process = Process::root_task(boot);
    process.use_serial_console()?;
    process.use_exit_port()?;
    heap::share(process.resources.notification()?);
    let options = Options::read(&mut process)?;
    let tsc = boot.tsc().expect("the kernel reports the TSC's frequency");
    let cores = boot.cores() as usize;
    let watch: &Watch = Box::leak(Box::new(Watch::new(cores)));
    let signals = process.resources.notification()?;
    let ground = Ground::new(&mut process, boot, signals)?;
    watch.areas.store(ground.first_area(), Relaxed);
    for core in 0..cores {
        canary::start(&mut process, boot, core, watch, signals, tsc)?;
    }
    supervisor::start_idlers(&mut process, &ground, signals)?;
    boot::TCB.set_priority(boot::TCB, supervisor::PRIORITY)?;
    let summary = supervisor::run(&ground, watch, options)?;
    report(&summary, watch);
    Ok(verdict(&summary, watch, options))
}

/// Prints all counts, a line each, for the host to add up.
fn report(summary: &Summary, watch: &Watch) {
    println!();
    println!(
        "storm-run {} {} {}",
        summary.calls, summary.arenas, summary.discarded
    );
    for jobs in &watch.jobs {
        println!(
            "storm-canary {} {} {}",
            jobs.done.load(Relaxed),
            jobs.latest_start.load(Relaxed),
            jobs.latest_end.load(Relaxed)
        );
    }
    for operation in &OPERATIONS {
        let row = summary.totals.invocations[operation.label as usize];
        println!("storm-invocation {} {row:?}", operation.name);
    }
    for (number, row) in summary.totals.syscalls.iter().enumerate() {
        println!("storm-syscall {number} {row:?}");
    }
    println!("storm-faults {:?}", summary.faults);
}

/// The tests of the run, and the status to end with. A canary has ended the run already if
/// something of it was touched.
fn verdict(summary: &Summary, watch: &Watch, options: Options) -> u8 {
    let mut suite = Suite::new();
    suite.run("calls_are_made", || {
        ensure!(summary.calls >= options.calls, "{}", summary.calls);
        Ok(())
    });
    suite.run("the_canary_lives", || {
        for (core, jobs) in watch.jobs.iter().enumerate() {
            let periods = jobs.done.load(Relaxed);
            ensure!(
                periods * 100 > summary.calls / 100,
                "{periods} periods on core {core}"
            );
        }
        Ok(())
    });
    suite.run("counters_are_kept", || {
        let (discarded, arenas) = (summary.discarded, summary.arenas);
        ensure!(discarded * 4 <= arenas, "{discarded} of {arenas} discarded");
        Ok(())
    });
    suite.run("every_fault_comes", || {
        for number in [
            fault::CAP_FAULT,
            fault::UNKNOWN_SYSCALL,
            fault::USER_EXCEPTION,
            fault::TIMEOUT,
            fault::VM_FAULT,
        ] {
            ensure!(summary.faults[number as usize] > 0, "none of {number}");
        }
        Ok(())
    });
    suite.run("invocations_succeed_and_fail", || {
        for operation in OPERATIONS
            .iter()
            .filter(|operation| operation.can_succeed())
        {
            let [_, good, bad @ ..] = summary.totals.invocations[operation.label as usize];
            let failed: u64 = bad.iter().sum();
            ensure!(good > 0, "{} never succeeded", operation.name);
            ensure!(failed > 0, "{} never failed", operation.name);
        }
        Ok(())
    });
    suite.finish()
}
