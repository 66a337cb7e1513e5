//! A tank with a valve: a server in Rust. One of its clients is in C.

#![no_std]
#![no_main]

use core::convert::Infallible;

use sandglass::{Environment, Message, Received};

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

/// The request to set the valve, in hundredths, and let a period pass. Any other asks for the level alone.
const STEP: u64 = 1;
/// Badge of the only client that may set the valve.
const CONTROL: u64 = 1;

fn main(env: &'static Environment) -> Infallible {
    let mut level = 0;
    sandglass_sharing::serve(env, "plant", |request| {
        step(&mut level, &request);
        Message::new(0, [level])
    })
}

/// The level, in hundredths, after a request.
fn step(level: &mut u64, request: &Received) {
    if request.badge == CONTROL && request.message.label() == STEP {
        let valve = request.message.word(0).min(10_000);
        // What flows in, less what flows out.
        *level = *level * 7 / 8 + valve / 8;
    }
}
