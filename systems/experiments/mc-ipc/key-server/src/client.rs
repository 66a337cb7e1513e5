//! A client of the key server. By its parameters, it has a job at each of its starts in some phases, and in others asks as
//! often as it can.

use alloc::boxed::Box;
use alloc::format;
use core::error::Error;
use core::hint::black_box;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Relaxed, Release};

use key_server_study::record::{self, ANSWERED, ASKED, LOG_HEADER};
use key_server_study::Phases;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sandglass::cap::Notification;
use sandglass::{time, Environment};
use sandglass_mc_ipc::client::{Gate, Slots};
use signatures::{digest, Words, SIGNED_WORDS};

use crate::{log, CLOCK, IS_READY, PHASE, SIGN};

/// Bytes of what a client has signed.
const PACKET_BYTES: usize = 64;

pub fn run(env: &'static Environment) -> Result<u8, Box<dyn Error>> {
    let number = env.parameter("number");
    let mut client = Client {
        gate: Gate::described(env, SIGN),
        phase: &log::words(env, CLOCK)[PHASE],
        log: log::words(env, &format!("log.{number}")),
        requests: 0,
        processing: env.parameter("processing"),
        random: Xoshiro256PlusPlus::seed_from_u64(env.parameter("seed")),
    };
    let phases = |name: &str| Phases::from_bits(env.parameter(name) as u16);
    let (jobs, floods) = (phases("jobs"), phases("floods"));
    let never_rests = env.find_parameter("never-rests").is_some();
    let start = Start::of(env, number);
    // Whoever is observed says when the first cycle begins: with a slot, as soon as the director waits for that.
    if let Some(begin) = env.find_capability::<Notification>("begin") {
        let is_ready = &log::words(env, CLOCK)[IS_READY];
        while is_ready.load(Relaxed) == 0 {
            start.next();
        }
        start.next();
        begin.signal();
        client.follow(jobs, floods, never_rests);
    }
    loop {
        start.next();
        client.follow(jobs, floods, never_rests);
    }
}

/// What a client waits for before it does anything.
enum Start {
    Slots(Slots),
    Signal(Notification),
}

impl Start {
    fn of(env: &Environment, number: u64) -> Self {
        match env.find_capability(&format!("start.{number}")) {
            Some(signal) => Self::Signal(signal),
            None => Self::Slots(Slots::described(env, SIGN)),
        }
    }

    fn next(&self) {
        match self {
            Self::Slots(slots) => slots.next(),
            Self::Signal(signal) => {
                signal.wait();
            }
        }
    }
}

struct Client {
    gate: Gate,
    phase: &'static AtomicU64,
    log: &'static [AtomicU64],
    /// That were answered.
    requests: usize,
    /// Most instructions of a job before its request.
    processing: u64,
    random: Xoshiro256PlusPlus,
}

impl Client {
    fn is_in(&self, phases: Phases) -> bool {
        phases.contains(self.phase.load(Relaxed) as usize)
    }

    /// What there is to do after a start.
    fn follow(&mut self, jobs: Phases, floods: Phases, never_rests: bool) {
        while self.is_in(jobs) {
            self.job();
            if !never_rests {
                break;
            }
        }
        while self.is_in(floods) {
            self.request();
        }
    }

    /// Some processing, and a request.
    fn job(&mut self) {
        spend(self.random.next_u64() % (self.processing + 1));
        self.request();
    }

    /// # Panics
    /// It is refused, or the log is full.
    fn request(&mut self) {
        let mut packet = [0; PACKET_BYTES];
        self.random.fill_bytes(&mut packet);
        let digest: [u64; record::DIGEST_WORDS] = digest(&packet).to_words();
        let mut signed = [0; SIGNED_WORDS];
        self.log[ASKED].store(self.requests as u64 + 1, Relaxed);
        let called = time::ticks();
        let words = self.gate.call(0, &digest, &mut signed);
        let answered = time::ticks();
        let words = words.unwrap_or_else(|refusal| panic!("{refusal}"));
        assert_eq!(words, SIGNED_WORDS, "the server signs every digest");
        let request = record::Request {
            called,
            answered,
            digest,
            signed,
        };
        let first = LOG_HEADER + self.requests * record::Request::WORDS;
        let place = &self.log[first..][..record::Request::WORDS];
        for (word, value) in place.iter().zip(request.to_words()) {
            word.store(value, Relaxed);
        }
        self.requests += 1;
        // Who sees the number sees the request, too.
        self.log[ANSWERED].store(self.requests as u64, Release);
    }
}

/// Instructions of a step of [`spend`].
const STEP: u64 = 4;

fn spend(instructions: u64) {
    for step in 0..instructions / STEP {
        black_box(step);
    }
}
