//! What the gate's thread does for a request, against the number of those that wait: everything but the kernel.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::future::{pending, Future};
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use sandglass::{println, time};
use sandglass_mc_ipc::driver::{
    serve, Allowance, Client, Gate, GateKernel, Gone, Holder, Job, Kind, Mark, Operation, Paid,
    Received, Sender, ServerKernel, Setup, Shared, Signals, Target, Work, DONE, WORDS,
};
use sandglass_mc_ipc::{ClientId, McIpc};

/// Numbers of clients that wait.
const WAITING: [usize; 7] = [0, 1, 4, 16, 64, 256, 1_024];
/// Requests that are counted.
const REQUESTS: usize = 16;

/// A kernel that does nothing, and has messages ready.
struct Messages {
    ready: VecDeque<Received>,
    /// When the last of them was handled, in ticks; and when those after the mark began.
    times: Vec<u64>,
}

impl Messages {
    fn push(&mut self, badge: u64) {
        self.ready.push_back(Received {
            badge,
            label: 0,
            count: 0,
            words: [0; WORDS],
        });
    }
}

impl GateKernel for &mut Messages {
    async fn receive(&mut self, _answer: Option<(u64, &[u64])>) -> Received {
        self.times.push(time::ticks());
        match self.ready.pop_front() {
            Some(received) => received,
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

    async fn release(&mut self, _client: ClientId) {}

    fn now(&self) -> u64 {
        0
    }

    async fn work(&mut self, _work: Work) {}

    fn mark(&mut self, _mark: Mark) {}
}

/// A line for each number of clients that wait: ticks of the gate's thread for a request that comes and one that is
/// finished then, the mean and the most.
pub fn report() {
    for waiting in WAITING {
        // So many wait all the time: the first one's request is in service.
        let mut messages = Messages {
            ready: VecDeque::with_capacity(waiting + 1 + 2 * REQUESTS),
            times: Vec::with_capacity(waiting + 2 + 2 * REQUESTS),
        };
        let count = waiting + 1 + REQUESTS;
        let request = |client: usize| Sender::Client(ClientId(client)).badge();
        for client in 0..=waiting {
            messages.push(request(client));
        }
        for client in 0..REQUESTS {
            messages.push(request(waiting + 1 + client));
            messages.push(Signals::server());
        }
        let before = waiting + 1;
        run(&mut messages, count);
        let times = &messages.times[before..];
        let turns = times.windows(3).step_by(2).map(|turn| turn[2] - turn[0]);
        let turns: Vec<u64> = turns.collect();
        let mean = turns.iter().sum::<u64>() / turns.len() as u64;
        let most = turns.iter().max().copied().unwrap_or(0);
        println!("waiting {waiting} {mean} {most}");
    }
}

/// A server that has a job each time it waits, until there have been enough.
struct Jobs {
    left: usize,
}

impl ServerKernel for Jobs {
    async fn wait(&mut self) {
        if self.left == 0 {
            pending::<()>().await;
        }
        self.left -= 1;
    }

    async fn done(&mut self) {}

    async fn work(&mut self, _work: Work) {}
}

/// An operation that does nothing.
struct Nothing;

impl Operation for Nothing {
    async fn perform(&mut self, _job: &Job, answer: &mut [u64; WORDS]) -> (u64, usize) {
        answer[0] = 1;
        (DONE, 1)
    }
}

/// A line: ticks of the server's thread for a request, without its operation.
pub fn report_job() {
    let shared = Shared::new(1);
    let mut jobs = Jobs { left: REQUESTS };
    let start = time::ticks();
    let ended = {
        let mut nothing = Nothing;
        let mut serve = pin!(serve(&mut jobs, &shared, &mut nothing));
        serve
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    };
    assert!(!ended, "a server never ends");
    println!("job {}", (time::ticks() - start) / REQUESTS as u64);
}

/// A gate of one cluster handles all messages.
fn run(messages: &mut Messages, count: usize) {
    let shared = Shared::new(count);
    // Of all priorities, in no order.
    let clients: Vec<Client> = (0..count)
        .map(|number| Client {
            kind: Kind::Sporadic,
            core: 0,
            priority: (number * 89 % 251) as u8,
            allowance: Allowance::UNLIMITED,
        })
        .collect();
    let setup = Setup {
        paid: Paid::ByClients,
        clients: &clients,
        tables: Vec::new(),
    };
    let protocol = McIpc::new(&[1], &vec![0; count]);
    let mut gate = Gate::new(protocol, messages, &shared, setup);
    let mut run = pin!(gate.run());
    let polled = run.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending), "a gate never ends");
}
