//! The timeout handler: when a client's budget runs out in the server, it answers the client with
//! how far the server came, and sends the server back to where it waits (thesis 8.3.3,
//! "rollback"). It runs on a scheduling context of its own, above the clients' priority.

use core::sync::atomic::Ordering::Relaxed;

use demo_protocol::board::{ServerBoard, ServerState};
use demo_protocol::request::Answer;
use demo_protocol::trace::{Interval, Tracer};
use sandglass::cap::{nb_send_recv, Endpoint, Notification, Reply};
use sandglass::fault::Fault;
use sandglass::{time, Environment, Message};

/// Handles timeouts for good.
///
/// # Panics
/// If the server cannot be restored, which ends the system: no client would be served any more.
pub fn handle_timeouts(env: &'static Environment, board: &'static ServerBoard) {
    let timeouts: Endpoint = env.capability("timeouts");
    let reply: Reply = env.capability("timeouts.reply");
    let ready: Notification = env.capability("handler.ready");
    let rollback = env
        .rollback("server", "cipher")
        .expect("the server waits for its first request");
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let mut tracer = Tracer::new(&board.handler_trace, tsc.khz());

    let mut received = nb_send_recv(ready, Message::EMPTY, timeouts, reply);
    loop {
        let start = time::ticks();
        tracer.begin(start, Interval::OWN);
        let Some(Fault::Timeout { badge, .. }) = Fault::decode(&received.message) else {
            panic!("the timeout handler received another fault: {received:?}");
        };
        rollback
            .perform(reply, progress(board, badge))
            .expect("the server can be sent back");

        let end = time::ticks();
        tracer.touch(end, Interval::OWN);
        count(board, badge, end - start);
        received = timeouts.recv(reply);
    }
}

/// What the client whose scheduling context has `badge` is told. The server may have been stopped
/// before it noted the new request: its state then speaks of an older one, which its ticket tells
/// the client, or of another client's.
fn progress(board: &ServerBoard, badge: u64) -> Message {
    let state = ServerState::from_words(board.state.read());
    let bytes = if state.badge == badge { state.done } else { 0 };
    let (label, words) = Answer::RolledBack {
        ticket: state.ticket,
        bytes,
    }
    .encode();
    Message::new(label, words)
}

/// Notes a rollback that took `ticks`, unless the client is not a measured one. Only this thread writes
/// these numbers.
fn count(board: &ServerBoard, badge: u64, ticks: u64) {
    let Some(rollbacks) = board.rollbacks.get((badge as usize).wrapping_sub(1)) else {
        return;
    };
    rollbacks.fetch_add(1, Relaxed);
    board.handling_total.fetch_add(ticks, Relaxed);
    board.handling_longest.fetch_max(ticks, Relaxed);
}
