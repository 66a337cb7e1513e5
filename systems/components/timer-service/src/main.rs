//! Serves the timers of all `[[timer]]` tables: the library `sandglass-timers`, as a component.

#![no_std]
#![no_main]

use core::convert::Infallible;

use sandglass::timer::TimerError;
use sandglass::Environment;

sandglass::entry!(main, stack = 0x8000, heap = 0x10000);

fn main(env: &'static Environment) -> Result<Infallible, TimerError> {
    sandglass_timers::service::run(env)
}
