//! The launcher: the root task of a described system.
//!
//! It finds the packed system behind its own image, makes everything that the description names,
//! starts the components in the description's order, and then waits for faults that nobody else
//! handles and for the system's end. All decisions are the description's, whose builder has
//! checked it; what fails here is a disagreement with the machine, and ends with status 1.

#![no_std]
#![no_main]

extern crate alloc;

mod directory;
mod failure;
mod launch;
mod log;
mod made;
mod objects;
mod packed;
mod report;
mod restart;
mod space;
mod status;
mod trace;
mod watch;
mod window;

use alloc::vec::Vec;
use core::ops::ControlFlow;

use sandglass::{board, boot, BootInfo, Process};

use sandglass_description::System;

use failure::{Context, Failure};
use launch::Launch;
use made::Made;
use objects::Objects;
use restart::signals::Signals;
use status::StatusPages;
use watch::Watch;

const _: () = {
    use sandglass_description::limits;
    assert!(limits::ENVIRONMENT_ENTRIES == sandglass::env::MAX_ENTRIES);
    assert!(limits::NAME_BYTES == sandglass::env::MAX_NAME);
    assert!(sandglass_description::LOG_BYTES == sandglass::logging::ring::BYTES as u64);
    let mut pages = 1;
    while pages < 64 {
        let spawning = sandglass_description::Spawning {
            threads: 1,
            stack_bytes: pages << 12,
            priority: 0,
        };
        let share = sandglass::spawning::Share::of(pages << 12);
        assert!(spawning.slots_per_thread() == share.slots());
        assert!(spawning.bits_per_thread() == share.memory_bits());
        pages += 1;
    }
};

sandglass::entry!(main, stack = 0x1_0000, heap = 0x20_0000);

fn main(info: &'static BootInfo) -> Result<u8, Failure> {
    let mut process = take_machine(info)?;
    let archive = packed::archive().context("cannot read the packed system")?;
    let system = archive.system().context("cannot read the packed system")?;
    ensure_board(info, &system)?;
    if !objects::take_framebuffer(&system, info) {
        process.use_screen(info).context("cannot take the screen")?;
    }
    space::make_room(&mut process, info, &system, &archive)?;
    trace::start(&mut process, info, &system)?;
    let objects = Objects::make(&mut process, info, &system, &archive)?;
    let mut components = Vec::new();
    let mut threads = Vec::new();
    for description in &system.components {
        let (component, its_threads) = launch::load(&mut process, description, &archive)?;
        components.push(component);
        threads.push(its_threads);
    }
    trace::name_threads(&system, &threads);
    let has_calls_only = launch::has_calls_only(&mut process, &objects)?;
    let signals = Signals::make(&mut process, &system)?;
    let signals = signals.as_ref();
    let mut launch = Launch {
        process: &mut process,
        info,
        system: &system,
        objects: &objects,
        threads: &threads,
        has_calls_only,
        signals,
        cnodes: Vec::new(),
        granted: Vec::new(),
    };
    launch.equip(&mut components)?;
    let components: &'static [_] = components.leak();
    let made = Made {
        info,
        system: &system,
        archive: &archive,
        components,
        threads: &threads,
        objects: &objects,
    };
    let status = StatusPages::start(launch.process, &system, &objects, &launch.granted)?;
    directory::publish(&system, &objects, &threads)?;
    let mut watch = Watch::prepare(launch.process, &made, signals, status)?;
    let ended = supervise(&launch, &mut watch, &system);
    if let Ok(status @ 1..) = ended {
        say!(
            watch.log(),
            Warn,
            "system `{}` ends with status {status}",
            system.name
        );
    }
    watch.log().end();
    ended
}

/// Takes what the launcher prints on, and ends the machine with.
fn take_machine(info: &BootInfo) -> Result<Process, Failure> {
    let mut process = Process::root_task(info);
    process
        .use_exit_port()
        .context("cannot take the exit port")?;
    process
        .use_serial_console()
        .context("cannot take the serial port")?;
    Ok(process)
}

/// Whether the machine has the devices that components are to have: nothing else is where they were described.
fn ensure_board(info: &BootInfo, system: &System) -> Result<(), Failure> {
    match &system.board {
        Some(name) if !board::is(info, name) => Err(Failure::of(&format_args!(
            "`{}` was built for the devices of the board `{name}`, which the machine's device tree does not name",
            system.name
        ))),
        _ => Ok(()),
    }
}

/// Starts all components and goes on until the system ends, with its status.
fn supervise(launch: &Launch<'_>, watch: &mut Watch<'_>, system: &System) -> Result<u8, Failure> {
    if let ControlFlow::Break(status) = launch.start(watch)? {
        return Ok(status);
    }
    boot::TCB
        .set_priority(boot::TCB, system.launcher_priority)
        .context("cannot take the launcher's priority")?;
    Ok(watch.until_end())
}
