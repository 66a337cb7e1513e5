//! Wants to run all the time; or, with the parameter `steps`, needs so many steps in each period,
//! and then waits for the next.

#![no_std]
#![no_main]

use core::convert::Infallible;

use sandglass::sys::yield_now;
use sandglass::{time, Environment};

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

fn main(env: &'static Environment) -> Infallible {
    let steps = env.find_parameter("steps");
    loop {
        // Some 1000 instructions a step.
        time::work(250 * steps.unwrap_or(1));
        if steps.is_some() {
            yield_now();
        }
    }
}
