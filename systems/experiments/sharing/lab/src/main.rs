//! The workload of the experiment `sharing`: four tasks, two resources, and a conductor.

#![no_std]
#![no_main]

extern crate alloc;

mod board;
mod conductor;
mod device;
mod server;
mod work;

use core::sync::atomic::Ordering::Relaxed;

use sandglass::cap::{Endpoint, Notification};
use sandglass::{time, Environment, Message};

use board::{Board, TASKS};
use work::Worker;

sandglass::entry!(main, stack = 0x8000, heap = 0x8000);

fn main(env: &'static Environment) -> u8 {
    match env.name() {
        "conductor" => conductor::conduct(env),
        "drive" => device::drive(env),
        name @ ("bus" | "store") => server::serve(env, name),
        name => task(env, name),
    }
}

/// Waits for its release, does its job, and says so; for good.
fn task(env: &'static Environment, name: &str) -> ! {
    let board = Board::of(env);
    let worker = Worker::new(env);
    let number = TASKS.iter().position(|task| *task == name);
    let number = number.unwrap_or_else(|| panic!("no role is called {name}"));
    let mut release_name = [0; 16];
    let release: Notification = env.capability(join(&mut release_name, "release.", name));
    let ended: Notification = env.capability("ended");
    loop {
        release.wait();
        if number == 0 && board.probes.load(Relaxed) > 0 {
            probe(env, board);
        } else {
            let requests = job(env, name, &worker);
            board.requests[number].store(requests, Relaxed);
        }
        board.done[number].store(time::ticks(), Relaxed);
        ended.signal();
    }
}

/// A request: work before, nested in the store, after, µs; and whether it waits for the device.
type Section = [u64; 4];

/// What the lowest task asks for: so much work, or nothing but what the device does as long.
const fn lowest_section(waits: bool) -> Section {
    if waits {
        [0, 0, 0, 1]
    } else {
        [300, 0, 0, 0]
    }
}

/// Does the job of a task; returns the ticks that its requests took.
fn job(env: &Environment, name: &str, worker: &Worker) -> u64 {
    let (before, requests, after): (u64, &[(&str, Section)], u64) = match name {
        "high" => (20, &[("bus", [40, 0, 0, 0]), ("store", [40, 0, 0, 0])], 20),
        "low" => (10, &[("bus", [100, 60, 40, 0])], 10),
        "lowest" => (
            10,
            &[("store", lowest_section(env.parameter("device") != 0))],
            10,
        ),
        _ => (env.parameter("work"), &[], 0),
    };
    worker.work(before);
    let start = time::ticks();
    for (resource, section) in requests {
        let resource: Endpoint = env.capability(resource);
        resource.call(Message::new(0, *section));
    }
    let ticks = time::ticks() - start;
    worker.work(after);
    ticks
}

/// Makes requests that ask for no work, and notes what each takes.
fn probe(env: &Environment, board: &Board) {
    let bus: Endpoint = env.capability("bus");
    let (mut least, mut sum, mut most) = (u64::MAX, 0, 0);
    // Warm first, as all hot paths are measured.
    for round in 0..2 * board.probes.load(Relaxed) {
        let start = time::ticks();
        bus.call(Message::new(0, [0, 0, 0]));
        let ticks = time::ticks() - start;
        if round >= board.probes.load(Relaxed) {
            least = least.min(ticks);
            sum += ticks;
            most = most.max(ticks);
        }
    }
    for (field, value) in board.probed.iter().zip([least, sum, most]) {
        field.store(value, Relaxed);
    }
}

/// The two texts one after the other.
fn join<'b>(buffer: &'b mut [u8; 16], first: &str, second: &str) -> &'b str {
    let end = first.len() + second.len();
    buffer[..first.len()].copy_from_slice(first.as_bytes());
    buffer[first.len()..end].copy_from_slice(second.as_bytes());
    core::str::from_utf8(&buffer[..end]).unwrap_or_default()
}
