//! The case study's system (`key-server-study`): a component is what its name says, and a client otherwise.

#![no_std]
#![no_main]

extern crate alloc;

mod client;
mod director;
mod log;
mod metronome;

use alloc::boxed::Box;
use core::error::Error;

use sandglass::{time, Environment};
use sandglass_mc_ipc::driver::{Job, WORDS};
use signatures::{Key, Signed, Signer, Words, DIGEST_BYTES, SIGNED_WORDS};

// A signature takes half of each; a gate has threads to remember, one for each client.
sandglass::entry!(main, stack = 0x1_0000, heap = 0x2_0000);

/// The resource.
const SIGN: &str = "sign";
/// Memory of the director's: which phase it is, and whether it waits for the first one.
const CLOCK: &str = "clock";
const PHASE: usize = 0;
const IS_READY: usize = 1;

fn main(env: &'static Environment) -> Result<u8, Box<dyn Error>> {
    match env.name() {
        "keys" => keys(env),
        "director" => director::run(env),
        _ if env.find_parameter("turn").is_some() => metronome::run(env),
        _ => client::run(env),
    }
}

/// Signs digests. What is none, is answered with nothing.
fn keys(env: &'static Environment) -> Result<u8, Box<dyn Error>> {
    let mut signer = Signer::new(Key::for_tests()?);
    let sign = move |job: &Job, answer: &mut [u64; WORDS]| {
        let digest = <[u8; DIGEST_BYTES]>::from_words(&job.words[..job.count]);
        let signed = digest.and_then(|digest| signer.sign(digest, time::ticks()).ok());
        let words: Option<[u64; SIGNED_WORDS]> = signed.as_ref().map(Signed::to_words);
        match words {
            Some(words) => {
                answer[..SIGNED_WORDS].copy_from_slice(&words);
                SIGNED_WORDS
            }
            None => 0,
        }
    };
    match sandglass_mc_ipc::component::serve(env, sign) {
        Err(error) => Err(error.into()),
    }
}
