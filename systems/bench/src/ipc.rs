//! Messages: Call and ReplyRecv, Send and Recv, faults and the answers to them.

use alloc::boxed::Box;
use alloc::vec;

use sandglass::abi::message::MessageInfo;
use sandglass::cap::{Endpoint, Reply, Rights};
use sandglass::server::make_passive;
use sandglass::SetupError;

use crate::lab::{Home, Lab, Role, LONG};
use crate::results::report;
use crate::script::{faulter_resume, Program, Step};

const PRIORITY: u8 = 100;

pub fn measure(lab: &mut Lab) -> Result<(), SetupError> {
    for exchange in [
        Exchange::new("0-passive", 0, Server::Passive),
        Exchange::new("0-passive-calls-only", 0, Server::Passive).calls_only(),
        Exchange::new("0-passive-fpu", 0, Server::Passive).fpu(false, true),
        Exchange::new("0-passive-fpu-both", 0, Server::Passive).fpu(true, true),
        Exchange::new("0-active", 0, Server::Active),
        Exchange::new("10-passive", 10, Server::Passive),
        Exchange::new("10-passive-calls-only", 10, Server::Passive).calls_only(),
        Exchange::new("10-active", 10, Server::Active),
    ] {
        exchange.measure(lab)?;
    }
    send_and_recv(lab)?;
    faults(lab)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Server {
    /// Runs on its client's scheduling context.
    Passive,
    /// Has one of its own.
    Active,
}

/// A client that calls a server of its priority.
#[derive(Clone, Copy)]
struct Exchange {
    name: &'static str,
    /// Words of request and answer.
    words: usize,
    server: Server,
    /// The client can call, and nothing else.
    calls_only: bool,
    client_fpu: bool,
    server_fpu: bool,
}

impl Exchange {
    const fn new(name: &'static str, words: usize, server: Server) -> Self {
        Self {
            name,
            words,
            server,
            calls_only: false,
            client_fpu: false,
            server_fpu: false,
        }
    }

    const fn calls_only(self) -> Self {
        Self {
            calls_only: true,
            ..self
        }
    }

    const fn fpu(self, client_fpu: bool, server_fpu: bool) -> Self {
        Self {
            client_fpu,
            server_fpu,
            ..self
        }
    }

    fn measure(self, lab: &mut Lab) -> Result<(), SetupError> {
        let resources = &mut lab.process.resources;
        // The larger first: so they lie beside each other, in one line, whatever was made before.
        let (reply, endpoint) = (resources.reply()?, resources.endpoint()?);
        let called = match self.calls_only {
            true => {
                let rights = Rights::WRITE.union(Rights::GRANT_REPLY);
                resources.mint_call(endpoint, rights, 0)?
            }
            false => endpoint,
        };
        let ready = resources.notification()?;
        let role = Role::new(PRIORITY, Home::Twin).fpu(self.server_fpu);
        let context = lab.context(LONG)?;
        let (server, serving) = lab.start_script(
            role,
            context,
            vec![Step::ready_recv(ready, endpoint, reply)],
            vec![Step::reply_recv(reply, endpoint, self.words)],
        )?;
        match self.server {
            Server::Passive => make_passive(ready, server, context)?,
            Server::Active => _ = ready.wait(),
        }
        let role = Role::new(PRIORITY, Home::Here).fpu(self.client_fpu);
        let context = lab.context(LONG)?;
        let call = || vec![Step::call(called, self.words)];
        let (client, calling) = lab.start_script(role, context, call(), call())?;
        lab.done.wait();
        client.suspend()?;
        server.suspend()?;
        let (calling, serving) = (calling[0].times(), serving[0].times());
        let overhead = lab.overhead.around_syscall;
        // The client has called once before its first run: its run i is taken by run i of the
        // server, and answered by run i + 1.
        report(&alloc::format!("call-{}", self.name), overhead, |run| {
            (calling.before[run - 1], serving.after[run - 1])
        });
        report(
            &alloc::format!("reply-recv-{}", self.name),
            overhead,
            |run| (serving.before[run], calling.after[run - 1]),
        );
        Ok(())
    }
}

/// A low thread sends to a high one, which waits again; and the same, where that tells somebody first that does not wait.
fn send_and_recv(lab: &mut Lab) -> Result<(), SetupError> {
    let told = lab.process.resources.notification()?;
    let (wakes, waits) = receiver(lab, Step::recv)?;
    let (_, tells) = receiver(lab, |endpoint, reply| {
        Step::ready_recv(told, endpoint, reply)
    })?;
    let overhead = lab.overhead.around_syscall;
    report("send-wake-higher", overhead, wakes);
    report("recv-block", overhead, waits);
    report("nb-send-recv-block", overhead, tells);
    Ok(())
}

/// Readings around an operation in a run.
type Readings = Box<dyn Fn(usize) -> (u64, u64)>;

/// Readings around a Send, and around what the receiver waits with.
fn receiver(
    lab: &mut Lab,
    waits: impl Fn(Endpoint, Reply) -> Step,
) -> Result<(Readings, Readings), SetupError> {
    let endpoint: Endpoint = lab.process.resources.endpoint()?;
    let reply = lab.process.resources.reply()?;
    let (high_context, low_context) = (lab.context(LONG)?, lab.context(LONG)?);
    let (high, receiving) = lab.start_script(
        Role::new(PRIORITY + 1, Home::Twin),
        high_context,
        vec![waits(endpoint, reply)],
        vec![waits(endpoint, reply)],
    )?;
    let (low, sending) = lab.start_script(
        Role::new(PRIORITY, Home::Here),
        low_context,
        vec![Step::send(endpoint)],
        vec![Step::send(endpoint)],
    )?;
    lab.done.wait();
    high.suspend()?;
    low.suspend()?;
    let (receiving, sending) = (receiving[0].times(), sending[0].times());
    // As in an exchange: run i of the sender is received by run i, and run i + 1 waits.
    Ok((
        Box::new(move |run| (sending.before[run - 1], receiving.after[run - 1])),
        Box::new(move |run| (receiving.before[run], sending.after[run - 1])),
    ))
}

/// A thread faults; its handler, of a higher priority and with a context of its own, lets it go
/// on behind the instruction.
fn faults(lab: &mut Lab) -> Result<(), SetupError> {
    let handler = lab.process.resources.endpoint()?;
    let reply = lab.process.resources.reply()?;
    let (handler_context, faulter_context) = (lab.context(LONG)?, lab.context(LONG)?);
    let answer = Step::reply_recv(reply, handler, 1)
        .message(MessageInfo::new(0, 0, 0, 1), [faulter_resume(), 0, 0, 0]);
    let (high, handling) = lab.start_script(
        Role::new(PRIORITY + 1, Home::Twin),
        handler_context,
        vec![Step::recv(handler, reply)],
        vec![answer],
    )?;
    let step: &'static Step = Box::leak(Box::new(Step::readings()));
    let role = Role {
        fault_handler: Some(handler),
        ..Role::new(PRIORITY, Home::Here)
    };
    let argument = core::ptr::from_ref(step) as u64;
    let faulter = lab.thread(role, faulter_context, Program::Faulter, argument)?;
    faulter.resume()?;
    lab.done.wait();
    high.suspend()?;
    faulter.suspend()?;
    let (handling, faulting) = (handling[0].times(), step.times());
    report("fault-to-handler", lab.overhead.around_fault, |run| {
        (faulting.before[run], handling.after[run - 1])
    });
    report("fault-reply", lab.overhead.around_syscall, |run| {
        (handling.before[run], faulting.after[run])
    });
    Ok(())
}
