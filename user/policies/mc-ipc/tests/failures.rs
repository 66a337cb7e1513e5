//! Operations that have faults, and clients that are gone: the gate goes on, and everybody else is served.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{pending, Future};
use std::pin::pin;
use std::task::{Context, Waker};

use sandglass_mc_ipc::driver::{
    Allowance, Client, Control, Gate, GateKernel, Gone, Holder, Kind, Mark, Paid, Received, Sender,
    Setup, Shared, Signals, Target, Work, DONE, FAULTED, GONE, WORDS,
};
use sandglass_mc_ipc::{ClientId, McIpc};

/// What the gate had the kernel do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Did {
    Answer(usize, u64),
    Forget(usize),
    Restart,
    Give(usize, Holder),
}

/// A kernel that has messages ready, and notes what it is asked for.
struct Script<'a> {
    messages: VecDeque<u64>,
    gone: VecDeque<usize>,
    label: u64,
    did: &'a RefCell<Vec<Did>>,
}

impl GateKernel for Script<'_> {
    async fn receive(&mut self, _answer: Option<(u64, &[u64])>) -> Received {
        let Some(badge) = self.messages.pop_front() else {
            return pending().await;
        };
        Received {
            badge,
            label: self.label,
            count: 0,
            words: [0; WORDS],
        }
    }

    fn keep(&mut self, _client: ClientId) {}

    fn keep_refused(&mut self, _client: ClientId) {}

    async fn answer_refused(&mut self, _client: ClientId, _label: u64) {}

    async fn answer(&mut self, client: ClientId, label: u64, _words: &[u64]) {
        self.did.borrow_mut().push(Did::Answer(client.0, label));
    }

    fn forget(&mut self, client: ClientId) {
        self.did.borrow_mut().push(Did::Forget(client.0));
    }

    async fn take(&mut self, _client: ClientId) -> Result<(), Gone> {
        Ok(())
    }

    async fn give(&mut self, client: ClientId, to: Holder, _: Target) -> Result<(), Gone> {
        self.did.borrow_mut().push(Did::Give(client.0, to));
        Ok(())
    }

    async fn rank(&mut self, _client: ClientId, _target: Target) {}

    async fn client_of(&mut self, _badge: u64) -> Option<ClientId> {
        None
    }

    async fn wake_server(&mut self) {}

    async fn next_gone(&mut self) -> Option<ClientId> {
        self.gone.pop_front().map(ClientId)
    }

    async fn restart_server(&mut self) {
        self.did.borrow_mut().push(Did::Restart);
    }

    async fn release(&mut self, _client: ClientId) {}

    fn now(&self) -> u64 {
        0
    }

    async fn work(&mut self, _work: Work) {}

    fn mark(&mut self, _mark: Mark) {}
}

/// Lets a gate of three clients on one core get these messages. `gone` are those that are gone when it asks.
fn play(messages: &[u64], gone: &[usize]) -> Vec<Did> {
    play_labelled(messages, gone, 0)
}

/// All of the messages have this label.
fn play_labelled(messages: &[u64], gone: &[usize], label: u64) -> Vec<Did> {
    let clients = [30, 20, 10].map(|priority| Client {
        kind: Kind::Sporadic,
        core: 0,
        priority,
        allowance: Allowance::UNLIMITED,
    });
    let (shared, did) = (Shared::new(3), RefCell::new(Vec::new()));
    let kernel = Script {
        messages: messages.iter().copied().collect(),
        gone: gone.iter().copied().collect(),
        label,
        did: &did,
    };
    let setup = Setup {
        paid: Paid::ByClients,
        clients: &clients,
        tables: Vec::new(),
    };
    let protocol = McIpc::new(&[1], &[0; 3]);
    let mut gate = Gate::new(protocol, kernel, &shared, setup);
    let mut context = Context::from_waker(Waker::noop());
    let ended = pin!(gate.run()).poll(&mut context).is_ready();
    assert!(!ended, "a gate never ends");
    did.into_inner()
}

fn call(client: usize) -> u64 {
    Sender::Client(ClientId(client)).badge()
}

fn answers(did: &[Did]) -> Vec<(usize, u64)> {
    let answers = did.iter().filter_map(|did| match did {
        Did::Answer(client, label) => Some((*client, *label)),
        _ => None,
    });
    answers.collect()
}

#[test]
fn a_fault_of_an_operation_ends_its_request_and_no_other() {
    let fault = Sender::ServerFault.badge();
    let did = play(&[call(1), call(0), fault, Signals::server(), call(1)], &[]);
    // The second answer is that of a server, and there is none here.
    let answers = answers(&did);
    assert_eq!((answers[0], answers[1].0), ((1, FAULTED), 0));
    // It runs again before contexts are moved: who is blocked might not be given one.
    let restart = did.iter().position(|did| *did == Did::Restart).unwrap();
    let back = did
        .iter()
        .position(|did| *did == Did::Give(1, Holder::Client));
    assert!(back.is_some_and(|back| restart < back), "{did:?}");
    assert_eq!(did.last(), Some(&Did::Give(1, Holder::Server)), "{did:?}");
}

#[test]
fn a_fault_of_a_server_without_a_request_is_nobodys() {
    let did = play(&[Sender::ServerFault.badge(), call(2)], &[]);
    assert_eq!(answers(&did), []);
    assert_eq!(did.first(), Some(&Did::Restart));
    assert_eq!(did.last(), Some(&Did::Give(2, Holder::Server)), "{did:?}");
}

/// Its thread comes back, and has its context; and the next one is served.
#[test]
fn who_is_gone_while_queued_does_not_wait_any_more() {
    let messages = [
        call(2),
        call(1),
        call(0),
        Signals::ends(),
        Signals::server(),
    ];
    let did = play(&messages, &[0]);
    assert_eq!(answers(&did), [(0, GONE), (2, DONE)]);
    assert!(did.contains(&Did::Give(0, Holder::Client)), "{did:?}");
    assert_eq!(did.last(), Some(&Did::Give(1, Holder::Server)), "{did:?}");
}

#[test]
fn whoever_controls_a_client_gives_up_its_request_and_nothing_else() {
    let supervisor = Sender::Supervisor(ClientId(0)).badge();
    let messages = [call(2), call(1), call(0), supervisor, Signals::server()];
    // The label of these messages is 0.
    let did = play(&messages, &[]);
    assert_eq!(answers(&did).len(), 1, "{did:?}");
    let did = play_labelled(&messages, &[], Control::Withdraw.label());
    assert_eq!(answers(&did)[0], (0, GONE));
    assert_eq!(did.last(), Some(&Did::Give(1, Holder::Server)), "{did:?}");
    for label in (0..9).filter(|label| *label != Control::Withdraw.label()) {
        let did = play_labelled(&messages, &[], label);
        assert_eq!(answers(&did).len(), 1, "{label}: {did:?}");
    }
}

/// What it asked for is finished, and others are served after it; all who are gone at once are seen.
#[test]
fn who_is_gone_while_served_is_not_answered_twice() {
    let done = Signals::server();
    let messages = [call(2), call(1), call(0), Signals::ends(), done, done];
    let did = play(&messages, &[2, 0]);
    assert_eq!(answers(&did), [(2, GONE), (0, GONE), (1, DONE)]);
    assert!(!did.iter().any(|did| matches!(did, Did::Forget(_))));
    assert_eq!(did.last(), Some(&Did::Give(1, Holder::Client)), "{did:?}");
}
