//! A passive server in its own address space. It answers by label: what it was told at its start,
//! the sum of words, what it finds in shared memory; or it works until its client's budget ends.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;

use sandglass::server::Service;
use sandglass::{Environment, Message, Received};

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

/// Labels of requests; the root task's tests have the same.
mod request {
    pub const PARAMETER: u64 = 1;
    pub const SUM: u64 = 2;
    pub const MEMORY: u64 = 3;
    pub const SPIN: u64 = 4;
    pub const OVERFLOW: u64 = 5;
}

fn main(environment: &'static Environment) {
    let shared = environment.memory("shared");
    let counter = shared.as_mut_ptr().cast::<u64>();
    let service = Service {
        ready: environment.capability("ready"),
        endpoint: environment.capability("requests"),
        reply: environment.capability("reply"),
    };
    service.serve(|request: Received| match request.message.label() {
        request::PARAMETER => {
            Message::new(request.badge, [environment.parameter("number"), shared.len])
        }
        request::SUM => {
            // Through the heap, so that it is seen to work.
            let words: Vec<u64> = (0..request.message.len())
                .map(|i| request.message.word(i))
                .collect();
            Message::new(0, [words.iter().sum()])
        }
        // SAFETY: the loader maps at least a page of shared memory.
        request::MEMORY => Message::new(0, [unsafe { counter.read_volatile() }]),
        request::SPIN => loop {
            // SAFETY: as above. The handler of this server's timeout reads it.
            unsafe { counter.write_volatile(counter.read_volatile() + 1) }
        },
        request::OVERFLOW => Message::new(0, [overflow(0)]),
        other => Message::new(other, []),
    })
}

/// Uses stack until there is none.
fn overflow(depth: u64) -> u64 {
    let frame = [core::hint::black_box(depth); 32];
    if depth == u64::MAX {
        return 0;
    }
    core::hint::black_box(overflow(depth + 1)) + frame[0]
}
