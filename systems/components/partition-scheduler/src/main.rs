//! Schedules the partitions of a `[partitions]`: the library `sandglass-partitions`, as a component.

#![no_std]
#![no_main]

use core::convert::Infallible;

use sandglass::timer::TimerError;
use sandglass::Environment;

sandglass::entry!(main, stack = 0x8000, heap = 0x10_0000);

fn main(env: &'static Environment) -> Result<Infallible, TimerError> {
    sandglass_partitions::component::run(env)
}
