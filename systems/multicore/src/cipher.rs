//! The cipher server (thesis 8.5.2): passive, it encrypts for a client of each core, on that
//! core and the client's time.
//!
//! *Single* is one server, which moves to the core of the client that it serves; the others wait
//! in its queue meanwhile. *Multiple* is one server for each core. In both, the clients share no
//! data with one another.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use aes::Aes256;
use ctr::cipher::{InnerIvInit, KeyInit, StreamCipher, StreamCipherSeek};
use ctr::Ctr128BE;
use demo_protocol::cipher::{initial_counter, KEY};
use demo_protocol::digest::Digest;
use sandglass::cap::{Endpoint, Rights};
use sandglass::message::Received;
use sandglass::testing::TestResult;
use sandglass::{ensure, ensure_eq, println, Message};

use crate::crew::Crew;
use crate::marks;
use crate::options::Options;

/// Bytes of a request.
const REQUEST_BYTES: u64 = 4 << 10;
/// Bytes after which a server lets the emulator go on with another core: so often can clients
/// find it busy.
const PIECE_BYTES: usize = 512;

/// How many servers there are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Servers {
    /// One for all cores.
    Single,
    /// One for each core.
    Multiple,
}

/// A client's text, which the server encrypts in place.
#[derive(Clone, Copy)]
pub struct Text {
    start: *mut u8,
    bytes: u64,
}
// SAFETY: while a request is served, the server alone uses the text; otherwise its client does.
unsafe impl Send for Text {}

impl Text {
    /// All zero, for good.
    fn leak(bytes: u64) -> Self {
        let text = Box::leak(vec![0; bytes as usize].into_boxed_slice());
        Self {
            start: text.as_mut_ptr(),
            bytes,
        }
    }

    /// Whether a piece of it is within it.
    fn contains(&self, from: u64, len: u64) -> bool {
        from.checked_add(len).is_some_and(|end| end <= self.bytes)
    }

    /// # Safety
    /// Nobody else uses the text now.
    unsafe fn as_mut(&self) -> &'static mut [u8] {
        // SAFETY: leaked; the caller's promise.
        unsafe { core::slice::from_raw_parts_mut(self.start, self.bytes as usize) }
    }
}

/// The clients' texts, the first of badge 1.
pub type Texts = Vec<Text>;

/// Texts for so many clients, whole requests.
pub fn texts(clients: usize, options: Options) -> Texts {
    let bytes = options.bytes.next_multiple_of(REQUEST_BYTES);
    (0..clients).map(|_| Text::leak(bytes)).collect()
}

/// Measures a window in which each core's client has its text encrypted; checks that it was, and
/// leaves the texts as they were.
pub fn run(crew: &mut Crew, servers: Servers, texts: &Texts) -> TestResult {
    let cores = crew.cores();
    let mut endpoints = Vec::new();
    let count = match servers {
        Servers::Single => 1,
        Servers::Multiple => cores,
    };
    for number in 0..count {
        endpoints.push(start_server(crew, number, texts.clone())?);
    }
    let mut sum = 0;
    for (core, text) in texts.iter().enumerate() {
        let bytes = text.bytes;
        sum += bytes;
        let endpoint = endpoints[core % count];
        let resources = &mut crew.process.resources;
        let endpoint = resources.mint(endpoint, Rights::ALL, badge(core))?;
        crew.client(core, move || request_all(endpoint, bytes))?;
    }
    crew.run()?;
    let kind = match servers {
        Servers::Single => "single",
        Servers::Multiple => "multiple",
    };
    println!("multicore {kind} 0 {cores} {sum}");
    for (core, text) in texts.iter().enumerate() {
        // SAFETY: server and client are stopped.
        check(core, unsafe { text.as_mut() })?;
    }
    Ok(())
}

/// Of the client of core `core`.
const fn badge(core: usize) -> u64 {
    core as u64 + 1
}

/// What a client does: it has its text encrypted, request by request.
fn request_all(endpoint: Endpoint, bytes: u64) {
    for from in (0..bytes).step_by(REQUEST_BYTES as usize) {
        let answer = endpoint.call(Message::new(0, [from, REQUEST_BYTES]));
        assert!(answer.label() == 0, "the server refuses");
        sandglass::time::pause();
    }
}

/// Starts server `number`, for all clients.
fn start_server(
    crew: &mut Crew,
    number: usize,
    texts: Texts,
) -> Result<Endpoint, sandglass::SetupError> {
    let cipher = Aes256::new(&KEY.into());
    crew.server(move |received| {
        marks::busy(number);
        let served = serve(&cipher, &texts, received);
        marks::free(number);
        Message::new(u64::from(served.is_none()), [])
    })
}

/// Serves a request: encrypts a piece of a client's text. `None` if there is no such piece.
fn serve(cipher: &Aes256, texts: &Texts, received: Received) -> Option<()> {
    let [from, len, ..] = received.message.registers();
    let client = received.badge.checked_sub(1)? as usize;
    let text = texts.get(client)?;
    if !text.contains(from, len) {
        return None;
    }
    // SAFETY: the client waits for the answer.
    let text = unsafe { text.as_mut() };
    let counter = initial_counter(received.badge, 0);
    let mut stream: Ctr128BE<Aes256> =
        Ctr128BE::from_core(ctr::CtrCore::inner_iv_init(cipher.clone(), &counter.into()));
    stream.seek(from);
    let (from, end) = (from as usize, (from + len) as usize);
    for piece in text[from..end].chunks_mut(PIECE_BYTES) {
        stream.apply_keystream(piece);
        sandglass::time::pause();
    }
    Some(())
}

/// Fails unless the text of core `core` was encrypted once; the digest is for the host, which
/// computes it by other means.
fn check(core: usize, text: &mut [u8]) -> TestResult {
    let mut digest = Digest::EMPTY;
    digest.bytes(text);
    println!("multicore-digest {} {:016x}", badge(core), digest.value());
    ensure!(text.iter().any(|&byte| byte != 0), "nothing is encrypted");
    // Once more, in one piece, is the text as it was.
    let counter = initial_counter(badge(core), 0);
    let core = ctr::CtrCore::inner_iv_init(Aes256::new(&KEY.into()), &counter.into());
    let mut stream: Ctr128BE<Aes256> = Ctr128BE::from_core(core);
    stream.apply_keystream(text);
    ensure_eq!(text.iter().position(|&byte| byte != 0), None);
    Ok(())
}
