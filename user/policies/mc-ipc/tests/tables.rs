//! Tables whose gate is late.

use std::cell::RefCell;
use std::future::{pending, ready, Future};
use std::pin::pin;
use std::task::{Context, Waker};

use sandglass_mc_ipc::driver::{
    keep_table, Allowance, Client, Edge, Gate, GateKernel, Gone, Holder, Kind, Mark, Paid,
    Received, Setup, Shared, Signals, Table, TableKernel, Target, Work, WORDS,
};
use sandglass_mc_ipc::{ClientId, McIpc};

/// A table's thread for which so many periods begin.
struct Periods(u64);

impl TableKernel for Periods {
    async fn next_period(&mut self) {
        self.0 -= 1;
        match self.0 {
            0 => pending().await,
            _ => ready(()).await,
        }
    }

    async fn tick(&mut self) {}
}

/// A gate's thread that receives one message, and does nothing but note whose slot it says to begin.
struct Late<'a> {
    message: Option<Received>,
    released: &'a RefCell<Vec<ClientId>>,
}

impl GateKernel for Late<'_> {
    async fn receive(&mut self, _answer: Option<(u64, &[u64])>) -> Received {
        match self.message.take() {
            Some(message) => message,
            None => pending().await,
        }
    }

    fn keep(&mut self, _client: ClientId) {}

    fn keep_refused(&mut self, _client: ClientId) {}

    async fn answer_refused(&mut self, _client: ClientId, _label: u64) {}

    async fn answer(&mut self, _client: ClientId, _label: u64, _words: &[u64]) {}

    fn forget(&mut self, _client: ClientId) {}

    async fn take(&mut self, _client: ClientId) -> Result<(), Gone> {
        Ok(())
    }

    async fn give(&mut self, _: ClientId, _: Holder, _: Target) -> Result<(), Gone> {
        Ok(())
    }

    async fn rank(&mut self, _client: ClientId, _target: Target) {}

    async fn client_of(&mut self, _badge: u64) -> Option<ClientId> {
        None
    }

    async fn wake_server(&mut self) {}

    async fn release(&mut self, client: ClientId) {
        self.released.borrow_mut().push(client);
    }

    fn now(&self) -> u64 {
        0
    }

    async fn work(&mut self, _work: Work) {}

    fn mark(&mut self, _mark: Mark) {}
}

fn poll(future: impl Future) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    pin!(future).poll(&mut context).is_ready()
}

/// Several periods that begin before the gate looks come as one signal: it makes up for all of them, and stays in step.
#[test]
fn periods_that_begin_together_are_not_lost() {
    let shared = Shared::new(3);
    let ended = poll(keep_table(&mut Periods(5), &shared, 2));
    assert!(!ended, "a table never ends");
    let edge = |at, client, begins| Edge {
        at,
        client: ClientId(client),
        begins,
    };
    // Three periods, one for each client.
    let edges = (0..3).flat_map(|i| [edge(i as u64, i, true), edge((i as u64 + 1) % 3, i, false)]);
    let clients = [Client {
        kind: Kind::TableDriven,
        core: 2,
        priority: 10,
        allowance: Allowance::UNLIMITED,
    }; 3];
    let released = RefCell::new(Vec::new());
    let kernel = Late {
        message: Some(Received {
            badge: Signals::tick(2),
            label: 0,
            count: 0,
            words: [0; WORDS],
        }),
        released: &released,
    };
    let setup = Setup {
        paid: Paid::ByClients,
        clients: &clients,
        tables: vec![Table::new(2, 3, edges.collect())],
    };
    let protocol = McIpc::new(&[1; 3], &[2; 3]);
    let mut gate = Gate::new(protocol, kernel, &shared, setup);
    let ended = poll(gate.run());
    assert!(!ended, "a gate never ends");
    let begun = [0, 1, 2, 0, 1].map(ClientId);
    assert_eq!(*released.borrow(), begun);
}
