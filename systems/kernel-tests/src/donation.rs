//! Lent scheduling contexts: where they are during a call, and that they come back
//! (ABI 04, section 7).

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::{Endpoint, Notification, Reply, Rights, SchedContext, Tcb};
use sandglass::server::make_passive;
use sandglass::testing::{shared, Suite, TestResult};
use sandglass::thread::ThreadParams;
use sandglass::{cap, ensure, ensure_eq, Message, SetupError};

use crate::fixture::{runs_on, Fixture, FULL};

const PRIORITY: u8 = 100;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "donation",
        &[
            ("a_context_is_lent_and_returned_with_the_reply", reply_sent),
            ("it_returns_when_the_reply_on_top_is_deleted", top_deleted),
            ("it_returns_along_the_whole_chain", chain),
            ("it_skips_those_whose_reply_is_gone", middle_deleted),
            (
                "it_returns_with_the_reply_after_the_server_died",
                server_died,
            ),
            ("an_active_server_borrows_nothing", active_server),
            ("a_call_without_reply_object_lends_nothing", no_reply),
            ("a_queued_call_lends_when_it_is_received", queued_call),
            ("a_message_can_carry_a_context_for_good", given_away),
            ("what_can_be_called_only_brings_its_time", calls_only),
        ],
    );
}

/// A passive server that, for each request, says that it is there and waits to be let go on;
/// then calls the next server, if any, and answers.
#[derive(Clone, Copy)]
struct Stage {
    endpoint: Endpoint,
    reply: Reply,
    inside: Notification,
    go_on: Notification,
    tcb: Tcb,
}

impl Stage {
    fn new(fixture: &mut Fixture, next: Option<Endpoint>) -> Result<Self, SetupError> {
        let resources = &mut fixture.process.resources;
        let (endpoint, reply) = (resources.endpoint()?, resources.reply()?);
        let (ready, inside) = (resources.notification()?, resources.notification()?);
        let go_on = resources.notification()?;
        let initial = fixture.context(FULL)?;
        let tcb = fixture.spawn(ThreadParams::new(PRIORITY, initial), move || {
            cap::nb_send_recv(ready, Message::EMPTY, endpoint, reply);
            loop {
                if let Some(next) = next {
                    next.call(Message::EMPTY);
                }
                inside.signal();
                go_on.wait();
                reply.reply_recv(endpoint, Message::new(1, []));
            }
        })?;
        make_passive(ready, tcb, initial)?;
        Ok(Self {
            endpoint,
            reply,
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

    /// Whether `tcb` runs on the client's context, and it alone of all in `others`.
    fn lends_to(&self, tcb: Tcb, others: &[Tcb]) -> bool {
        runs_on(tcb, PRIORITY, self.context)
            && !others
                .iter()
                .any(|&other| runs_on(other, PRIORITY, self.context))
    }
}

/// Decision *calls only*: a passive server is not left with a message and without time.
fn calls_only(fixture: &mut Fixture) -> TestResult {
    let stage = Stage::new(fixture, None)?;
    let rights = Rights::WRITE.union(Rights::GRANT_REPLY);
    let resources = &mut fixture.process.resources;
    let call = resources.mint_call(stage.endpoint, rights, 7)?;
    call.nb_send(Message::EMPTY);
    call.send(Message::EMPTY);
    fixture.settle();
    ensure_eq!(stage.inside.poll(), 0);
    let client = Client::new(fixture, call)?;
    stage.inside.wait();
    ensure!(client.lends_to(stage.tcb, &[client.tcb]));
    stage.go_on.signal();
    fixture.done.wait();
    ensure_eq!(client.answer.load(Relaxed), 0x101);
    ensure!(client.lends_to(client.tcb, &[stage.tcb]));
    Ok(())
}

fn reply_sent(fixture: &mut Fixture) -> TestResult {
    let stage = Stage::new(fixture, None)?;
    let client = Client::new(fixture, stage.endpoint)?;
    stage.inside.wait();
    ensure!(client.lends_to(stage.tcb, &[client.tcb]), "not lent");
    stage.go_on.signal();
    fixture.done.wait();
    ensure!(client.lends_to(client.tcb, &[stage.tcb]), "not returned");
    ensure_eq!(client.answer.load(Relaxed), 0x101);
    Ok(())
}

fn top_deleted(fixture: &mut Fixture) -> TestResult {
    let stage = Stage::new(fixture, None)?;
    let client = Client::new(fixture, stage.endpoint)?;
    stage.inside.wait();
    fixture.process.resources.delete(stage.reply)?;
    ensure!(client.lends_to(client.tcb, &[stage.tcb]), "not returned");
    // The client is inactive, not answered; the server has nothing to run on.
    stage.go_on.signal();
    fixture.settle();
    ensure_eq!(client.answer.load(Relaxed), 0);
    Ok(())
}

fn chain(fixture: &mut Fixture) -> TestResult {
    let last = Stage::new(fixture, None)?;
    let first = Stage::new(fixture, Some(last.endpoint))?;
    let client = Client::new(fixture, first.endpoint)?;
    last.inside.wait();
    ensure!(client.lends_to(last.tcb, &[first.tcb, client.tcb]));
    last.go_on.signal();
    first.inside.wait();
    ensure!(client.lends_to(first.tcb, &[last.tcb, client.tcb]));
    first.go_on.signal();
    fixture.done.wait();
    ensure!(client.lends_to(client.tcb, &[last.tcb, first.tcb]));
    Ok(())
}

/// Without the reply object in the middle, what is below can no longer reach the context; the
/// server in the middle is answered and gets it.
fn middle_deleted(fixture: &mut Fixture) -> TestResult {
    let last = Stage::new(fixture, None)?;
    let first = Stage::new(fixture, Some(last.endpoint))?;
    let client = Client::new(fixture, first.endpoint)?;
    last.inside.wait();
    fixture.process.resources.delete(first.reply)?;
    ensure!(client.lends_to(last.tcb, &[first.tcb, client.tcb]));
    last.go_on.signal();
    first.inside.wait();
    ensure!(client.lends_to(first.tcb, &[last.tcb, client.tcb]));
    first.go_on.signal();
    fixture.settle();
    ensure_eq!(client.answer.load(Relaxed), 0);
    ensure!(!runs_on(client.tcb, PRIORITY, client.context));
    Ok(())
}

fn server_died(fixture: &mut Fixture) -> TestResult {
    let stage = Stage::new(fixture, None)?;
    let client = Client::new(fixture, stage.endpoint)?;
    stage.inside.wait();
    fixture.process.resources.delete(stage.tcb)?;
    fixture.settle();
    ensure_eq!(client.answer.load(Relaxed), 0);
    stage.reply.send(Message::new(2, []));
    fixture.done.wait();
    ensure_eq!(client.answer.load(Relaxed), 0x102);
    ensure!(runs_on(client.tcb, PRIORITY, client.context));
    Ok(())
}

fn active_server(fixture: &mut Fixture) -> TestResult {
    let stage = Stage::new(fixture, None)?;
    let own = fixture.context(FULL)?;
    own.bind(stage.tcb)?;
    let client = Client::new(fixture, stage.endpoint)?;
    stage.inside.wait();
    ensure!(client.lends_to(client.tcb, &[stage.tcb]));
    ensure!(runs_on(stage.tcb, PRIORITY, own));
    stage.go_on.signal();
    fixture.done.wait();
    ensure!(client.lends_to(client.tcb, &[stage.tcb]));
    Ok(())
}

/// The receiver waits without a reply object: the caller becomes inactive for good, and the
/// receiver cannot run (ABI 04, section 7.3).
fn no_reply(fixture: &mut Fixture) -> TestResult {
    let endpoint = fixture.process.resources.endpoint()?;
    let received: &AtomicU64 = shared();
    let initial = fixture.context(FULL)?;
    let receiver = fixture.spawn(ThreadParams::new(PRIORITY, initial), move || {
        endpoint.wait();
        received.store(1, Relaxed);
    })?;
    fixture.settle();
    initial.unbind_tcb(receiver)?;
    let client = Client::new(fixture, endpoint)?;
    fixture.settle();
    ensure_eq!(
        (received.load(Relaxed), client.answer.load(Relaxed)),
        (0, 0)
    );
    ensure!(client.lends_to(client.tcb, &[receiver]));
    initial.bind(receiver)?;
    fixture.settle();
    ensure_eq!(received.load(Relaxed), 1);
    Ok(())
}

/// Two clients, one server: the second waits in the queue with its own context, and lends it
/// when the server takes it.
fn queued_call(fixture: &mut Fixture) -> TestResult {
    let stage = Stage::new(fixture, None)?;
    let first = Client::new(fixture, stage.endpoint)?;
    stage.inside.wait();
    let second = Client::new(fixture, stage.endpoint)?;
    fixture.settle();
    ensure!(first.lends_to(stage.tcb, &[first.tcb, second.tcb]));
    ensure!(second.lends_to(second.tcb, &[first.tcb, stage.tcb]));
    stage.go_on.signal();
    stage.inside.wait();
    ensure!(first.lends_to(first.tcb, &[second.tcb, stage.tcb]));
    ensure!(second.lends_to(stage.tcb, &[first.tcb, second.tcb]));
    stage.go_on.signal();
    fixture.settle();
    ensure!(second.lends_to(second.tcb, &[first.tcb, stage.tcb]));
    Ok(())
}

/// NBSendWait to a passive receiver hands the sender's context over, without a way back.
fn given_away(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let (endpoint, never) = (resources.endpoint()?, resources.notification()?);
    let received: &AtomicU64 = shared();
    let initial = fixture.context(FULL)?;
    let receiver = fixture.spawn(ThreadParams::new(PRIORITY, initial), move || {
        received.store(endpoint.wait().message.label(), Relaxed);
    })?;
    fixture.settle();
    initial.unbind_tcb(receiver)?;
    let context = fixture.context(FULL)?;
    let sender = fixture.spawn(ThreadParams::new(PRIORITY, context), move || {
        cap::nb_send_wait(endpoint, Message::new(6, []), never);
    })?;
    fixture.settle();
    ensure_eq!(received.load(Relaxed), 6);
    ensure!(runs_on(receiver, PRIORITY, context));
    ensure!(!runs_on(sender, PRIORITY, context));
    Ok(())
}
