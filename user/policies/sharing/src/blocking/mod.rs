//! The single-threaded server that blocks (thesis 6.4.2): a device's, whose answers come with an
//! interrupt.
//!
//! "The server can block on the endpoint and wait for the interrupt or further RPC requests. If an
//! interrupt comes in, the server runs the bound notification object's scheduling context to
//! complete the request."
//!
//! A client has as many requests with the server as it has threads. One more, after a thread left a request that
//! it had made (because it was stopped, for example), is answered at once with [`BUSY`]: so each client can have its
//! own, whatever others do.
//!
//! It is passive, and takes a request on its client's context. That stays with the server while the
//! request waits for the device, and pays for what it does meanwhile; a request that comes then
//! lends nothing. When no client's context is there, an interrupt brings its own.

mod requests;

use alloc::format;
use alloc::vec::Vec;
use core::convert::Infallible;

use sandglass::cap::{nb_send_recv, Endpoint, Notification, Reply, SchedContext, Tcb};
use sandglass::{Environment, Error, Message, Received};

use crate::stored::Stored;
pub use requests::{Completion, Requests, Ticket};
use sandglass_description::policy::sharing::REQUESTS;

/// The highest badge with which interrupts arrive: 1 as the launcher has set it, or 0 if a driver has
/// set the handler anew. Clients of a blocking server have higher ones: the builder sees to that.
const INTERRUPT: u64 = 1;

/// Label of the answer to a request that is one too many of its client's.
pub const BUSY: u64 = 0x5_0002;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// It is answered at once.
    Answer(Message),
    /// It will be, at an interrupt.
    Later,
}

/// What a server does with its device.
pub trait Device {
    /// A request arrives. If it is to be answered later, `ticket` says which it is.
    fn request(&mut self, request: Received, ticket: Ticket) -> Outcome;

    /// The device's interrupt came; the device acknowledges it. `complete` answers a request that
    /// waits, which must not be answered again.
    fn interrupt(&mut self, complete: &mut dyn FnMut(Ticket, Message));
}

/// Serves the resource `resource`, whose protocol is `blocking`, for good. `interrupt` is what the
/// device's interrupt signals.
///
/// # Errors
/// The kernel refuses what the description granted.
///
/// # Panics
/// If this component does not serve the resource.
pub fn serve(
    env: &'static Environment,
    resource: &str,
    interrupt: Notification,
    device: &mut impl Device,
) -> Result<Infallible, Error> {
    let tcb: Tcb = env.capability("self.tcb");
    let context: SchedContext = env.capability("self.context");
    let mut clients = Clients::find(env, resource);
    let endpoint = clients.endpoint;
    let first = clients.current();
    let mut received = nb_send_recv(env.ready(), Message::EMPTY, endpoint, first);
    // Now on a client's context: the launcher has taken from this thread what it started on, and
    // that is the interrupt's from here on.
    context.bind_notification(interrupt)?;
    tcb.bind_notification(interrupt)?;
    loop {
        received = if received.badge <= INTERRUPT {
            device.interrupt(&mut |ticket, answer| clients.complete(ticket, answer));
            clients.wait()
        } else if !clients.requests.admits(received.badge) {
            let busy = Message::new(BUSY, []);
            clients.current().reply_recv(endpoint, busy)
        } else {
            let badge = received.badge;
            match device.request(received, clients.requests.current()) {
                Outcome::Answer(answer) => clients.current().reply_recv(endpoint, answer),
                Outcome::Later => {
                    clients.requests.keep(badge);
                    clients.wait()
                }
            }
        };
    }
}

/// The clients of a blocking server.
struct Clients {
    endpoint: Endpoint,
    /// By ticket: one for each thread of a client, and one to receive with.
    replies: Vec<Reply>,
    requests: Requests,
    /// The answer with which the server loses its context, if there is one.
    last_answer: Stored,
}

impl Clients {
    fn find(env: &Environment, resource: &str) -> Self {
        let mut replies = alloc::vec![env.capability(&format!("{resource}.reply"))];
        let another = |n| env.find_capability::<Reply>(&format!("{resource}.reply.{n}"));
        replies.extend((1u32..).map_while(another));
        let prefix = format!("{resource}.{REQUESTS}.");
        let limit = |(name, value): (&str, u64)| {
            let badge = name.strip_prefix(&prefix)?.parse().ok()?;
            Some((badge, value as usize))
        };
        let limits = env.parameters().filter_map(limit).collect();
        Self {
            endpoint: env.capability(resource),
            requests: Requests::new(replies.len(), limits),
            replies,
            last_answer: Stored::default(),
        }
    }

    fn reply(&self, ticket: Ticket) -> Reply {
        self.replies[ticket.number()]
    }

    /// With which the server receives.
    fn current(&self) -> Reply {
        self.reply(self.requests.current())
    }

    fn complete(&mut self, ticket: Ticket, answer: Message) {
        match self.requests.complete(ticket) {
            Completion::Now => self.reply(ticket).send(answer),
            Completion::WithWait => self.last_answer.store(answer),
            Completion::Nobody => {}
        }
    }

    /// Waits for a request or an interrupt, and gives the lender its answer and its context, in one
    /// system call: without a context there is no second.
    fn wait(&mut self) -> Received {
        let last = self.requests.take_last();
        let current = self.current();
        let Some(ticket) = last else {
            return self.endpoint.recv(current);
        };
        let answer = self.last_answer.message();
        nb_send_recv(self.reply(ticket), answer, self.endpoint, current)
    }
}
