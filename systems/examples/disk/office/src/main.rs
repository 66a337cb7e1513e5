//! An office: `disk` is a single-threaded server that blocks, with a timer as its device; `archive`
//! has several threads, and clients that read at the same time. It has a worker for each (example
//! `disk`), or makes threads when all are busy (example `spawning`).

#![no_std]
#![no_main]

extern crate alloc;

mod disk;

use sandglass::cap::{Endpoint, Notification};
use sandglass::{println, Environment, Error, Message, Received};
use sandglass_sharing::spawning::{self, Meter};
use sandglass_sharing::workers;

sandglass::entry!(main, stack = 0x4000, heap = 0x8000);

/// Blocks that a client reads.
const BLOCKS: u64 = 8;
/// Label of the question how many threads the archive has made.
const HOW_MANY: u64 = 1;

fn main(env: &'static Environment) -> Result<u8, Error> {
    match env.name() {
        "disk" => match disk::serve(env)? {},
        "archive" if env.find_parameter("spawning.threads").is_some() => spawning_archive(env),
        "archive" => archive(env),
        "left" => {
            let most = read(env, 0);
            wait_for(env, 1);
            println!("both have read {BLOCKS} blocks; up to {most} requests waited for the disk");
        }
        "first" => {
            let most = read(env, 0);
            wait_for(env, 0b111);
            println!("all have read {BLOCKS} blocks; up to {most} requests waited for the disk");
            let archive: Endpoint = env.capability("archive");
            let answer = archive.call(Message::new(HOW_MANY, []));
            let (made, us) = (answer.word(0), answer.word(1));
            println!("{made} threads were made, none in more than {us} us of its client's time");
        }
        "right" | "second" => read_and_tell(env, 100),
        "third" => read_and_tell(env, 200),
        "fourth" => read_and_tell(env, 300),
        other => panic!("no role is called {other}"),
    }
    Ok(0)
}

/// Reads blocks for clients: a worker waits for the disk, and the others go on.
fn archive(env: &'static Environment) -> ! {
    let disk: Endpoint = env.capability("disk");
    workers::serve(env, "archive", &["second"], move |request| {
        disk.call(request.message)
    })
}

/// The same, with threads that are made while others wait for the disk.
fn spawning_archive(env: &'static Environment) -> ! {
    static METER: Meter = Meter::new();
    let disk: Endpoint = env.capability("disk");
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    spawning::serve(env, "archive", &METER, move |request: Received| {
        if request.message.label() == HOW_MANY {
            let us = tsc.ticks_to_us(METER.most_ticks()) + 1;
            return Message::new(0, [METER.made().into(), us]);
        }
        disk.call(request.message)
    })
}

fn read_and_tell(env: &Environment, first: u64) {
    read(env, first);
    env.capability::<Notification>("read").signal();
}

/// Waits until all these readers have told.
fn wait_for(env: &Environment, readers: u64) {
    let read: Notification = env.capability("read");
    let mut missing = readers;
    while missing != 0 {
        missing &= !read.wait();
    }
}

/// Reads blocks from `first` on, and returns the most requests that waited at a time.
fn read(env: &Environment, first: u64) -> u64 {
    let archive: Endpoint = env.capability("archive");
    let mut most = 0;
    for block in first..first + BLOCKS {
        let answer = archive.call(Message::new(0, [block]));
        assert_eq!(answer.word(0), disk::content(block), "block {block}");
        most = most.max(answer.word(1));
    }
    most
}
