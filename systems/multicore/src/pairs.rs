//! A client and a passive server on each core (thesis 8.5.1): the client calls, the server
//! replies and receives, with empty messages; between two calls the client executes a random
//! number of instructions.

use sandglass::testing::TestResult;
use sandglass::{println, Message};

use crate::arch::go_round;
use crate::crew::Crew;
use crate::options::Options;

/// Upper bounds of the instructions between two calls.
pub const SPINS: [u64; 6] = [0, 500, 2_000, 8_000, 32_000, 128_000];

/// Measures a window in which each core's pair makes its calls.
pub fn run(crew: &mut Crew, spin: u64, options: Options) -> TestResult {
    let cores = crew.cores();
    for core in 0..cores {
        let endpoint = crew.server(|_| Message::EMPTY)?;
        crew.client(core, move || {
            let mut random = Random(core as u64 + 1);
            for _ in 0..options.calls {
                endpoint.call(Message::EMPTY);
                execute(random.below_or_equal(spin));
            }
        })?;
    }
    crew.run()?;
    let calls = options.calls * cores as u64;
    println!("multicore pairs {spin} {cores} {calls}");
    Ok(())
}

/// Marsaglia's xorshift64*: the same numbers in every run.
struct Random(u64);

impl Random {
    fn below_or_equal(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let word = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        ((u128::from(word) * (u128::from(bound) + 1)) >> 64) as u64
    }
}

/// Executes about so many instructions; then the emulator goes on with another core.
fn execute(instructions: u64) {
    let rounds = instructions / 2;
    if rounds > 0 {
        go_round(rounds);
    }
    sandglass::time::pause();
}
