//! The storm: hostile threads fire random system calls, beside a canary whose deadlines and data
//! must hold.
//!
//! | module | who |
//! | --- | --- |
//! | [`actor`] | a thread of the storm of calls |
//! | [`instructions`] | a thread of the storm of instructions |
//! | [`canary`] | the thread of the highest priority that checks itself, on each core |
//! | [`witness`] | a thread beside it that looks at what the canary cannot |
//! | [`supervisor`] | builds one [`arena`] after the other, each with the next seed |
//! | [`ground`] | what outlives the arenas |
//! | [`area`], [`catalogue`], [`tally`] | memory that threads and supervisor share |
//! | [`arch`] | what it knows of an architecture |
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
mod arch;
mod area;
mod arena;
mod canary;
mod catalogue;
mod ground;
mod instructions;
mod options;
mod supervisor;
mod tally;
mod witness;

use alloc::boxed::Box;
use core::sync::atomic::Ordering::Relaxed;

use sandglass::abi::fault;
use sandglass::testing::Suite;
use sandglass::{boot, ensure, heap, println, BootInfo, Process, SetupError};

use actor::operations::OPERATIONS;
use arch::instructions::class::Class;
use arena::Storm;
use canary::Watch;
use ground::Ground;
use options::Options;
use supervisor::Summary;

sandglass::entry!(main, stack = 0x2_0000, heap = 0x10_0000);

fn main(boot: &'static BootInfo) -> Result<u8, SetupError> {
    let status = storm(boot)?;
    arch::end(status)
}

fn storm(boot: &'static BootInfo) -> Result<u8, SetupError> {
    let mut process = Process::root_task(boot);
    process.use_serial_console()?;
    arch::use_end(&mut process)?;
    heap::share(process.resources.notification()?);
    let options = Options::read(&mut process)?;
    let tsc = boot
        .tsc()
        .expect("the kernel reports the frequency of its clock");
    let cores = boot.cores() as usize;
    let watch: &Watch = Box::leak(Box::new(Watch::new(cores)));
    let signals = process.resources.notification()?;
    let ground = Ground::new(&mut process, boot, signals)?;
    watch.areas.store(ground.first_area(), Relaxed);
    for core in 0..cores {
        canary::start(&mut process, boot, core, watch, signals, tsc)?;
    }
    witness::start_all(&mut process, boot, watch)?;
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
        "storm-run {} {} {} {}",
        summary.calls, summary.instructions, summary.arenas, summary.discarded
    );
    for jobs in &watch.jobs {
        println!(
            "storm-canary {} {} {}",
            jobs.done.load(Relaxed),
            jobs.latest_start.load(Relaxed),
            jobs.latest_end.load(Relaxed)
        );
    }
    for operation in OPERATIONS.iter().filter(|it| it.exists()) {
        let row = summary.totals.invocations[tally::row_of(operation.label)];
        println!("storm-invocation {} {row:?}", operation.name);
    }
    for (number, row) in summary.totals.syscalls.iter().enumerate() {
        println!("storm-syscall {number} {row:?}");
    }
    let attempts = summary.attempts.iter();
    for (class, (begun, faults)) in Class::ALL.iter().zip(attempts.zip(&summary.outcomes)) {
        println!("storm-class {} [{begun}, {faults:?}]", class.name());
    }
    println!("storm-faults {:?}", summary.faults);
}

/// The tests of the run, and the status to end with. A canary has ended the run already if
/// something of it was touched.
fn verdict(summary: &Summary, watch: &Watch, options: Options) -> u8 {
    let mut suite = Suite::new();
    suite.run("the_storm_is_made", || {
        for storm in Storm::ALL {
            let made = summary.made(storm);
            ensure!(made >= options.of(storm), "{made} {}", storm.unit());
        }
        Ok(())
    });
    suite.run("the_canary_lives", || {
        for (core, jobs) in watch.jobs.iter().enumerate() {
            let periods = jobs.done.load(Relaxed);
            ensure!(
                periods * 100 > summary.calls / 100,
                "{periods} periods on core {core}"
            );
            ensure!(
                jobs.looks.load(Relaxed) > 0,
                "the witness of core {core} never looks"
            );
        }
        Ok(())
    });
    suite.run("counters_are_kept", || {
        let (discarded, arenas) = (summary.discarded, summary.arenas);
        // Every sixth or so in long runs; in short ones it may be twice as many, or the first two.
        let most = arenas / 3 + 2;
        ensure!(discarded <= most, "{discarded} of {arenas} discarded");
        Ok(())
    });
    if options.calls > 0 {
        judge_calls(&mut suite, summary);
    }
    if options.instructions > 0 {
        judge_instructions(&mut suite, summary);
    }
    suite.finish()
}

fn judge_calls(suite: &mut Suite, summary: &Summary) {
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
            let [_, good, bad @ ..] = summary.totals.invocations[tally::row_of(operation.label)];
            let failed: u64 = bad.iter().sum();
            ensure!(good > 0, "{} never succeeded", operation.name);
            ensure!(failed > 0, "{} never failed", operation.name);
        }
        Ok(())
    });
}

fn judge_instructions(suite: &mut Suite, summary: &Summary) {
    suite.run("every_class_of_instructions_comes_and_faults", || {
        for (class, (&begun, faults)) in Class::ALL
            .iter()
            .zip(summary.attempts.iter().zip(&summary.outcomes))
        {
            let faults: u64 = faults.iter().sum();
            ensure!(begun > 0, "none of {}", class.name());
            ensure!(
                faults > 0 || !class.must_fault(),
                "none of {} faults",
                class.name()
            );
        }
        Ok(())
    });
}
