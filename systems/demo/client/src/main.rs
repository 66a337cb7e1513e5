//! A client of the cipher server. Every period it wants one more job encrypted
//! ([`demo_protocol::cipher`]); it asks for what is missing, and when its budget ran out in the
//! server, it goes on from where the answer says. It trusts the server only for answers, and
//! nobody trusts it. The names of its memory begin with its own.

#![no_std]
#![no_main]

extern crate alloc;

mod buffers;
mod schedule;

use alloc::format;
use core::convert::Infallible;

use demo_protocol::board::{Board, ClientBoard};
use demo_protocol::cipher::job_bytes;
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
    /// Bytes known to be done, since the start, and their digest.
    acknowledged: u64,
    digest: Digest,
}

fn main(env: &'static Environment) -> Infallible {
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let board = env.memory(&format!("{}.board", env.name()));
    // SAFETY: the system maps it writable for this component alone.
    let board = unsafe { ClientBoard::in_memory(board.as_mut_ptr(), board.len) };
    let input_bytes = env.memory("input").len;
    let job_bytes = job_bytes(input_bytes);
    let mut client = Client {
        server: env.capability("cipher"),
        buffers: Buffers::new(env, job_bytes),
        board,
        tracer: Tracer::new(&board.trace, u64::from(tsc.mhz())),
        ticket: 0,
        acknowledged: 0,
        digest: Digest::EMPTY,
    };
    client.buffers.fill(env.memory("input"));

    let schedule = Schedule::new(env, tsc);
    for job in 0.. {
        schedule.wait_for_release(job);
        client.encrypt_job(job, job_bytes);
        if job == 0 {
            client.buffers.keep_first_pass(input_bytes);
        }
    }
    unreachable!("no client finishes 2^64 jobs")
}

impl Client {
    /// Has all of a job encrypted, in as many requests as the budget makes necessary.
    fn encrypt_job(&mut self, job: u64, job_bytes: u64) {
        let mut from = 0;
        while from < job_bytes {
            self.ticket += 1;
            let request = Request {
                ticket: self.ticket,
                job,
                from,
                len: job_bytes - from,
            };
            let done = self.ask(request);
            self.acknowledge(from, done);
            from += done;
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

    /// Takes over `len` new bytes of ciphertext at `from`.
    fn acknowledge(&mut self, from: u64, len: u64) {
        let tracer = &mut self.tracer;
        self.buffers.digest(&mut self.digest, from, len, || {
            tracer.touch(time::ticks(), Interval::OWN);
        });
        self.acknowledged += len;
        self.board
            .acknowledged
            .publish([self.acknowledged, self.digest.value()]);
    }
}
