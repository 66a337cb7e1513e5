//! The recorder: notes the server's counters when the measured window begins and ends, then sends
//! the record of the run to the host and ends the system. While it sends, its priority keeps
//! everybody else from running.

#![no_std]
#![no_main]

extern crate alloc;

mod entries;

use core::sync::atomic::Ordering::Relaxed;

use demo_protocol::board::{
    Board, BurnerBoard, ClientBoard, ControlBoard, ServerBoard, ServerState,
};
use demo_protocol::record::{Actor, Entry, Snapshot};
use sandglass::arch::OutputPort;
use sandglass::cap::Notification;
use sandglass::time::{self, Tsc};
use sandglass::{Environment, Error};

use crate::entries::Record;

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

    let port = OutputPort::described(env, "record")?;
    let record = Record::begin(port)?;
    record.send(&Entry::Clock { khz: tsc.khz() })?;
    record.send(&Entry::Snapshot(begin))?;
    record.send(&Entry::Snapshot(end))?;
    let longest = server.handling_longest.load(Relaxed);
    record.send(&Entry::LongestRollback(longest))?;
    let traced = Traced::new(env, tsc, end.time);
    for (badge, (name, actor)) in (1..).zip(CLIENTS) {
        if let Some(client) = board::<ClientBoard>(env, name) {
            let [bytes, digest] = client.acknowledged.read();
            record.send(&Entry::Client {
                badge,
                bytes,
                digest,
            })?;
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
        record.ciphertext(memory, env.parameter("input-bytes"))?;
    }
    record.send(&Entry::End)
}

/// The board named `name`, unless this system has none.
fn board<B: Board>(env: &Environment, name: &str) -> Option<&'static B> {
    let memory = env.find_memory(name)?;
    // SAFETY: the system maps it, for the component whose board it is and for this one.
    Some(unsafe { B::in_memory(memory.as_mut_ptr(), memory.len) })
}

fn snapshot(server: &ServerBoard) -> Snapshot {
    Snapshot {
        time: time::ticks(),
        finished: ServerState::from_words(server.state.read()).total,
        rollbacks: [0, 1].map(|client| server.rollbacks[client].load(Relaxed)),
        handling: server.handling_total.load(Relaxed),
    }
}

fn send_control(record: &Record, control: &ControlBoard) -> Result<(), Error> {
    let numbers = [&control.releases, &control.misses, &control.busy];
    let [releases, misses, busy] = numbers.map(|number| number.load(Relaxed));
    record.send(&Entry::Control {
        releases,
        misses,
        busy,
    })?;
    let kept = (releases as usize).min(control.responses.len());
    let mut responses = control.responses[..kept].iter();
    responses.try_for_each(|response| record.send(&Entry::Response(response.load(Relaxed))))
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
        record.send(&Entry::Trace(actor))?;
        let mut intervals = trace
            .intervals()
            .filter(|interval| interval.end > self.from && interval.start < self.to);
        intervals.try_for_each(|interval| record.send(&Entry::Interval(interval)))
    }
}
