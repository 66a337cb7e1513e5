//! A client of the cipher server. Every period it wants so many more bytes encrypted (its parameter
//! `demand`); it asks for what is missing, and when its budget ran out in the
//! server, it continues from where the answer says. It trusts the server only for answers, and
//! is not trusted itself. The names of its memory begin with its own.

#![no_std]
#![no_main]

extern crate alloc;

mod buffers;
mod schedule;

use alloc::format;
use core::convert::Infallible;

use demo_protocol::board::{Board, ClientBoard};
use demo_protocol::cipher::request_bytes;
use demo_protocol::digest::Digest;
use demo_protocol::request::{Answer, Request, ENCRYPT};
use demo_protocol::trace::{Interval, Tracer};
use sandglass::cap::Endpoint;
use sandglass::{time, Environment, Message};

use crate::buffers::Buffers;
use crate::schedule::Schedule;

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

struct Client {
    server: Endpoint,
    buffers: Buffers,
    board: &'static ClientBoard,
    tracer: Tracer<'static>,
    ticket: u64,
    /// Where the next request begins: the lap, and the byte in it.
    lap: u64,
    at: u64,
    /// Bytes known to be done, since the start, and their digest.
    acknowledged: u64,
    digest: Digest,
}

fn main(env: &'static Environment) -> Infallible {
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let board = env.memory(&format!("{}.board", env.name()));
    // SAFETY: the system maps it writable for this component alone.
    let board = unsafe { ClientBoard::in_memory(board.as_mut_ptr(), board.len) };
    let demand_bytes = env.parameter("demand");
    let mut client = Client {
        server: env.capability("cipher"),
        buffers: Buffers::new(env, demand_bytes),
        board,
        tracer: Tracer::new(&board.trace, tsc.khz()),
        ticket: 0,
        lap: 0,
        at: 0,
        acknowledged: 0,
        digest: Digest::EMPTY,
    };
    let schedule = Schedule::new(env, tsc);
    for period in 0.. {
        schedule.wait_for_release(period);
        client.encrypt_until((period + 1) * demand_bytes);
    }
    unreachable!("no client lives for 2^64 periods")
}

impl Client {
    /// Goes on until `total` bytes are done since the start, in as many requests as the budget
    /// makes necessary.
    fn encrypt_until(&mut self, total: u64) {
        let lap_bytes = self.buffers.lap_bytes();
        while self.acknowledged < total {
            self.ticket += 1;
            let request = Request {
                ticket: self.ticket,
                lap: self.lap,
                from: self.at,
                len: request_bytes(lap_bytes, self.at, total - self.acknowledged),
            };
            let done = self.ask(request);
            self.acknowledge(done);
            if self.at == lap_bytes {
                if self.lap == 0 {
                    self.buffers.keep_first_copy();
                }
                self.lap += 1;
                self.at = 0;
            }
        }
    }

    /// Asks for encryption, lending the server our time; returns the bytes that are done.
    ///
    /// # Panics
    /// If the server refuses: this program and the server disagree.
    fn ask(&mut self, request: Request) -> u64 {
        self.tracer.touch(time::ticks(), Interval::OWN);
        let message = self.server.call(Message::new(ENCRYPT, request.words()));
        self.tracer.begin(time::ticks(), Interval::OWN);
        match Answer::decode(message.label(), [message.word(0), message.word(1)]) {
            Some(Answer::Refused(refusal)) => panic!("{request:?} was refused: {refusal:?}"),
            Some(answer) => answer.progress(request),
            None => panic!("the server's answer to {request:?} makes no sense: {message:?}"),
        }
    }

    /// Takes over `len` new bytes of ciphertext.
    fn acknowledge(&mut self, len: u64) {
        let tracer = &mut self.tracer;
        self.buffers.digest(&mut self.digest, self.at, len, || {
            tracer.touch(time::ticks(), Interval::OWN);
        });
        self.at += len;
        self.acknowledged += len;
        self.board
            .acknowledged
            .publish([self.acknowledged, self.digest.value()]);
    }
}
