//! One kit for everything that runs the kernel on the hosted machine: its own tests, the lock step, the failed
//! decodes, the fuzz targets, parallel virtual time, and the search for expensive arrangements.
//!
//! * [`boot`]: the root task, a machine that has booted, the root task's first slots.
//! * [`call`]: a system call as a thread makes it, and what the thread is told.
//! * [`isa`]: what is said of the architecture, in words that do not name it.
//! * [`world`]: a kernel whose root task makes objects, threads and their time, and whose threads a test drives:
//!   events, time, who ran when.
//! * [`refills`]: those of a context.
//! * [`service`]: a passive server and its client.
//!
//! What stays with a user of the kit is what it is about: the lock step enters the kernel through its
//! pair, because the specification follows each step; parallel virtual time decides itself which core goes on, and
//! when; the invariants are swept by `sandglass_assurance`, which stands on this kit.

#![forbid(unsafe_code)]

pub mod boot;
pub mod call;
pub mod isa;
pub mod refills;
pub mod service;
pub mod world;
