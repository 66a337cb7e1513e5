//! The recorder: notes the server's counters when the measured window begins and ends, then sends
//! the record of the run to the host and ends the system. While it sends, its priority keeps
//! everybody else from running.

#![no_std]
#![no_main]

extern crate alloc;

mod sections;

use core::sync::atomic::Ordering::Relaxed;

use demo_protocol::board::{
    Board, BurnerBoard, ClientBoard, ControlBoard, ServerBoard, ServerState,
};
use demo_protocol::record::{Actor, Tag};
use sandglass::cap::Notification;
use sandglass::serial::{SerialPort, COM2_FIRST};
use sandglass::time::{self, Tsc};
use sandglass::{Environment, Error};

use crate::sections::Record;

sandglass::entry!(main, stack = 0x8000, heap = 0x1000);

/// The names of the clients' memory, by badge from 1.
const CLIENTS: [(&str, Actor); 2] = [("a.board", Actor::ClientA), ("b.board", Actor::ClientB)];

fn main(env: &'static Environment) -> Result<(), Error> {
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let server: &ServerBoard = board(env, "server.board").expect("there is a server");
    env.capability::<Notification>("begin").wait();
    let begin = snapshot(server);
    env.capability::<Notification>("end").wait();
    let end = snapshot(server);

    let port = SerialPort::open(env.capability("record"), COM2_FIRST)?;
    let record = Record::new(port);
    record.words(Tag::Clock, &[u64::from(tsc.mhz())])?;
    record.words(Tag::Snapshot, &begin)?;
    record.words(Tag::Snapshot, &end)?;
    record.words(Tag::Server, &[server.handling_longest.load(Relaxed)])?;
    let traced = Traced::new(env, tsc, end[0]);
    for (badge, (name, actor)) in (1..).zip(CLIENTS) {
        if let Some(client) = board::<ClientBoard>(env, name) {
            let [bytes, digest] = client.acknowledged.read();
            record.words(Tag::Client, &[badge, bytes, digest])?;
            traced.send(&record, actor, &client.trace)?;
        }
    }
    let control: &ControlBoard = board(env, "control.board").expect("there is a control task");
    send_control(&record, control)?;
    let burner: &BurnerBoard = board(env, "burner.board").expect("there is a burner");
    traced.send(&record, Actor::Control, &control.trace)?;
    traced.send(&record, Actor::Handler, &server.handler_trace)?;
    traced.send(&record, Actor::Server, &server.server_trace)?;
    traced.send(&record, Actor::Burner, &burner.trace)?;
    if let Some(memory) = env.find_memory("a.first-copy") {
        record.memory(Tag::Ciphertext, memory, env.parameter("input-bytes"))?;
    }
    record.end()
}

/// The board named `name`, unless this system has none.
fn board<B: Board>(env: &Environment, name: &str) -> Option<&'static B> {
    let memory = env.find_memory(name)?;
    // SAFETY: the system maps it, for the component whose board it is and for this one.
    Some(unsafe { B::in_memory(memory.as_mut_ptr(), memory.len) })
}

/// What a [`Tag::Snapshot`] holds.
fn snapshot(server: &ServerBoard) -> [u64; 6] {
    let now = time::ticks();
    let [bytes_a, bytes_b] = ServerState::from_words(server.state.read()).total;
    let [a, b] = &server.rollbacks;
    let [a, b, handling] = [a, b, &server.handling_total].map(|number| number.load(Relaxed));
    [now, bytes_a, bytes_b, a, b, handling]
}

fn send_control(record: &Record, control: &ControlBoard) -> Result<(), Error> {
    let numbers = [&control.releases, &control.misses, &control.busy].map(|n| n.load(Relaxed));
    let releases = (numbers[0] as usize).min(control.responses.len());
    let responses = control.responses[..releases]
        .iter()
        .map(|r| r.load(Relaxed));
    record.section(Tag::Control, numbers.into_iter().chain(responses))
}

/// The part of the traces that is sent.
struct Traced {
    /// Ticks.
    from: u64,
    to: u64,
}

impl Traced {
    /// The last part of the measured window, which ends at `end`.
    fn new(env: &Environment, tsc: Tsc, end: u64) -> Self {
        let length = tsc.us_to_ticks(env.parameter("traced"));
        Self {
            from: end.saturating_sub(length),
            to: end,
        }
    }

    fn send(
        &self,
        record: &Record,
        actor: Actor,
        trace: &demo_protocol::trace::Trace,
    ) -> Result<(), Error> {
        let intervals = trace
            .intervals()
            .filter(|interval| interval.end > self.from && interval.start < self.to)
            .flat_map(|interval| interval.words());
        record.section(Tag::Trace, core::iter::once(actor as u64).chain(intervals))
    }
}
