//! The servers: the same work, served as the protocol has it.

use alloc::format;
use core::sync::atomic::Ordering::Relaxed;

use sandglass::cap::{Endpoint, Notification, Tcb};
use sandglass::{Environment, Message, Received};
use sandglass_sharing::blocking::{Device, Outcome, Ticket};
use sandglass_sharing::spawning::Meter;
use sandglass_sharing::{blocking, spawning, workers};

use crate::board::{Board, SERVERS};
use crate::work::Worker;

/// What the description calls the further workers of a pool.
const WORKERS: [&str; 2] = ["second", "third"];

/// What making threads has cost this server.
static METER: Meter = Meter::new();

/// Serves the resource `name` in the way that the description provides for.
pub fn serve(env: &'static Environment, name: &'static str) -> ! {
    let office = Office::new(env, name);
    if env.find_parameter("spawning.threads").is_some() {
        spawning::serve(env, name, &METER, move |request| {
            office.note();
            office.handle(request)
        })
    }
    if env.find_memory("second.stack").is_some() {
        workers::serve(env, name, &WORKERS, move |request| office.handle(request))
    }
    // Power over itself: to bind what its interrupts run on.
    if env.find_capability::<Tcb>("self.tcb").is_some() {
        let interrupt = env.capability(&format!("device.{name}"));
        let mut blocking = Blocking {
            office,
            waiting: None,
        };
        let served = blocking::serve(env, name, interrupt, &mut blocking);
        match served.expect("the description grants it") {}
    }
    sandglass_sharing::serve(env, name, move |request| office.handle(request))
}

/// What a request needs.
#[derive(Clone)]
struct Office {
    worker: Worker,
    board: &'static Board,
    /// Number among the servers.
    number: usize,
    /// For nested requests.
    store: Option<Endpoint>,
    /// What starts the device, and what says that it is done.
    device: Option<(Notification, Notification)>,
}

impl Office {
    fn new(env: &Environment, name: &str) -> Self {
        let number = SERVERS.iter().position(|server| *server == name);
        Self {
            worker: Worker::new(env),
            board: Board::of(env),
            number: number.unwrap_or_else(|| panic!("no server is called {name}")),
            store: env.find_capability("store").filter(|_| name == "bus"),
            device: env
                .find_capability("drive.start")
                .map(|start| (start, env.capability("device.store"))),
        }
    }

    fn handle(&self, request: Received) -> Message {
        if let Some((start, done)) = self.device_for(request) {
            start.signal();
            done.wait();
            return Message::EMPTY;
        }
        let [before, nested, after] = [0, 1, 2].map(|i| request.message.word(i));
        self.worker.work(before);
        if let (Some(store), 1..) = (self.store, nested) {
            store.call(Message::new(0, [nested, 0, 0, 0]));
        }
        self.worker.work(after);
        Message::EMPTY
    }

    /// The device, if the request is for it.
    fn device_for(&self, request: Received) -> Option<(Notification, Notification)> {
        self.device.filter(|_| request.message.word(3) != 0)
    }

    /// Tells what making threads has cost.
    fn note(&self) {
        self.board.spawned[self.number].store(METER.made().into(), Relaxed);
        self.board.spawn_ticks[self.number].store(METER.most_ticks(), Relaxed);
    }
}

/// A server that takes further requests while one waits for the device.
struct Blocking {
    office: Office,
    waiting: Option<Ticket>,
}

impl Device for Blocking {
    fn request(&mut self, request: Received, ticket: Ticket) -> Outcome {
        let Some((start, _)) = self.office.device_for(request) else {
            return Outcome::Answer(self.office.handle(request));
        };
        start.signal();
        self.waiting = Some(ticket);
        Outcome::Later
    }

    fn interrupt(&mut self, complete: &mut dyn FnMut(Ticket, Message)) {
        if let Some(ticket) = self.waiting.take() {
            complete(ticket, Message::EMPTY);
        }
    }
}
