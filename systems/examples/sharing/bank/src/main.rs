//! A bank: `accounts` keeps a balance, and while it books asks `journal` for a number: a nested
//! request. Its clients are a `teller` of high and an `auditor` of low priority.
//!
//! Nothing in here knows by which protocol the two resources are shared.

#![no_std]
#![no_main]

use sandglass::cap::{Endpoint, Notification};
use sandglass::{println, Environment, Message};
use sandglass_sharing::{proxy::label, serve};

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

/// Labels of requests to `accounts`.
mod request {
    /// Word 0 is added to the balance; the answer: the balance, the number in the journal, and the
    /// badge of the client.
    pub const BOOK: u64 = 1;
    /// As many words as there are; the answer: their sum.
    pub const SUM: u64 = 2;
    /// As [`BOOK`], but the journal asks for the accounts meanwhile.
    pub const CIRCLE: u64 = 3;
}

fn main(env: &'static Environment) -> u8 {
    match env.name() {
        "journal" => journal(env),
        "accounts" => accounts(env),
        "teller" => teller(env),
        "auditor" => auditor(env),
        other => panic!("no role is called {other}"),
    }
}

/// Counts what is booked.
fn journal(env: &'static Environment) -> ! {
    let mut number = 0;
    serve(env, "journal", move |request| {
        if request.message.label() == request::CIRCLE {
            let back: Endpoint = env.capability("back");
            return back.call(Message::new(request::BOOK, [0]));
        }
        number += 1;
        Message::new(0, [number])
    })
}

fn accounts(env: &'static Environment) -> ! {
    let journal: Endpoint = env.capability("journal");
    let mut balance = 0;
    serve(env, "accounts", move |request| {
        let message = request.message;
        match message.label() {
            request::SUM => Message::new(0, [(0..message.len()).map(|i| message.word(i)).sum()]),
            request::CIRCLE => journal.call(Message::new(request::CIRCLE, [])),
            _ => {
                balance += message.word(0);
                let number = journal.call(Message::EMPTY).word(0);
                Message::new(0, [balance, number, request.badge])
            }
        }
    })
}

/// Books for the low client until the high one comes, and then a last time.
fn auditor(env: &Environment) -> u8 {
    let accounts: Endpoint = env.capability("accounts");
    let come: Notification = env.capability("come");
    for round in 0..10 {
        if round == 5 {
            come.signal();
        }
        let answer = accounts.call(Message::new(request::BOOK, [1]));
        assert_eq!(answer.word(2), 20, "the badge of the auditor");
    }
    let words: [u64; 100] = core::array::from_fn(|i| i as u64);
    let sum = accounts.call(Message::long(request::SUM, &words));
    let booked = accounts.call(Message::new(request::BOOK, [0]));
    println!(
        "balance {} after {} bookings; a message of 100 words sums to {}",
        booked.word(0),
        booked.word(1),
        sum.word(0)
    );
    0
}

/// Books when it is told to come, above the other.
fn teller(env: &Environment) -> u8 {
    let accounts: Endpoint = env.capability("accounts");
    env.capability::<Notification>("come").wait();
    for _ in 0..3 {
        let answer = accounts.call(Message::new(request::BOOK, [100]));
        assert_eq!(answer.word(2), 10, "the badge of the teller");
    }
    if env.parameter("circle") != 0 {
        let answer = accounts.call(Message::new(request::CIRCLE, []));
        println!(
            "a circle of requests is {}",
            if answer.label() == label::DEADLOCK {
                "refused"
            } else {
                "served"
            }
        );
    }
    0
}
