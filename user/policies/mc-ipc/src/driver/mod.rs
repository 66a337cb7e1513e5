//! A server behind a gate: who does what, generic over how the kernel is entered.
//!
//! A client's *context* is its processor time. It is bound to one of three threads: to the client while it has no request in
//! the gate; to the client's *spinner* while its request waits; to the *server* while it pays for what is in service.
//!
//! | thread | does | runs |
//! | --- | --- | --- |
//! | gate ([`Gate`]) | keeps the protocol, and moves contexts | on time of its own, above all clients |
//! | server ([`serve`]) | the operation | on the context of whoever pays, at the priority above that client's, which is free for that |
//! | spinner ([`spin`]), one for each client | nothing, so that a waiting client's budget drains as long as it would run (the paper's A2, idling); sees that nobody pays, or that who pays is not running, and pays then (bandwidth inheritance) | on its client's context, at its priority |
//! | table ([`keep_table`]), one for each core with slots | tells the gate when slots of table-driven clients may begin and end | on a periodic context, above all clients |
//!
//! **Why no mechanism of the kernel is needed.** What the protocol asks of the scheduler is to run the server whenever a client
//! that waits would run. Binding that client's context to a thread at its priority that does not block makes the scheduler
//! select it exactly then. When the server is preempted, nobody is told. But whoever else waits is being idle at that time,
//! and can look: two looks at the server's registers that are the same, whoever pays, mean that it stands still. The price is that a waiting client finds out [`Timing::poll`] later, at most twice that, and that the server is
//! interrupted by each look.
//!
//! **Servers that call servers.** A server may itself be a client of another gate. That gate moves contexts as if the server had
//! one: what it does with it, it asks of the server's own gate, which has whoever pays there run whichever thread the
//! server's work depends on ([`Target`]): the server; its spinner at the other gate; or the other gate's server. So everybody
//! who waits at the first gate lends their time to the second one's server, through as many gates as there are. A gate asks
//! only the gates of servers that call it, so there is no circle unless the servers call each other in one.
//!
//! A context that its owner destroys, or takes away, cannot be bound any more. Its client counts as one without budget.

mod gate;
mod kernel;
mod sender;
mod server;
mod shared;
mod spinner;
mod table;

pub use crate::marks::Mark;
pub use gate::{Allowance, Client, Gate, Kind, Paid, Setup};
pub use kernel::{
    GateKernel, Gone, Holder, Received, ServerKernel, SpinnerKernel, TableKernel, Work, BUSY, DONE,
    FAULTED, GONE, MALFORMED, NOT_IN_CONTROL, WORDS,
};
pub use sender::{Control, Request, Sender, Signals};
pub use server::{serve, Operation};
pub use shared::{Job, Payer, Shared, Target};
pub use spinner::{spin, Timing};
pub use table::{keep_table, Edge, Table};
