//! The task of low criticality: it uses all time that is left, and notes when it had
//! it.

#![no_std]
#![no_main]

extern crate alloc;

use core::convert::Infallible;
use core::sync::atomic::Ordering::Relaxed;

use demo_protocol::board::{Board, BurnerBoard};
use demo_protocol::trace::{Interval, Tracer};
use sandglass::{time, Environment};

sandglass::entry!(main, stack = 0x4000, heap = 0x1000);

/// Steps between two looks at the clock: a few µs.
const STEPS: u64 = 2000;

fn main(env: &'static Environment) -> Infallible {
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let board = env.memory("burner.board");
    // SAFETY: the system maps it writable for this component alone.
    let board = unsafe { BurnerBoard::in_memory(board.as_mut_ptr(), board.len) };
    let mut tracer = Tracer::new(&board.trace, tsc.khz());
    loop {
        time::work(STEPS);
        board.rounds.fetch_add(1, Relaxed);
        tracer.touch(time::ticks(), Interval::OWN);
    }
}
