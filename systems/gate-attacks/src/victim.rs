//! The client that is attacked, or attacks.

use sandglass::cap::{Capability, Endpoint, Notification};
use sandglass::{Environment, Message};
use sandglass_mc_ipc::client::{Gate, Refusal};
use sandglass_mc_ipc::driver::{MALFORMED, WORDS};

use crate::board::{board, get, set, Board};
use crate::{FAULT, GATE, PANIC};

/// What the victim is to do.
pub mod order {
    /// A request, and nothing else.
    pub const ASK: u64 = 0;
    /// Messages that are no requests.
    pub const FORGE: u64 = 1;
    /// Requests whose operation fails.
    pub const FAIL: u64 = 2;
    /// Many requests.
    pub const FLOOD: u64 = 3;
}

/// Requests of a flood.
const FLOOD: usize = 6;

/// Does what it is told, and says when.
pub fn run(env: &'static Environment) -> u8 {
    let (gate, board) = (Gate::described(env, GATE), board(env));
    let endpoint: Endpoint = env.capability(GATE);
    set(&board.slot, endpoint.cptr().raw());
    let go: Notification = env.capability("go");
    loop {
        go.wait();
        let number = get(&board.number);
        match get(&board.order) {
            order::FORGE => forge(endpoint),
            order::FAIL => {
                for label in [PANIC, FAULT] {
                    let refused = gate.call(label, &[number], &mut []);
                    assert_eq!(refused, Err(Refusal::Faulted), "of {label}");
                }
            }
            order::FLOOD => {
                for _ in 0..FLOOD {
                    ask(gate, number);
                }
            }
            _ => obey(gate, board, number),
        }
        set(&board.done, number);
    }
}

/// Makes the request of an order.
pub fn obey(gate: Gate, board: &Board, number: u64) {
    set(&board.called, number);
    ask(gate, number);
}

/// A request, which is made again if the last one is still there.
fn ask(gate: Gate, number: u64) {
    let mut answer = [0; 2];
    loop {
        match gate.call(0, &[number], &mut answer) {
            Ok(words) => {
                assert_eq!((words, answer[0]), (2, number), "the answer to its request");
                return;
            }
            Err(Refusal::Busy | Refusal::Withdrawn) => {}
            // The kernel's answer if there is no capability: an invalid instruction, a fault, is its end.
            // SAFETY: nothing comes after it.
            Err(_) => sandglass::arch::invalid_instruction(),
        }
    }
}

/// Too long ones, some that do not wait, and one with a label that nobody knows.
fn forge(endpoint: Endpoint) {
    let words = [7; WORDS + 12];
    for length in [WORDS + 1, WORDS + 12] {
        let answer = endpoint.call(Message::long(0, &words[..length]));
        assert_eq!(answer.label(), MALFORMED, "of {length} words");
    }
    // They can be called only: nothing arrives.
    endpoint.nb_send(Message::new(PANIC, [7; 3]));
    endpoint.nb_send(Message::long(u64::MAX >> 12, &words));
    let answer = endpoint.call(Message::new(0x7f_ffff, []));
    assert_eq!(
        (answer.label(), answer.len()),
        (0, 2),
        "a request with its own label"
    );
}
