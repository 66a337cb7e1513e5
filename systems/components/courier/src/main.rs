//! Asks at a gate for the components that its description names (`on-behalf-of` of a client).

#![no_std]
#![no_main]

use core::convert::Infallible;

use sandglass::Environment;

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

fn main(env: &'static Environment) -> Infallible {
    sandglass_mc_ipc::courier::run(env)
}
