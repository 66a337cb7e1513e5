//! Serves the model of an oven. A request is the power of the heater in a period, in watts; the answer is the
//! temperature after it, in thousandths of a degree.

#![no_std]
#![no_main]

use core::convert::Infallible;

use model::Oven;
use sandglass::{Environment, Message};

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

fn main(env: &'static Environment) -> Infallible {
    let mut oven = Oven::cold();
    env.service("oven").serve(|request| {
        oven.heat(request.message.word(0));
        Message::new(0, [oven.temperature])
    })
}
