//! A server behind a gate, as a component of a described system: what a `[[resource]]` with one of the gates' protocols says.
//!
//! The component's main thread is the gate. The builder has added the others, which run what [`crate::driver`] says: the
//! server's, a spinner for each client, and one for each core with slots. All of them but the gate's and the tables' have no
//! context of their own.

mod server;

use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::future::Future;
use core::mem;
use core::pin::pin;
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::{Context, Poll, Waker};

use sandglass::alarm::Alarm;
use sandglass::cap::{
    nb_send_wait, CPtr, Capability, Endpoint, Notification, Reply, SchedContext, Tcb,
};
use sandglass::context::UserContext;
use sandglass::replies::Replies;
use sandglass::time::{self, Tsc};
use sandglass::{arch, log, trace, Environment, Error, Message};
use sandglass_description::policy::mc_ipc::{
    self as described, names, threads, Gate as Described, Kind, Slots,
};
use sandglass_description::policy::Table;

use crate::driver::{
    self, Allowance, Client, Edge, Gate, GateKernel, Gone, Holder, Job, Mark, Paid, Received,
    Setup, Shared, SpinnerKernel, TableKernel, Target, Timing, Work, WORDS,
};
use crate::{ClientId, Fifo, McIpc, Prio, Protocol};

/// The first cycle of slots begins so much later than the gate, µs.
const LEAD_US: u64 = 1_000;
/// Most budget that a table thread has from one edge to the next, µs.
const TABLE_BUDGET_US: u64 = 1_000;
/// Instructions of a pause: of a spinner between two looks.
const PAUSE: usize = 256;
/// Pauses that a request beyond its client's allowance costs: many times what it costs the gate.
const TOLL: u64 = 512;

/// Has a gate, for good. For each request of a client, `operation` gets who asks and its words, and puts down at most
/// [`WORDS`] words of an answer, whose number it returns; it runs on the budgets of clients, on their cores, and in a thread
/// of its own. It may use the heap, which the gate does not touch any more by then.
///
/// If it panics, or has a fault, its request is refused ([`Refusal::Faulted`](crate::client::Refusal::Faulted)), and the next
/// one is carried out with what `operation` captured as it was left: nothing on the stack is dropped. The panic is said in the
/// log, if the component has one.
///
/// # Errors
/// The kernel refuses something at the start.
///
/// # Panics
/// The component has no table, or lacks what the builder gives with it.
pub fn serve(
    env: &'static Environment,
    operation: impl FnMut(&Job, &mut [u64; WORDS]) -> usize + Send + 'static,
) -> Result<Infallible, Error> {
    let table = table(env);
    let shared: &'static Shared = Box::leak(Box::new(Shared::new(table.clients.len())));
    server::prepare(env, shared, operation);
    let cores = table.clients.iter().map(|of| of.core as usize + 1).max();
    let processors: Vec<_> = (0..cores.unwrap_or(0)).map(|_| AtomicU32::new(0)).collect();
    let processors: &'static [AtomicU32] = Box::leak(processors.into_boxed_slice());
    for client in (0..table.clients.len()).map(ClientId) {
        prepare_spinner(env, &table, shared, processors, client);
    }
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let start = time::ticks() + tsc.us_to_ticks(LEAD_US);
    for slots in &table.tables {
        prepare_table(env, shared, slots, tsc, start);
    }
    let own: Tcb = env.capability(names::GATE_TCB);
    own.bind_notification(env.capability(names::SIGNALS))?;
    let kernel = Kernel::new(env, &table)?;
    for (client, described) in table.clients.iter().enumerate() {
        if described.kind == Kind::TableDriven {
            kernel.contexts[client].unbind_tcb(kernel.clients[client])?;
        }
    }
    env.ready().signal();
    for start in all::<Notification>(env, names::SPINNER_STARTS, table.clients.len()) {
        start.signal();
    }
    let clients = table.clients.iter().map(|of| client(of, tsc));
    let clients: Vec<Client> = clients.collect();
    let setup = Setup {
        paid: Paid::ByClients,
        clients: &clients,
        tables: table.tables.iter().map(kept).collect(),
    };
    match protocol(&table) {
        Gates::McIpc(gate) => run(gate, kernel, shared, setup),
        Gates::Fifo(gate) => run(gate, kernel, shared, setup),
        Gates::Prio(gate) => run(gate, kernel, shared, setup),
    }
}

fn table(env: &Environment) -> Described {
    // SAFETY: the builder packs the table as a file, which nobody writes.
    let bytes = unsafe { env.memory(Described::NAME).as_bytes() };
    Described::decode(bytes).expect("the builder made the table")
}

/// Capabilities whose slots follow each other, the first under `name`.
fn all<C: Capability>(env: &Environment, name: &str, count: usize) -> Vec<C> {
    let first: C = env.capability(name);
    let first = first.cptr().raw();
    let slots = (first..).take(count);
    slots.map(|slot| C::from_cptr(CPtr::new(slot))).collect()
}

/// One of them.
fn nth<C: Capability>(env: &Environment, name: &str, client: ClientId) -> C {
    let first: C = env.capability(name);
    C::from_cptr(CPtr::new(first.cptr().raw() + client.0 as u64))
}

const fn client(described: &described::Client, tsc: Tsc) -> Client {
    Client {
        kind: match described.kind {
            Kind::Sporadic { .. } => driver::Kind::Sporadic,
            Kind::TableDriven => driver::Kind::TableDriven,
            Kind::BestEffort => driver::Kind::BestEffort,
        },
        core: described.core as usize,
        priority: described.priority,
        allowance: Allowance {
            requests: described.requests,
            period: tsc.us_to_ticks(described.every_us),
        },
    }
}

enum Gates {
    McIpc(McIpc),
    Fifo(Fifo),
    Prio(Prio),
}

/// The protocol of the table. A cluster is a core, and has its number.
fn protocol(table: &Described) -> Gates {
    let clusters: Vec<usize> = table.clients.iter().map(|of| of.core as usize).collect();
    match table.protocol {
        described::Protocol::McIpc => {
            let cores = clusters.iter().max().map_or(0, |most| most + 1);
            Gates::McIpc(McIpc::new(&vec![1; cores], &clusters))
        }
        described::Protocol::Fifo => Gates::Fifo(Fifo::new(clusters.len())),
        described::Protocol::Priority => Gates::Prio(Prio::new(clusters.len())),
    }
}

fn run<P: Protocol>(protocol: P, kernel: Kernel, shared: &Shared, setup: Setup<'_>) -> ! {
    let mut gate = Gate::new(protocol, kernel, shared, setup);
    done_at_once(gate.run())
}

/// What the driver's functions come to on the machine: whatever they wait for has happened when the kernel returns.
fn done_at_once<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

/// The kernel, as the gate's thread enters it.
struct Kernel {
    endpoint: Endpoint,
    replies: Replies,
    /// Of each client whose request is in the gate.
    kept: Vec<Option<Reply>>,
    /// Of each: another call, while its request was there.
    refused: Vec<Option<Reply>>,
    contexts: Vec<SchedContext>,
    clients: Vec<Tcb>,
    spinners: Vec<Tcb>,
    /// Who has the context of each client, or had it last.
    holders: Vec<Tcb>,
    priorities: Vec<u8>,
    /// Of each client's time.
    badges: Vec<u64>,
    /// What a table-driven one waits for.
    slots: Vec<Option<Notification>>,
    server: Tcb,
    /// The registers with which the server's thread begins.
    start: UserContext,
    wake: Notification,
    /// By which it hears of clients that are gone, a bit for each; and those of these bits that it has not acted on.
    ends: Vec<(Notification, u64)>,
    /// Its own thread, which bounds the priorities that it gives.
    authority: Tcb,
}

impl Kernel {
    /// To be called before the server's thread starts.
    fn new(env: &Environment, table: &Described) -> Result<Self, Error> {
        let server: Tcb = env.capability(names::SERVER_TCB);
        let count = table.clients.len();
        let clients: Vec<Tcb> = all(env, names::CLIENT_TCBS, count);
        Ok(Self {
            endpoint: env.capability(&table.name),
            replies: all(env, names::REPLIES, table.replies())
                .into_iter()
                .collect(),
            kept: vec![None; count],
            refused: vec![None; count],
            contexts: all(env, names::CLIENT_CONTEXTS, count),
            spinners: all(env, names::SPINNER_TCBS, count),
            holders: clients.clone(),
            clients,
            priorities: table.clients.iter().map(|of| of.priority).collect(),
            badges: table.clients.iter().map(|of| of.badge).collect(),
            slots: (0..count)
                .map(|client| env.find_capability(&names::slot(client)))
                .collect(),
            server,
            start: server.read_registers(false)?,
            wake: env.capability(names::SERVER_WAKE),
            ends: all(env, names::ENDS, table.ends())
                .into_iter()
                .map(|end| (end, 0))
                .collect(),
            authority: env.capability(names::GATE_TCB),
        })
    }
}

impl Kernel {
    #[cold]
    fn trace(&self, mark: Mark) {
        let (what, [first, second]) = mark.encode();
        let written = trace::Mark::Gate {
            what,
            first,
            second,
        };
        match mark.client() {
            Some(client) => trace::mark_of(self.contexts[client.0], written),
            None => trace::mark(written),
        }
    }
}

impl GateKernel for Kernel {
    async fn receive(&mut self, answer: Option<(u64, &[u64])>) -> Received {
        let caller = self.replies.keep();
        let received = match (answer, caller) {
            (Some((label, words)), Some(caller)) => {
                let answer = Message::long(label, words);
                self.replies.reply_recv(caller, self.endpoint, answer)
            }
            (_, caller) => {
                // Who is not answered does not wait either.
                if let Some(caller) = caller {
                    self.replies.forget(caller);
                }
                self.replies.recv(self.endpoint)
            }
        };
        let mut words = [0; WORDS];
        received.message.copy_words(&mut words);
        Received {
            badge: received.badge,
            label: received.message.label(),
            count: received.message.len(),
            words,
        }
    }

    fn keep(&mut self, client: ClientId) {
        self.kept[client.0] = self.replies.keep();
    }

    async fn answer(&mut self, client: ClientId, label: u64, words: &[u64]) {
        if let Some(reply) = self.kept[client.0].take() {
            self.replies.send(reply, Message::long(label, words));
        }
    }

    fn forget(&mut self, client: ClientId) {
        if let Some(reply) = self.kept[client.0].take() {
            self.replies.forget(reply);
        }
    }

    fn keep_refused(&mut self, client: ClientId) {
        let before = mem::replace(&mut self.refused[client.0], self.replies.keep());
        if let Some(before) = before {
            self.replies.forget(before);
        }
    }

    async fn answer_refused(&mut self, client: ClientId, label: u64) {
        if let Some(reply) = self.refused[client.0].take() {
            self.replies.send(reply, Message::new(label, []));
        }
    }

    async fn take(&mut self, client: ClientId) -> Result<(), Gone> {
        // If it has been taken away, and is given back, its client has it.
        let own = self.clients[client.0];
        let holder = mem::replace(&mut self.holders[client.0], own);
        let context = self.contexts[client.0];
        context.unbind_tcb(holder).map_err(|_| Gone)
    }

    async fn give(&mut self, client: ClientId, holder: Holder, target: Target) -> Result<(), Gone> {
        let tcb = match holder {
            Holder::Client => self.clients[client.0],
            Holder::Spinner => self.spinners[client.0],
            // The builder lets no server be a client of another gate.
            Holder::Server if target == Target::Server => self.server,
            Holder::Server => return Err(Gone),
        };
        self.contexts[client.0].bind(tcb).map_err(|_| Gone)?;
        self.holders[client.0] = tcb;
        Ok(())
    }

    async fn rank(&mut self, client: ClientId, _target: Target) {
        let priority = self.priorities[client.0] + 1;
        let ranked = self.server.set_priority(self.authority, priority);
        // The builder lets this thread give the priorities of all clients, and the server's thread is its own.
        debug_assert!(ranked.is_ok());
    }

    async fn client_of(&mut self, badge: u64) -> Option<ClientId> {
        let client = self.badges.iter().position(|known| *known == badge);
        client.map(ClientId)
    }

    async fn wake_server(&mut self) {
        self.wake.signal();
    }

    async fn next_gone(&mut self) -> Option<ClientId> {
        for (number, (end, unseen)) in self.ends.iter_mut().enumerate() {
            *unseen |= end.poll();
            if *unseen != 0 {
                let bit = unseen.trailing_zeros();
                *unseen &= *unseen - 1;
                let client = ClientId(number * Described::ENDS_EACH + bit as usize);
                return (client.0 < self.clients.len()).then_some(client);
            }
        }
        None
    }

    async fn restart_server(&mut self) {
        let registers = self.server.read_registers(false).unwrap_or_default();
        log::error!(
            "fault of an operation at {:#x}: its request is refused",
            registers.ip()
        );
        // The thread is the component's own: nothing can fail.
        let restarted = self.server.write_registers(&self.start, false);
        debug_assert!(restarted.is_ok());
        self.replies.answer(Message::EMPTY);
    }

    async fn release(&mut self, client: ClientId) {
        if let Some(slot) = self.slots[client.0] {
            slot.signal();
        }
    }

    fn now(&self) -> u64 {
        time::ticks()
    }

    async fn work(&mut self, _work: Work) {}

    fn mark(&mut self, mark: Mark) {
        if trace::is_traced() {
            self.trace(mark);
        }
    }
}

/// The thread of a spinner.
struct Spinner {
    gate: Endpoint,
    server: Tcb,
    /// The processor of each core, as far as a spinner has been there: its number's and 1; 0, if none has.
    processors: &'static [AtomicU32],
}

impl SpinnerKernel for Spinner {
    async fn ask(&mut self, label: u64, word: u64) {
        self.gate.call(Message::new(label, [word]));
    }

    async fn look_at(&mut self, _target: Target) -> u64 {
        // One that cannot be looked at stands still.
        let registers = self.server.read_registers(false).unwrap_or_default();
        let words = registers.words().iter();
        words.fold(0, |value: u64, word| {
            (value.rotate_left(5) ^ word).wrapping_mul(MIXER)
        })
    }

    async fn pause(&mut self) {
        for _ in 0..PAUSE {
            time::nop();
        }
    }

    fn now(&self) -> u64 {
        time::ticks()
    }

    fn core(&self) -> Option<usize> {
        let here = arch::processor()? + 1;
        let mut known = self.processors.iter();
        known.position(|core| core.load(Ordering::Relaxed) == here)
    }
}

/// An odd number without a pattern, by which registers are mixed into one word.
const MIXER: u64 = 0x517c_c1b7_2722_0a95;

fn prepare_spinner(
    env: &'static Environment,
    table: &Described,
    shared: &'static Shared,
    processors: &'static [AtomicU32],
    client: ClientId,
) {
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let timing = Timing {
        poll: tsc.us_to_ticks(table.poll_us),
        toll: TOLL,
    };
    let core = Some(table.clients[client.0].core as usize);
    let name = threads::spinner(client.0);
    let ready: Notification = env.capability(&format!("{name}.ready"));
    let start: Notification = nth(env, names::SPINNER_STARTS, client);
    let mut spinner = Spinner {
        gate: nth(env, names::SPINNER_GATES, client),
        server: env.capability(names::SERVER_TCB),
        processors,
    };
    let home = &processors[table.clients[client.0].core as usize];
    env.thread(&name).prepare(move || {
        // The launcher takes its context away when it is ready; then it runs on its client's.
        nb_send_wait(ready, Message::EMPTY, start);
        // It begins on the core on which its client is described.
        let here = arch::processor().map_or(0, |number| number + 1);
        home.store(here, Ordering::Relaxed);
        done_at_once(driver::spin(&mut spinner, shared, client, core, timing))
    });
}

/// The thread of a table.
struct Ticker {
    tick: Notification,
    /// All tables keep to one clock.
    alarm: Alarm,
    tsc: Tsc,
    /// When the first cycle begins, and how many periods have begun since then.
    start: u64,
    periods: u64,
    granule_us: u64,
}

impl Ticker {
    /// When a period begins, counted from [`Self::start`].
    fn beginning(&self, period: u64) -> u64 {
        let passed_us = period.saturating_mul(self.granule_us);
        self.start.saturating_add(self.tsc.us_to_ticks(passed_us))
    }

    /// Lets cycles pass that have begun already, if the launcher came to this thread late.
    fn skip(&mut self, cycle: u64) {
        while self.beginning(self.periods) < time::ticks() {
            self.periods += cycle;
        }
    }

    /// Until the next period begins.
    fn wait(&self) {
        let waited = self.alarm.wait_until(self.beginning(self.periods));
        waited.expect("the builder gives the table its context and the control of its core");
    }
}

impl TableKernel for Ticker {
    async fn next_period(&mut self) {
        self.periods += 1;
        self.wait();
    }

    async fn tick(&mut self) {
        self.tick.signal();
    }
}

fn prepare_table(
    env: &'static Environment,
    shared: &'static Shared,
    slots: &Slots,
    tsc: Tsc,
    start: u64,
) {
    let core = slots.core;
    let cycle = slots.cycle_us / slots.granule_us;
    let context = env.capability(&names::table_context(core));
    let control = env.capability(&format!("sched-control.{core}"));
    let mut ticker = Ticker {
        tick: env.capability(&names::table_tick(core)),
        alarm: Alarm::new(context, control, tsc, TABLE_BUDGET_US),
        tsc,
        start,
        periods: 0,
        granule_us: slots.granule_us,
    };
    env.thread(&threads::table(core)).prepare(move || {
        ticker.skip(cycle);
        ticker.wait();
        done_at_once(driver::keep_table(&mut ticker, shared, core as usize))
    });
}

/// A table as the gate keeps it.
fn kept(slots: &Slots) -> driver::Table {
    let periods = slots.cycle_us / slots.granule_us;
    driver::Table::new(slots.core as usize, periods, edges(slots))
}

/// The edges of slots. A slot that ends with the cycle ends at its beginning.
fn edges(slots: &Slots) -> Vec<Edge> {
    let periods = slots.cycle_us / slots.granule_us;
    let edges = slots.slots.iter().flat_map(|slot| {
        let at = slot.at_us / slots.granule_us;
        let length = slot.length_us / slots.granule_us;
        let client = ClientId(slot.client as usize);
        let edge = |at, begins| Edge { at, client, begins };
        [edge(at, true), edge((at + length) % periods, false)]
    });
    edges.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandglass_description::policy::mc_ipc::Slot;

    #[test]
    fn a_slot_that_ends_with_the_cycle_ends_at_its_beginning() {
        let slot = |client, at_us, length_us| Slot {
            client,
            at_us,
            length_us,
        };
        let slots = Slots {
            core: 1,
            cycle_us: 100_000,
            granule_us: 25_000,
            slots: vec![slot(3, 0, 25_000), slot(5, 25_000, 75_000)],
        };
        let edges: Vec<_> = edges(&slots)
            .into_iter()
            .map(|edge| (edge.at, edge.client.0, edge.begins))
            .collect();
        assert_eq!(
            edges,
            [(0, 3, true), (1, 3, false), (1, 5, true), (0, 5, false)]
        );
    }
}
