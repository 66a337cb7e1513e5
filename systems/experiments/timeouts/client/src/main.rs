//! Asks for more than its time is enough for, again and again. What the answer is does not matter.

#![no_std]
#![no_main]

use core::convert::Infallible;

use sandglass::cap::Endpoint;
use sandglass::{Environment, Message};

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

fn main(env: &'static Environment) -> Infallible {
    let server: Endpoint = env.capability("work");
    let steps = env.parameter("steps");
    loop {
        server.call(Message::new(0, [steps]));
    }
}
