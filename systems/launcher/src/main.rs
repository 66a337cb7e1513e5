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
mod objects;
mod packed;
mod space;
mod status;
mod trace;
mod watch;

use alloc::vec::Vec;
use core::ops::ControlFlow;

use sandglass::{boot, println, BootInfo, Process};

use failure::{Context, Failure};
use launch::Launch;
use objects::Objects;
use status::StatusPages;
use watch::{EndSignals, Watch};

const _: () = {
    use sandglass_description::limits;
    assert!(limits::ENVIRONMENT_ENTRIES == sandglass::env::MAX_ENTRIES);
    assert!(limits::NAME_BYTES == sandglass::env::MAX_NAME);
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
    let mut process = Process::root_task(info);
    process
        .use_exit_port()
        .context("cannot take the exit port")?;
    process
        .use_serial_console()
        .context("cannot take the serial port")?;

    let archive = packed::archive().context("cannot read the packed system")?;
    let system = archive.system().context("cannot read the packed system")?;
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
    let mut launch = Launch {
        process: &mut process,
        info,
        system: &system,
        objects: &objects,
        threads: &threads,
        has_calls_only,
        granted: Vec::new(),
    };
    launch.equip(&mut components)?;
    let end_signals = EndSignals::make(launch.process, &system, &objects)?;
    let status = StatusPages::start(launch.process, &system, &objects, &launch.granted)?;
    directory::publish(&system, &objects, &threads)?;
    let mut watch = Watch::new(
        &system,
        &components,
        &threads,
        &objects,
        end_signals,
        status,
    );
    let started = launch.start(&mut watch)?;
    let status = match started {
        ControlFlow::Break(status) => status,
        ControlFlow::Continue(()) => {
            boot::TCB
                .set_priority(boot::TCB, system.launcher_priority)
                .context("cannot take the launcher's priority")?;
            watch.until_end()
        }
    };
    if status != 0 {
        println!(
            "launcher: system `{}` ends with status {status}",
            system.name
        );
    }
    Ok(status)
}
