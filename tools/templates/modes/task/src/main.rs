//! A periodic task. Its jobs take `steps` steps, and those that are large, `more` steps.

#![no_std]
#![no_main]

use core::convert::Infallible;
use core::hint::black_box;

use load::Load;
use sandglass::Environment;

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

fn main(env: &'static Environment) -> Infallible {
    let usual = env.parameter("steps");
    let load = Load {
        usual,
        rare: env.find_parameter("more").unwrap_or(usual),
    };
    releases::run(env, |job| compute(load.of_job(job)))
}

/// Some 1000 instructions a step.
fn compute(steps: u64) {
    for number in 0..250 * steps {
        black_box(number);
    }
}
