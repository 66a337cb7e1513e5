//! The key server of the example: it numbers what its clients submit, and seals it together with the number and the client, by
//! HMAC-SHA-256. Nobody else has the key.

#![no_std]
#![no_main]

use core::convert::Infallible;

use hmac::{Hmac, KeyInit, Mac};
use sandglass::{Environment, Error};
use sandglass_mc_ipc::driver::{Job, WORDS};
use sha2::Sha256;

sandglass::entry!(main, stack = 0x8000, heap = 0x1_0000);

/// That everybody knows it is for tests.
const KEY: &[u8; 32] = b"a key that is known to everybody";

fn main(env: &'static Environment) -> Result<Infallible, Error> {
    let mut number = 0;
    sandglass_mc_ipc::component::serve(env, move |job: &Job, answer: &mut [u64; WORDS]| {
        number += 1;
        answer[0] = number;
        seal(
            [number, job.client.0 as u64, job.words[0]],
            &mut answer[1..5],
        );
        5
    })
}

/// The authentication code of these words, in four others; the first byte of each is its lowest.
fn seal(words: [u64; 3], code: &mut [u64]) {
    let Ok(mut hmac) = Hmac::<Sha256>::new_from_slice(KEY) else {
        // A key of any length will do.
        return;
    };
    for word in words {
        hmac.update(&word.to_le_bytes());
    }
    let sealed = hmac.finalize().into_bytes();
    for (word, bytes) in code.iter_mut().zip(sealed.chunks_exact(8)) {
        *word = bytes
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u64::from(byte));
    }
}
