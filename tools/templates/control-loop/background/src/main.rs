//! Work that nobody trusts: it never waits, and runs whenever nothing above it does.

#![no_std]
#![no_main]

use core::hint::black_box;

use sandglass::Environment;

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

fn main(_: &'static Environment) -> u8 {
    let mut number: u64 = 1;
    sandglass_tasks::run(|| number = black_box(number.rotate_left(5) ^ 0x5bd1))
}
