//! Interrupts, so that cores take turns in the emulator.
//!
//! In virtual time the emulator executes one core at a time: up to the next interrupt of a timer, if the core does not stand
//! still before, and then the next core. Without more interrupts than a system has anyway, a core would have turns of up to
//! 100 ms, and a server would stand still for that long while others wait for it. A metronome on each core is interrupted some
//! time after its turn has begun, always as long: so all turns are as long at most, and no core has longer ones than others.

use alloc::boxed::Box;
use alloc::format;
use core::error::Error;

use sandglass::cap::{SchedContext, SchedControl, SchedParams};
use sandglass::{sys, Environment};

/// What it may take of a turn, µs: with the least budget of the kernel, 20 µs, it could make no system call.
const BUDGET_US: u64 = 40;

/// Has its core interrupted, for good: `turn` µs after it has run.
pub fn run(env: &'static Environment) -> Result<u8, Box<dyn Error>> {
    let context: SchedContext = env.capability(&format!("{}.context", env.name()));
    let core = env.parameter("core");
    let control: SchedControl = env.capability(&format!("sched-control.{core}"));
    let turn = SchedParams::new(BUDGET_US, env.parameter("turn"));
    loop {
        // A period that begins now. Those of a context that is left alone are on a grid: where it is between those of other
        // cores would say how long a turn is.
        control.configure(context, turn)?;
        sys::yield_now();
    }
}
