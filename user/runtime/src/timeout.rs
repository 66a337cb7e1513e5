//! Help for timeout handlers: sending a passive server back to where it waited (thesis 5.2.7 and
//! 8.3.2).
//!
//! When a client's budget runs out inside a shared passive server, the kernel tells the server's
//! timeout handler. A handler that rolls back answers the client in the server's place, which
//! returns the client's scheduling context; writes the server's registers as they were when it
//! waited for its first request; and lets the server run on a context of its own until it waits
//! again. What to tell the client is the handler's policy.
//!
//! And help for those who handle the timeouts of clients: [`go_on`].

use crate::cap::{Notification, Reply, SchedContext, Tcb};
use crate::context::UserContext;
use crate::error::Result;
use crate::message::Message;
use crate::{server, sys};

/// The registers of a server that waits in the first step of
/// [`Service::serve`](crate::server::Service::serve).
///
/// The program counter is that of the system call itself, so restoring them repeats it: the
/// server signals that it is ready and waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    context: UserContext,
}

impl Checkpoint {
    /// Reads the registers of `server`, which must wait there: right after
    /// [`make_passive`](crate::server::make_passive), before it gets its first request.
    pub fn take(server: Tcb) -> Result<Self> {
        // RSP is stale in a thread that is inside of a system call (ABI 01, section 4.1), and does not
        // matter: the system-call stub restores it from r14.
        Ok(Self {
            context: server.read_registers(false)?,
        })
    }

    /// Writes the registers back. The server does not run yet.
    pub fn restore(&self, server: Tcb) -> Result<()> {
        server.write_registers(&self.context, false)
    }
}

/// What to reply to a timeout fault of `thread` so that it continues where it is; the reply has to be sent
/// before the thread runs again.
///
/// A thread whose call is answered when its context has no time, say because a server was rolled back
/// that had used it up, has its timeout fault at the call (ABI 04, section 7.4). An empty reply would repeat
/// the call (05, section 6) with the registers of the answer: it would invoke the null capability, and the
/// answer would be lost. So this reply moves the thread past its call.
///
/// It can be told for calls of this runtime only; for others the reply is the empty one, which is
/// right wherever else a budget ends. For a thread that calls nothing except the kernel and those
/// that refill its context before they answer, no reply but [`Message::EMPTY`] is needed.
///
/// # Errors
/// The thread is the calling one, or is gone.
pub fn go_on(thread: Tcb) -> Result<Message> {
    let context = thread.read_registers(false)?;
    Ok(if sys::is_answered(&context) {
        Message::new(0, [context.ip() + sys::INSTRUCTION])
    } else {
        Message::EMPTY
    })
}

/// What it takes to roll a passive server back.
#[derive(Clone, Copy, Debug)]
pub struct Rollback {
    pub server: Tcb,
    pub checkpoint: Checkpoint,
    /// The server's reply object, which stands for its client.
    pub client: Reply,
    /// What the server signals when it waits again.
    pub ready: Notification,
    /// What the server runs on until then. It must have budget when it is needed: a round-robin
    /// context always has.
    pub context: SchedContext,
}

impl Rollback {
    /// Answers the client with `answer` and sends the server back to its checkpoint. `fault` is
    /// the reply object with which the timeout was received.
    ///
    /// The handler needs a priority above the client's, lest the client calls again before the
    /// server waits; that call would find the server on `context` and simply wait its turn.
    ///
    /// # Errors
    /// Those of the invocations; the server may then be left without a scheduling context.
    pub fn perform(&self, fault: Reply, answer: Message) -> Result<()> {
        // Returns the scheduling context too, so that another can be bound.
        self.client.send(answer);
        self.checkpoint.restore(self.server)?;
        self.context.bind(self.server)?;
        // An empty answer with label 0 makes the server continue, at the restored registers.
        fault.send(Message::EMPTY);
        server::make_passive(self.ready, self.server, self.context)
    }
}
