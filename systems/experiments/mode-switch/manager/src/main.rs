//! The mode manager with a stopwatch: the instructions from when it wakes up until it waits again,
//! for each rise and each fall of the mode; and those of changing one thread's priority.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use core::convert::Infallible;

use sandglass::cap::Tcb;
use sandglass::time::ticks;
use sandglass::{exit, println, Environment, SetupError};
use sandglass_modes::{Event, Manager};

sandglass::entry!(main, stack = 0x8000, heap = 0x2_0000);

/// Rises and falls that are not measured, and priority changes that are.
const WARM_UP: usize = 4;
const CHANGES: usize = 16;

fn main(env: &'static Environment) -> Result<Infallible, SetupError> {
    let mut manager = Manager::new(env);
    let idle = manager.idle();
    env.thread("idle").prepare(move || idle.run());
    let runs = WARM_UP + env.parameter("runs") as usize;
    let mut rises = Vec::with_capacity(runs);
    let mut falls = Vec::with_capacity(runs);
    let start = ticks();
    let reading = ticks() - start;
    manager.begin()?;
    env.ready().signal();
    while falls.len() < runs {
        let received = manager.receive();
        let start = ticks();
        let event = manager.handle(&received);
        let taken = ticks() - start - reading;
        match event? {
            Event::Raised { .. } => rises.push(taken),
            Event::Fell { .. } => falls.push(taken),
            _ => {}
        }
    }
    for (rise, fall) in rises.iter().zip(&falls).skip(WARM_UP) {
        println!("switch {rise} {fall}");
    }
    for (down, up) in priority_changes(env, reading)? {
        println!("change {down} {up}");
    }
    exit::exit(0)
}

/// Changes the priority of a thread that wants to run, as a switch does.
fn priority_changes(env: &Environment, reading: u64) -> Result<Vec<(u64, u64)>, SetupError> {
    let (task, own): (Tcb, Tcb) = (env.capability("task-0.tcb"), env.capability("manager.tcb"));
    let priority = env.parameter("task-priority") as u8;
    let mut changes = Vec::with_capacity(CHANGES);
    for _ in 0..WARM_UP + CHANGES {
        let start = ticks();
        task.set_priority(own, 0)?;
        let middle = ticks();
        task.set_priority(own, priority)?;
        let end = ticks();
        changes.push((middle - start - reading, end - middle - reading));
    }
    changes.drain(..WARM_UP);
    Ok(changes)
}
