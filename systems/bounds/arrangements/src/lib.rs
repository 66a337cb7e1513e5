//! Hostile arrangements of kernel objects, each described by a list of parameters, and the
//! operation that is measured against them.
//!
//! An arrangement is made with system calls alone, so the same code makes it on the bare kernel,
//! where `./sandglass bounds` counts instructions, and on the hosted one, where a search
//! (`systems/bounds/search`) climbs from arrangement to arrangement: both are a [`Machine`].
//!
//! | file | what |
//! | --- | --- |
//! | [`machine`] | what an arrangement needs of the system that it is made on |
//! | [`parameters`] | the parameters of each operation, their values, how they are written |
//! | `order` | orders: in which priorities and times follow each other |
//! | `workshop` | makes objects, threads and budgets |
//! | `space` | deep capability spaces |
//! | `crowd` | threads, and the states of their budgets |
//! | `invoker` | the thread that does the operation |
//! | `queues` | objects with queues that are emptied |
//! | `queued` | what is done with one of the threads in a queue |
//! | `mixture` | memory with objects of all kinds that is revoked |
//! | `retype` | objects that are made |
//! | `isa` | types of objects that each architecture has of its own |

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;

mod crowd;
mod invoker;
mod isa;
pub mod machine;
mod mixture;
mod order;
pub mod parameters;
mod queued;
mod queues;
mod retype;
mod space;
mod workshop;

pub use machine::{Call, Machine, Program, Refused};
pub use parameters::{Arrangement, Operation};

/// Arrangements that were thought of, one a line; and those that the search found worst, each
/// behind the number of threads for which it was searched.
const THOUGHT_OF: &str = include_str!("../thought-of.txt");
const FOUND: &str = include_str!("../found.txt");

/// Up to so many threads are few: the worst of few and the worst of many differ.
pub const FEW: u64 = 10;

/// All arrangements that are known to be bad for `size` threads.
///
/// # Errors
/// The word of their files that cannot be read.
pub fn known(size: u64) -> Result<Vec<Arrangement>, &'static str> {
    let mut known = Vec::new();
    for line in lines(THOUGHT_OF) {
        known.push(Arrangement::parse(line)?);
    }
    for line in lines(FOUND) {
        let (threads, line) = line.split_once(' ').ok_or(line)?;
        let threads: u64 = threads.parse().map_err(|_| threads)?;
        let found = Arrangement::parse(line)?;
        if (threads <= FEW) == (size <= FEW) && !known.contains(&found) {
            known.push(found);
        }
    }
    Ok(known)
}

/// The lines of a file that are no remarks.
fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Makes `arrangement` of `size` threads, capabilities or objects, and measures its operation. What
/// it made is still there.
///
/// # Errors
/// The kernel refuses a step of it.
pub fn run<M: Machine>(
    machine: &mut M,
    arrangement: &Arrangement,
    size: u64,
) -> Result<(), Refused> {
    match arrangement.operation() {
        Operation::Retype => retype::run(machine, arrangement),
        Operation::Queued => queued::run(machine, arrangement, size),
        Operation::RevokeMixture => mixture::run(machine, arrangement, size),
        Operation::CancelBadgedSends
        | Operation::DeleteSenders
        | Operation::DeleteReceivers
        | Operation::DeleteNotification
        | Operation::RevokeEndpoints => queues::run(machine, arrangement, size),
    }
}
