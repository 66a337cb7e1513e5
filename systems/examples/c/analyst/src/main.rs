//! Has a long series filtered by a server in C, which its budget does not suffice for: continues from where it was rolled
//! back to. What comes out must be what the same filter makes of it in Rust.

#![no_std]
#![no_main]

use sandglass::cap::{Endpoint, Notification};
use sandglass::{println, Environment, Message};

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

const DONE: u64 = 0x51;
const PARTIAL: u64 = 0x52;

fn main(env: &'static Environment) -> u8 {
    let samples = env.parameter("samples");
    let (value, requests) = filtered(env.capability("filter"), samples);
    let level = env.capability::<Endpoint>("plant").call(Message::EMPTY);
    let is_right = value == expected(samples) && requests > 1 && level.len() == 1;
    match is_right {
        true => println!("analyst: {samples} samples, in several requests: the value is {value}"),
        false => println!("analyst: {value} is wrong, in {requests} requests"),
    }
    env.capability::<Notification>("done").signal();
    u8::from(!is_right)
}

/// What the server makes of the series, and in how many requests.
fn filtered(server: Endpoint, samples: u64) -> (i64, u64) {
    let (mut next, mut value, mut requests) = (0, 0, 0);
    while next < samples {
        requests += 1;
        let answer = server.call(Message::new(0, [requests, next, value, samples]));
        let is_mine = answer.word(0) == requests;
        if matches!(answer.label(), DONE | PARTIAL) && is_mine {
            next = answer.word(1);
            value = answer.word(2);
        }
    }
    (value as i64, requests)
}

/// The same here.
fn expected(samples: u64) -> i64 {
    (0..samples).fold(0, |value, number| value + (sample(number) - value) / 64)
}

fn sample(number: u64) -> i64 {
    let phase = (number % 2048) as i64 - 1024;
    let noise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
    (phase.abs() - 512) * 128 + noise as i64
}
