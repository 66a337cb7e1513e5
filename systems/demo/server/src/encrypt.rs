//! Encryption, batch by batch. Between two batches the state is published (a [`Twin`] swap), so
//! the server may be stopped and sent back to its first wait at any instruction: at most one
//! batch is lost, and nothing else that it keeps changes.
//!
//! [`Twin`]: demo_protocol::twin::Twin

use aes::Aes256;
use ctr::cipher::{InnerIvInit, KeyInit, StreamCipher, StreamCipherSeek};
use ctr::Ctr128BE;
use demo_protocol::board::{ServerBoard, ServerState, CLIENTS};
use demo_protocol::cipher::{initial_counter, BATCH_BYTES, KEY};
use demo_protocol::request::{Answer, Refusal, Request, ENCRYPT};
use demo_protocol::trace::Tracer;
use sandglass::env::MemoryRegion;
use sandglass::{time, Environment, Message, Received};

/// A client's buffers. The client writes to its plaintext whenever it likes: what is encrypted is
/// then its own problem.
#[derive(Clone, Copy)]
struct Buffers {
    /// Read by the server.
    plaintext: MemoryRegion,
    /// Written by the server.
    ciphertext: MemoryRegion,
}

impl Buffers {
    /// The buffers of client `name`, unless this system has no such client.
    fn find(env: &Environment, name: [&str; 2]) -> Option<Self> {
        Some(Self {
            plaintext: env.find_memory(name[0])?,
            ciphertext: env.find_memory(name[1])?,
        })
    }

    /// Bytes that fit into both.
    fn len(&self) -> u64 {
        self.plaintext.len.min(self.ciphertext.len)
    }
}

/// The server's own, unshared state.
pub struct Server {
    cipher: Aes256,
    /// By badge, from 1.
    clients: [Option<Buffers>; CLIENTS],
    board: &'static ServerBoard,
    tracer: Tracer<'static>,
}

impl Server {
    pub fn new(env: &Environment, board: &'static ServerBoard) -> Self {
        let tsc = env.tsc().expect("the kernel reports the clock's frequency");
        Self {
            cipher: Aes256::new(&KEY.into()),
            clients: [
                Buffers::find(env, ["a.plaintext", "a.ciphertext"]),
                Buffers::find(env, ["b.plaintext", "b.ciphertext"]),
            ],
            board,
            tracer: Tracer::new(&board.server_trace, tsc.khz()),
        }
    }

    /// Serves one request, on the client's scheduling context.
    pub fn serve(&mut self, received: Received) -> Message {
        let answer = match self.encrypt(received) {
            Ok(answer) => answer,
            Err(refusal) => Answer::Refused(refusal),
        };
        let (label, words) = answer.encode();
        Message::new(label, words)
    }

    fn encrypt(&mut self, received: Received) -> Result<Answer, Refusal> {
        if received.message.label() != ENCRYPT {
            return Err(Refusal::UnknownLabel);
        }
        let badge = received.badge;
        let client = badge.wrapping_sub(1) as usize;
        let buffers = self.clients.get(client).copied().flatten();
        let buffers = buffers.ok_or(Refusal::UnknownClient)?;
        let request = Request::from_words(received.message.registers());
        request.check(buffers.len())?;

        let mut state = ServerState {
            badge,
            ticket: request.ticket,
            done: 0,
            ..ServerState::from_words(self.board.state.read())
        };
        self.board.state.publish(state.words());
        self.tracer.begin(time::ticks(), badge);

        let counter = initial_counter(badge, request.lap);
        let mut stream = Ctr128BE::from_core(ctr::CtrCore::inner_iv_init(
            self.cipher.clone(),
            &counter.into(),
        ));
        stream.seek(request.from);
        while state.done < request.len {
            let len = BATCH_BYTES.min(request.len - state.done);
            // SAFETY: the request was checked to lie within both buffers.
            unsafe { encrypt_batch(&mut stream, buffers, request.from + state.done, len) };
            state.done += len;
            state.total[client] += len;
            self.board.state.publish(state.words());
            self.tracer.touch(time::ticks(), badge);
        }
        Ok(Answer::Done {
            ticket: request.ticket,
            bytes: state.done,
        })
    }
}

/// Encrypts `len` bytes at `offset`, at most [`BATCH_BYTES`], from one buffer to the other.
///
/// # Safety
/// They must lie within both buffers.
unsafe fn encrypt_batch(stream: &mut Ctr128BE<Aes256>, buffers: Buffers, offset: u64, len: u64) {
    // A private copy: references to memory that a client can write must not exist.
    let mut batch = [0; BATCH_BYTES as usize];
    let (offset, len) = (offset as usize, len as usize);
    let text = &mut batch[..len];
    // SAFETY: the caller's promise; the regions are mapped for good.
    unsafe {
        let source = buffers.plaintext.as_mut_ptr().add(offset);
        source.copy_to_nonoverlapping(text.as_mut_ptr(), len);
        stream.apply_keystream(text);
        let destination = buffers.ciphertext.as_mut_ptr().add(offset);
        destination.copy_from_nonoverlapping(text.as_ptr(), len);
    }
}
