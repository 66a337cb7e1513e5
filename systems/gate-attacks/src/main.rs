//! Clients of a gate, honest and not, and the one who decides what becomes of one of them. What a component is, its name says.
//!
//! The component `judge` ends the system: with status 0 if all attacks were made at their moments, the victim could use the
//! gate after each as described, and all honest clients are served. That each of their requests is within the bound, the
//! trace says: `tools/tests/gates.rs`.

#![no_std]
#![no_main]

extern crate alloc;

mod board;
mod heir;
mod judge;
mod victim;

use core::hint::black_box;

use board::{board, get, moment, set};
use sandglass::cap::{Capability, Endpoint, Tcb};
use sandglass::{sys, Environment, Message};
use sandglass_mc_ipc::client::Gate;
use sandglass_mc_ipc::driver::{Job, WORDS};

sandglass::entry!(main, stack = 0x8000, heap = 0x1_0000);

/// The resource.
pub const GATE: &str = "gate";
/// Requests, by their labels: of this one, the operation panics; of that one, it has a fault.
pub const PANIC: u64 = 1;
pub const FAULT: u64 = 2;
/// Those of who floods the gate.
const FLOOD: u64 = 3;

fn main(env: &'static Environment) -> u8 {
    match env.name() {
        "server" => server(env),
        "judge" => judge::Judge::new(env).run(),
        "victim" => victim::run(env),
        "maker" => heir::make(env),
        "flooder" | "second-flooder" => flooder(env),
        _ => honest(env),
    }
}

/// The operation: as much work each time. At its beginning and in the middle, it lets the judge know if that one wants to. Answers with the first
/// word, and how many requests there were.
fn server(env: &'static Environment) -> u8 {
    let (steps, board) = (env.parameter("steps"), board(env));
    let judge: Endpoint = env.capability("moment");
    for (cell, name) in board.clients.iter().zip(["clients.tcb", "clients.context"]) {
        let first: Tcb = env.capability(name);
        set(cell, first.cptr().raw());
    }
    let mut count = 0;
    let operation = move |job: &Job, answer: &mut [u64; WORDS]| {
        let order = job.words[0];
        if board.begins(job.label == FLOOD) {
            judge.call(Message::new(moment::BEFORE, []));
        }
        work(steps / 2);
        if let Some(moment) = board.moment(order) {
            judge.call(Message::new(moment, [order]));
        }
        work(steps / 2);
        count += 1;
        match job.label {
            PANIC => panic!("as it should"),
            // The thread goes on elsewhere.
            FAULT => sandglass::arch::invalid_instruction(),
            _ => {}
        }
        if order != 0 {
            set(&board.finished, order);
        }
        answer[..2].copy_from_slice(&[order, count]);
        2
    };
    let Err(error) = sandglass_mc_ipc::component::serve(env, operation);
    panic!("cannot have a gate: {error}");
}

fn work(steps: u64) {
    for step in 0..steps {
        black_box(step);
    }
}

/// One request in each period, each of which is carried out.
fn honest(env: &'static Environment) -> u8 {
    let (gate, board) = (Gate::described(env, GATE), board(env));
    let number = env.parameter("number") as usize;
    let mut last = 0;
    loop {
        let mut answer = [0; 2];
        let words = gate.call(0, &[0, last], &mut answer);
        assert_eq!(words, Ok(2), "the answer to an honest request");
        assert!(
            answer[0] == 0 && answer[1] > last,
            "the answer to another one"
        );
        last = answer[1];
        set(&board.answers[number], get(&board.answers[number]) + 1);
        sys::yield_now();
    }
}

/// Never stops asking.
fn flooder(env: &'static Environment) -> u8 {
    let gate = Gate::described(env, GATE);
    loop {
        let words = gate.call(FLOOD, &[0], &mut []);
        assert!(
            words.is_ok(),
            "what is beyond its allowance is answered late"
        );
    }
}
