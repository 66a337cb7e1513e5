//! An office: `disk` is a single-threaded server that blocks, with a timer as its device; `archive`
//! has a worker for each of its clients, `left` and `right`, which read at the same time.

#![no_std]
#![no_main]

extern crate alloc;

mod disk;

use core::convert::Infallible;

use sandglass::cap::{Endpoint, Notification};
use sandglass::{println, Environment, Error, Message};
use sandglass_sharing::workers;

sandglass::entry!(main, stack = 0x4000, heap = 0x8000);

/// Blocks that a client reads.
const BLOCKS: u64 = 8;

fn main(env: &'static Environment) -> Result<u8, Error> {
    match env.name() {
        "disk" => match disk::serve(env)? {},
        "archive" => match archive(env)? {},
        "left" => {
            let most = read(env, 0);
            env.capability::<Notification>("read").wait();
            println!("both have read {BLOCKS} blocks; up to {most} requests waited for the disk");
        }
        "right" => {
            read(env, 100);
            env.capability::<Notification>("read").signal();
        }
        other => panic!("no role is called {other}"),
    }
    Ok(0)
}

/// Reads blocks for clients: a worker waits for the disk, and the others go on.
fn archive(env: &'static Environment) -> Result<Infallible, Error> {
    let disk: Endpoint = env.capability("disk");
    workers::serve(env, "archive", &["second"], move |request| {
        disk.call(request.message)
    })
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
