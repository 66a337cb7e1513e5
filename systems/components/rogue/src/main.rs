//! An untrusted client, which `./sandglass run --rogue SEED` adds to a system: it acts at random,
//! by the parameter `seed`, with the endpoints of the names `shared.0` to `shared.N`, N + 1 being the parameter
//! `shared`. As a task of a deadline scheduler it begins as it should. Without a seed it is honest: it calls
//! each, and works, for good.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use rogue_storm::Storm;
use sandglass::cap::Endpoint;
use sandglass::{time, Environment, Message};
use sandglass_edf::Task;

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

/// Steps that it works for at a time, at most: some budgets, so that it comes to do something else soon.
const LONGEST_WORK: u64 = 15_000;

fn main(env: &'static Environment) -> u8 {
    let shared = env.parameter("shared");
    let mut names: Vec<String> = (0..shared).map(|index| format!("shared.{index}")).collect();
    if env.find_capability::<Endpoint>(Task::SCHEDULER).is_some() {
        Task::described(env).next();
        names.push(Task::SCHEDULER.into());
    }
    if env.find_parameter("seed").is_none() {
        be_honest(env, &names);
    }
    Storm::new(env, 0, names.iter().map(String::as_str), LONGEST_WORK).rage()
}

/// Asks everybody for nothing, and works as long as a storm may between two calls; for good.
fn be_honest(env: &'static Environment, names: &[String]) -> ! {
    loop {
        for name in names {
            env.capability::<Endpoint>(name).call(Message::EMPTY);
        }
        time::work(LONGEST_WORK);
    }
}
