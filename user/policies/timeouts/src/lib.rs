//! What happens when a client's budget runs out in a shared passive server (thesis 6.4.2 and
//! 8.3.3): the server is rolled back, reset, or helped; the client gets a longer budget, or is
//! suspended. Which of these, the system's description says for each server and each client, in
//! a table `[[timeout-policy]]`.
//!
//! A handler thread is a few lines of the server's `main`, before it serves:
//!
//! ```text
//! let handler = Handler::new(env, "server");
//! let ready = env.capability("handler.ready");
//! env.thread("handler").prepare(move || handler.serve(ready, answers, |_, event| ...));
//! ```
//!
//! where `answers` is an [`Answers`]: what clients are told, which only the server can know.
//!
//! [`decide`] has the decisions, without the kernel; [`handler`] carries them out.

#![cfg_attr(not(test), no_std)]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

pub mod decide;
pub mod handler;

pub use handler::{Action, Answers, Event, Handler, TIMED_OUT};
