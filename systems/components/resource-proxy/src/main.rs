//! The proxy of shared resources (thesis 6.4.2, Figure 6.6): see `sandglass_sharing::proxy`. The
//! builder puts it into every system that has a `[[resource]]` with a protocol that needs it.

#![no_std]
#![no_main]

use core::convert::Infallible;

use sandglass::{Environment, Error};

sandglass::entry!(main, stack = 0x8000, heap = 0x4_0000);

fn main(env: &'static Environment) -> Result<Infallible, Error> {
    sandglass_sharing::proxy::run(env)
}
