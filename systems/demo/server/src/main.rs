//! The shared cipher server of thesis 8.3.2: passive, it encrypts on its clients' scheduling
//! contexts. Its second thread handles timeouts: see [`handler`].

#![no_std]
#![no_main]

extern crate alloc;

mod encrypt;
mod handler;

use core::convert::Infallible;

use demo_protocol::board::{Board, ServerBoard};
use sandglass::Environment;

use crate::encrypt::Server;

sandglass::entry!(main, stack = 0x8000, heap = 0x1_0000);

fn main(env: &'static Environment) -> Infallible {
    let board = env.memory("server.board");
    // SAFETY: the system maps it writable for this component alone.
    let board = unsafe { ServerBoard::in_memory(board.as_mut_ptr(), board.len) };
    let mut server = Server::new(env, board);
    env.thread("handler")
        .prepare(move || handler::handle_timeouts(env, board));
    env.service("cipher").serve(|request| server.serve(request))
}
