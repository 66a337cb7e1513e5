//! Clients of a gate on four cores, and the server behind it. What a component is, its name says.

#![no_std]
#![no_main]

use core::hint::black_box;

use sandglass::trace::{mark, Mark};
use sandglass::{println, sys, time, Environment};
use sandglass_mc_ipc::client::{Gate, Slots};
use sandglass_mc_ipc::driver::{Job, WORDS};

sandglass::entry!(main, stack = 0x8000, heap = 0x1_0000);

/// The resource.
const SIGN: &str = "sign";

fn main(env: &'static Environment) -> u8 {
    match env.name() {
        "keys" => keys(env),
        "pilot" => pilot(env),
        "archive" => archive(env),
        _ => periodic(env),
    }
}

/// Stands for a signature of what a client sends: as much work each time, and the same for the same.
fn signature(steps: u64, data: u64) -> u64 {
    let mut signature = data;
    for step in 0..steps {
        signature = black_box(signature.rotate_left(7) ^ step);
    }
    signature
}

/// Answers with a sequence number, and a signature of what was sent.
fn keys(env: &'static Environment) -> u8 {
    let steps = env.parameter("steps");
    let mut sequence = 0;
    let sign = move |job: &Job, answer: &mut [u64; WORDS]| {
        sequence += 1;
        answer[0] = sequence;
        answer[1] = signature(steps, job.words[0]);
        2
    };
    let Err(error) = sandglass_mc_ipc::component::serve(env, sign);
    panic!("cannot have a gate: {error}");
}

/// Has data signed.
struct Signer {
    gate: Gate,
    /// The sequence number of the last signature.
    last: u64,
}

impl Signer {
    fn new(env: &'static Environment) -> Self {
        Self {
            gate: Gate::described(env, SIGN),
            last: 0,
        }
    }

    /// # Panics
    /// It is not answered, or with a sequence number that was there before.
    fn sign(&mut self, data: u64) -> u64 {
        let mut answer = [0; 2];
        let words = self.gate.call(0, &[data], &mut answer);
        let words = words.unwrap_or_else(|refusal| panic!("{refusal}"));
        assert_eq!(words, 2);
        assert!(answer[0] > self.last, "a sequence number comes once");
        self.last = answer[0];
        answer[1]
    }
}

/// One request in each slot. The same data has the same signature.
fn pilot(env: &'static Environment) -> u8 {
    let slots = Slots::described(env, SIGN);
    let mut signer = Signer::new(env);
    let mut first = None;
    let jobs = env.parameter("jobs");
    for job in 0..jobs {
        slots.next();
        mark(Mark::Release {
            job,
            at: time::ticks(),
        });
        let signed = signer.sign(1);
        assert_eq!(signed, *first.get_or_insert(signed));
        mark(Mark::End { job });
    }
    println!("{jobs} signatures, one in each slot");
    // There was somebody to wait for.
    u8::from(signer.last == jobs)
}

/// So many requests in each period.
fn periodic(env: &'static Environment) -> u8 {
    let mut signer = Signer::new(env);
    for job in 0.. {
        for _ in 0..env.parameter("requests") {
            signer.sign(job);
        }
        sys::yield_now();
    }
    0
}

/// One request after the other.
fn archive(env: &'static Environment) -> u8 {
    let mut signer = Signer::new(env);
    for data in 0.. {
        signer.sign(data);
    }
    0
}
