//! Resource-sharing protocols: how long does a task of high priority wait for one of low priority
//! that is in the middle of something (thesis 2.3, 6.2 and 6.4.2)?
//!
//! | who | module |
//! | --- | --- |
//! | decides which request is served next, with whose priority and budget (pure) | [`arbiter`] |
//! | does it: the proxy of Figure 6.6 | [`proxy`] |
//! | serves a resource | [`server`] |
//! | serves it with several threads, as migrating threads have it | [`workers`] |
//! | the same, with threads that are made when all are busy | [`spawning`] |
//! | serves a device, single-threaded, several requests at a time | [`blocking`] |
//!
//! Which protocol a resource has is written in the system's description. Clients and servers are
//! the same under all of them: a client calls its endpoint.

#![cfg_attr(not(test), no_std)]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

pub mod arbiter;
pub mod blocking;
pub mod proxy;
pub mod server;
pub mod spawning;
mod stored;
pub mod workers;

pub use server::serve;
