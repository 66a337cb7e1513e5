//! Capabilities by which an endpoint can be called only (docs/src/decisions/calls-only.md): no other kernel has them.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::{self, Endpoint, Notification, Rights, SchedContext, Tcb};
use sandglass::server::make_passive;
use sandglass::testing::{shared, Suite, TestResult};
use sandglass::thread::ThreadParams;
use sandglass::{ensure, ensure_eq, Message, SetupError};

use crate::fixture::{runs_on, Fixture, FULL};

const PRIORITY: u8 = 100;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "calls_only",
        &[("what_can_be_called_only_brings_its_time", calls_only)],
    );
}

/// A passive server that, for each request, says that it is there, waits to be let go on, and answers.
#[derive(Clone, Copy)]
struct Stage {
    endpoint: Endpoint,
    inside: Notification,
    go_on: Notification,
    tcb: Tcb,
}

impl Stage {
    fn new(fixture: &mut Fixture) -> Result<Self, SetupError> {
        let resources = &mut fixture.process.resources;
        let (endpoint, reply) = (resources.endpoint()?, resources.reply()?);
        let (ready, inside) = (resources.notification()?, resources.notification()?);
        let go_on = resources.notification()?;
        let initial = fixture.context(FULL)?;
        let tcb = fixture.spawn(ThreadParams::new(PRIORITY, initial), move || {
            cap::nb_send_recv(ready, Message::EMPTY, endpoint, reply);
            loop {
                inside.signal();
                go_on.wait();
                reply.reply_recv(endpoint, Message::new(1, []));
            }
        })?;
        make_passive(ready, tcb, initial)?;
        Ok(Self {
            endpoint,
            inside,
            go_on,
            tcb,
        })
    }
}

/// A thread that calls once.
struct Client {
    tcb: Tcb,
    context: SchedContext,
    answer: &'static AtomicU64,
}

impl Client {
    fn new(fixture: &mut Fixture, endpoint: Endpoint) -> Result<Self, SetupError> {
        let context = fixture.context(FULL)?;
        let answer: &AtomicU64 = shared();
        let done = fixture.done;
        let tcb = fixture.spawn(ThreadParams::new(PRIORITY, context), move || {
            answer.store(0x100 + endpoint.call(Message::EMPTY).label(), Relaxed);
            done.signal();
        })?;
        Ok(Self {
            tcb,
            context,
            answer,
        })
    }

    /// Whether `tcb` runs on the client's context, and `other` does not.
    fn lends_to(&self, tcb: Tcb, other: Tcb) -> bool {
        runs_on(tcb, PRIORITY, self.context) && !runs_on(other, PRIORITY, self.context)
    }
}

/// Decision *calls only*: a passive server is not left with a message and without time.
fn calls_only(fixture: &mut Fixture) -> TestResult {
    let stage = Stage::new(fixture)?;
    let rights = Rights::WRITE.union(Rights::GRANT_REPLY);
    let resources = &mut fixture.process.resources;
    let call = resources.mint_call(stage.endpoint, rights, 7)?;
    call.nb_send(Message::EMPTY);
    call.send(Message::EMPTY);
    fixture.settle();
    ensure_eq!(stage.inside.poll(), 0);
    let client = Client::new(fixture, call)?;
    stage.inside.wait();
    ensure!(client.lends_to(stage.tcb, client.tcb));
    stage.go_on.signal();
    fixture.done.wait();
    ensure_eq!(client.answer.load(Relaxed), 0x101);
    ensure!(client.lends_to(client.tcb, stage.tcb));
    Ok(())
}
