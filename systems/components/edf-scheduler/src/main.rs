//! Schedules the tasks of an `[[edf]]` by their deadlines: the library `sandglass-edf`, as a
//! component.

#![no_std]
#![no_main]

use core::convert::Infallible;

use sandglass::timer::TimerError;
use sandglass::Environment;

sandglass::entry!(main, stack = 0x8000, heap = 0x10000);

fn main(env: &'static Environment) -> Result<Infallible, TimerError> {
    sandglass_edf::component::run(env)
}
