//! Gates of resource servers: who is served next, when clients of different criticality on several cores call one server
//! and do not trust each other (Brandenburg, *A Synchronous IPC Protocol for Predictable Access to Shared Resources in
//! Mixed-Criticality Systems*).
//!
//! - [`mc_ipc`]: the paper's protocol. A client's delay has a bound that holds whatever the others do;
//! - [`simple`]: FIFO and priority queues, which have one only as long as nobody fails;
//! - [`bound`]: what a request may cost its client, and the budgets that follow.
//!
//! All of them are state machines without a system call ([`Protocol`]). They know clusters: cores of which any may serve
//! any client of the cluster. With one core in each, which is partitioned scheduling, a cluster is a core.
//!
//! [`driver`] is what a server's threads do with one of them, whatever machine they run on; [`component`] are these threads in
//! a described system, and [`client`] is what calls them. [`courier`] is a client that calls for threads whose time is not their
//! own, through [`mail`]. [`marks`] are what a gate leaves in traces, and what traces are
//! checked by.

#![cfg_attr(not(test), no_std)]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

pub mod bound;
pub mod client;
pub mod component;
pub mod courier;
pub mod driver;
mod list;
pub mod mail;
pub mod marks;
pub mod mc_ipc;
pub mod protocol;
pub mod simple;

pub use mc_ipc::McIpc;
pub use protocol::{ClientId, Exhausted, Present, Protocol, Standing};
pub use simple::{Fifo, Prio};
