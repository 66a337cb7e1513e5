//! Gives out processor time by temporal capabilities: the library `sandglass-time-manager`, as a component.

#![no_std]
#![no_main]

use core::convert::Infallible;

use sandglass::timer::TimerError;
use sandglass::Environment;

sandglass::entry!(main, stack = 0x8000, heap = 0x120000);

/// The heap has room for what the most that a description may ask for takes, and for as much again as one client is
/// told.
const _: () = assert!(sandglass_time_manager::admission::MOST_BYTES + 0x10000 <= 0x120000);

fn main(env: &'static Environment) -> Result<Infallible, TimerError> {
    sandglass_time_manager::component::run(env)
}
