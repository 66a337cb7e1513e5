//! 04, section 7.5 and the reply stack: what becomes of a lent context when a part of the chain goes.

use super::kit::{active, passive};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "04/7.4/replies-return-the-context-step-by-step",
        undisturbed,
    ),
    check(
        "04/7.4/a-reply-to-the-top-returns-it-to-that-caller",
        reply_top,
    ),
    check("04/7.4/a-reply-to-the-middle-cuts-the-stack", reply_middle),
    check("04/7.4/a-reply-to-the-base-returns-nothing", reply_base),
    check("04/7.5/a-deleted-top-returns-the-context", delete_top),
    check("04/7.5/a-deleted-middle-cuts-the-stack", delete_middle),
    check("04/7.5/a-deleted-base-returns-nothing", delete_base),
    check(
        "04/7.5/a-caller-at-the-top-that-goes-loses-the-context",
        caller_goes_top,
    ),
    check(
        "04/7.5/a-caller-in-the-middle-that-goes-cuts-the-stack",
        caller_goes_middle,
    ),
    check(
        "04/7.5/a-caller-at-the-base-that-goes-loses-the-context",
        caller_goes_base,
    ),
    check("04/7.5/a-resumed-caller-calls-again", resumed_caller),
    check(
        "04/7.5/a-deleted-context-is-returned-to-nobody",
        context_deleted,
    ),
    check(
        "04/7.5/an-unbound-context-is-returned-to-nobody",
        context_unbound,
    ),
    check("04/5.5/an-unbound-server-keeps-the-stack", server_unbound),
    check("04/7.5/a-deleted-server-leaves-the-stack", server_deleted),
    check(
        "04/7.5/a-suspended-server-keeps-the-context",
        server_suspended,
    ),
    check("04/7.5/an-aborted-fault-is-forgotten", aborted_fault),
    check(
        "04/7.5/a-deleted-reply-object-ends-a-receive",
        delete_while_receiving,
    ),
    check(
        "04/7.5/a-reused-reply-object-ends-a-receive",
        reuse_while_receiving,
    ),
];

/// A client calls server 1, which calls server 2, which calls server 3, which waits: the three
/// servers are passive, so the client's context is with server 3, and its stack is, from the top,
/// the reply objects 3, 2 and 1. Each thread notes its number when it goes on: 4 server 3, 3
/// server 2, 2 server 1, 1 the client.
struct Chain {
    trace: &'static Trace,
    context: SchedContext,
    client: Tcb,
    servers: [Tcb; 3],
    replies: [Reply; 3],
    /// Lets server 3 go on.
    go: Notification,
}

fn chain(f: &mut Fixture) -> Result<Chain, Failure> {
    let (trace, go) = (Trace::leak(), f.notification()?);
    let endpoints = [f.endpoint()?, f.endpoint()?, f.endpoint()?];
    let replies = [f.reply()?, f.reply()?, f.reply()?];
    let mut servers = [f.me; 3];
    for i in 0..3 {
        let (endpoint, reply) = (endpoints[i], replies[i]);
        let next = endpoints.get(i + 1).copied();
        servers[i] = passive(f, 120, move || {
            endpoint.recv(reply);
            match next {
                Some(next) => {
                    next.call(Message::EMPTY);
                }
                None => {
                    go.wait();
                }
            }
            trace.note(i as u64 + 2);
            reply.send(Message::EMPTY);
        })?
        .0;
    }
    let [first, ..] = endpoints;
    let (client, context) = active(f, 100, move || {
        first.call(Message::EMPTY);
        trace.note(1);
    })?;
    f.settle()?;
    ensure_eq!(trace.events(), []);
    Ok(Chain {
        trace,
        context,
        client,
        servers,
        replies,
        go,
    })
}

impl Chain {
    /// Lets everybody run; fails unless these have gone on by now.
    fn expect(&self, f: &mut Fixture, events: &[u64]) -> TestResult {
        f.settle()?;
        ensure_eq!(self.trace.events(), events);
        Ok(())
    }

    /// As [`Self::expect`], after server 3 was told to go on.
    fn go(&self, f: &mut Fixture, events: &[u64]) -> TestResult {
        self.go.signal();
        self.expect(f, events)
    }

    /// Fails unless this thread, which waits, has the client's context. Consumes its parameters.
    fn ensure_with(&self, tcb: Tcb, priority: u8) -> TestResult {
        ensure!(
            runs_on(tcb, priority, self.context),
            "the context is elsewhere"
        );
        Ok(())
    }

    /// Gives a thread without a context another.
    fn help(&self, f: &mut Fixture, tcb: Tcb) -> TestResult {
        f.context(FULL)?.bind(tcb)?;
        Ok(())
    }
}

fn undisturbed(f: &mut Fixture) -> TestResult {
    let chain = chain(f)?;
    chain.ensure_with(chain.servers[2], 120)?;
    chain.go(f, &[4, 3, 2, 1])?;
    chain.ensure_with(chain.client, 100)
}

/// Server 3 has none then.
fn reply_top(f: &mut Fixture) -> TestResult {
    let chain = chain(f)?;
    chain.replies[2].send(Message::EMPTY);
    chain.expect(f, &[3, 2, 1])?;
    chain.ensure_with(chain.client, 100)?;
    chain.go(f, &[3, 2, 1])?;
    chain.help(f, chain.servers[2])?;
    chain.expect(f, &[3, 2, 1, 4])
}

/// Server 1 goes on without a context; the context comes back as far as server 2.
fn reply_middle(f: &mut Fixture) -> TestResult {
    let chain = chain(f)?;
    chain.replies[1].send(Message::EMPTY);
    chain.expect(f, &[])?;
    chain.go(f, &[4, 3])?;
    chain.ensure_with(chain.servers[1], 120)?;
    // Below the cut nobody has a context to return.
    chain.help(f, chain.servers[0])?;
    chain.expect(f, &[4, 3, 2])?;
    chain.help(f, chain.client)?;
    chain.expect(f, &[4, 3, 2, 1])
}

/// The client goes on without a context; the context comes back as far as server 1.
fn reply_base(f: &mut Fixture) -> TestResult {
    let chain = chain(f)?;
    chain.replies[0].send(Message::EMPTY);
    chain.expect(f, &[])?;
    chain.go(f, &[4, 3, 2])?;
    chain.ensure_with(chain.servers[0], 120)?;
    chain.help(f, chain.client)?;
    chain.expect(f, &[4, 3, 2, 1])
}

/// To server 2, which is inactive; what is below stays.
fn delete_top(f: &mut Fixture) -> TestResult {
    let chain = chain(f)?;
    f.slot_of(chain.replies[2]).delete()?;
    chain.go(f, &[])?;
    chain.ensure_with(chain.servers[1], 120)?;
    chain.replies[1].send(Message::EMPTY);
    chain.expect(f, &[2, 1])?;
    chain.ensure_with(chain.client, 100)
}

fn delete_middle(f: &mut Fixture) -> TestResult {
    let chain = chain(f)?;
    f.slot_of(chain.replies[1]).delete()?;
    chain.go(f, &[4, 3])?;
    chain.ensure_with(chain.servers[1], 120)?;
    // Server 1 is inactive, and the client still waits for it.
    chain.help(f, chain.servers[0])?;
    chain.expect(f, &[4, 3])?;
    chain.replies[0].send(Message::EMPTY);
    chain.help(f, chain.client)?;
    chain.expect(f, &[4, 3, 1])
}

fn delete_base(f: &mut Fixture) -> TestResult {
    let chain = chain(f)?;
    f.slot_of(chain.replies[0]).delete()?;
    chain.go(f, &[4, 3, 2])?;
    chain.ensure_with(chain.servers[0], 120)?;
    chain.help(f, chain.client)?;
    chain.expect(f, &[4, 3, 2])
}

/// Ways in which a thread that waits for a reply can go.
#[derive(Clone, Copy, Debug)]
enum Going {
    Suspended,
    Deleted,
    /// Its reply object is used in another receive.
    Reused,
}

const GOINGS: [Going; 3] = [Going::Suspended, Going::Deleted, Going::Reused];

impl Going {
    fn happen(self, f: &mut Fixture, caller: Tcb, reply: Reply) -> TestResult {
        match self {
            Self::Suspended => caller.suspend()?,
            Self::Deleted => f.slot_of(caller).delete()?,
            Self::Reused => {
                f.endpoint()?.nb_recv(reply);
            }
        }
        Ok(())
    }
}

/// Server 3 keeps it, and the stack is empty: the others have nothing to return.
fn caller_goes_top(f: &mut Fixture) -> TestResult {
    for going in GOINGS {
        let chain = chain(f)?;
        going.happen(f, chain.servers[1], chain.replies[2])?;
        chain.go(f, &[4])?;
        chain.ensure_with(chain.servers[2], 120)?;
        chain.replies[1].send(Message::EMPTY);
        chain.expect(f, &[4])?;
        chain.help(f, chain.servers[0])?;
        chain.expect(f, &[4, 2])?;
        chain.help(f, chain.client)?;
        chain.expect(f, &[4, 2, 1])?;
    }
    Ok(())
}

fn caller_goes_middle(f: &mut Fixture) -> TestResult {
    for going in GOINGS {
        let chain = chain(f)?;
        going.happen(f, chain.servers[0], chain.replies[1])?;
        chain.go(f, &[4, 3])?;
        chain.ensure_with(chain.servers[1], 120)?;
        chain.replies[0].send(Message::EMPTY);
        chain.expect(f, &[4, 3])?;
        chain.help(f, chain.client)?;
        chain.expect(f, &[4, 3, 1])?;
    }
    Ok(())
}

fn caller_goes_base(f: &mut Fixture) -> TestResult {
    for going in GOINGS {
        let chain = chain(f)?;
        going.happen(f, chain.client, chain.replies[0])?;
        chain.go(f, &[4, 3, 2])?;
        chain.ensure_with(chain.servers[0], 120)?;
    }
    Ok(())
}

/// It has no context, and when it gets one it sends anew.
fn resumed_caller(f: &mut Fixture) -> TestResult {
    let (trace, endpoint, reply) = (Trace::leak(), f.endpoint()?, f.reply()?);
    let hold = f.notification()?;
    let (server, _) = passive(f, 120, move || {
        for _ in 0..2 {
            trace.note(endpoint.recv(reply).message.label());
            hold.wait();
        }
        reply.send(Message::EMPTY);
    })?;
    let (client, context) = active(f, 100, move || {
        endpoint.call(Message::new(7, []));
        trace.note(1);
    })?;
    f.settle()?;
    ensure_eq!(trace.events(), [7]);
    client.resume()?;
    f.settle()?;
    ensure!(runs_on(server, 120, context), "the server lost the context");
    let other = f.context(FULL)?;
    other.bind(client)?;
    f.settle()?;
    hold.signal();
    f.settle()?;
    ensure_eq!(trace.events(), [7, 7]);
    hold.signal();
    f.settle()?;
    ensure_eq!(trace.events(), [7, 7, 1]);
    Ok(())
}

/// Server 3 stops, and who is replied to later gets none.
fn context_deleted(f: &mut Fixture) -> TestResult {
    let chain = chain(f)?;
    f.slot_of(chain.context).delete()?;
    chain.go(f, &[])?;
    let mut noted = vec![];
    for (thread, number) in [(2, 4), (1, 3), (0, 2)] {
        chain.help(f, chain.servers[thread])?;
        noted.push(number);
        chain.expect(f, &noted)?;
    }
    chain.help(f, chain.client)?;
    chain.expect(f, &[4, 3, 2, 1])
}

fn context_unbound(f: &mut Fixture) -> TestResult {
    let chain = chain(f)?;
    chain.context.unbind()?;
    chain.go(f, &[])?;
    chain.context.bind(chain.servers[2])?;
    chain.expect(f, &[4])?;
    chain.ensure_with(chain.servers[2], 120)?;
    chain.help(f, chain.servers[1])?;
    chain.expect(f, &[4, 3])
}

/// UnbindObject leaves the stack: on whatever context the server replies, the caller gets its own.
fn server_unbound(f: &mut Fixture) -> TestResult {
    for same in [false, true] {
        let chain = chain(f)?;
        chain.context.unbind_tcb(chain.servers[2])?;
        chain.go(f, &[])?;
        if same {
            chain.context.bind(chain.servers[2])?;
        } else {
            chain.help(f, chain.servers[2])?;
        }
        chain.expect(f, &[4, 3, 2, 1])?;
        chain.ensure_with(chain.client, 100)?;
    }
    Ok(())
}

/// The callers wait on; a reply by another returns the context.
fn server_deleted(f: &mut Fixture) -> TestResult {
    let chain = chain(f)?;
    f.slot_of(chain.servers[2]).delete()?;
    chain.go(f, &[])?;
    chain.replies[2].send(Message::EMPTY);
    chain.expect(f, &[3, 2, 1])?;
    chain.ensure_with(chain.client, 100)
}

fn server_suspended(f: &mut Fixture) -> TestResult {
    let chain = chain(f)?;
    chain.servers[2].suspend()?;
    chain.go(f, &[])?;
    chain.ensure_with(chain.servers[2], 120)?;
    chain.servers[2].resume()?;
    chain.expect(f, &[4, 3, 2, 1])?;
    chain.ensure_with(chain.client, 100)
}

/// A faulter that is suspended and resumed while its handler has not answered executes its
/// instruction again; the answer then finds nobody.
fn aborted_fault(f: &mut Fixture) -> TestResult {
    let (handler, reply) = (f.endpoint()?, f.reply()?);
    let params = ThreadParams {
        fault_handler: Some(handler),
        ..f.active(100)?
    };
    let tcb = f.spawn(params, conformance_kit::arch::stop)?;
    let first = handler.recv(reply).message;
    tcb.suspend()?;
    // Without a pending fault it could not go on by this.
    reply.send(Message::EMPTY);
    f.settle()?;
    ensure_eq!(handler.nb_recv(reply).message.label(), 0);
    tcb.resume()?;
    let second = handler.recv(reply).message;
    ensure_eq!(
        (first.label(), first.word(0)),
        (second.label(), second.word(0))
    );
    Ok(())
}

/// The receiver is inactive: a message for it does not arrive.
fn delete_while_receiving(f: &mut Fixture) -> TestResult {
    let (trace, endpoint, reply) = (Trace::leak(), f.endpoint()?, f.reply()?);
    active(f, 100, move || {
        trace.note(endpoint.recv(reply).message.label())
    })?;
    f.settle()?;
    f.slot_of(reply).delete()?;
    endpoint.nb_send(Message::new(7, []));
    f.settle()?;
    ensure_eq!(trace.events(), []);
    Ok(())
}

fn reuse_while_receiving(f: &mut Fixture) -> TestResult {
    let (trace, endpoint, reply) = (Trace::leak(), f.endpoint()?, f.reply()?);
    let other = f.endpoint()?;
    let (first, _) = active(f, 100, move || {
        trace.note(endpoint.recv(reply).message.label())
    })?;
    f.settle()?;
    active(f, 100, move || {
        trace.note(other.recv(reply).message.label())
    })?;
    f.settle()?;
    endpoint.nb_send(Message::new(7, []));
    other.nb_send(Message::new(8, []));
    f.settle()?;
    ensure_eq!(trace.events(), [8]);
    // Resumed, it receives again.
    first.resume()?;
    f.settle()?;
    endpoint.nb_send(Message::new(7, []));
    f.settle()?;
    ensure_eq!(trace.events(), [8, 7]);
    Ok(())
}
