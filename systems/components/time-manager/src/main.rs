//! Gives out processor time by temporal capabilities: the library `sandglass-time-manager`, as a component.

#![no_std]
#![no_main]

use core::convert::Infallible;

use sandglass::hpet::HpetError;
use sandglass::Environment;

sandglass::entry!(main, stack = 0x8000, heap = 0x100000);

fn main(env: &'static Environment) -> Result<Infallible, HpetError> {
    sandglass_time_manager::component::run(env)
}
