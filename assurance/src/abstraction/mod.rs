//! The whole state of a kernel as a state of the specification.
//!
//! The abstraction is a function: everything that users can ever observe is in its result, and
//! nothing else (which of two trees holds a queue, how far a thread that falls due was moved). Where
//! the kernel has choices that the specification does not speak of, both sides are brought to one
//! form here.

pub mod caps;
mod memory;
mod spaces;
mod threads;
mod time;

use sandglass_kernel::arch::abi::MAX_IRQ;
use sandglass_kernel::arch::Platform;
use sandglass_kernel::Kernel;
use sandglass_model::isa::IrqNumber;
use sandglass_model::state::{Clock, Irq, State};

use crate::census::{Anchor, Census};
use crate::isa;

pub use memory::{windows, Windows};
pub use spaces::{asids, entries};
pub use threads::queued;
pub use time::id as core_id;

/// Why a kernel's state cannot be a state of the specification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotAbstract {
    /// A long operation was preempted: the specification's operations are atomic.
    Unfinished(&'static str),
}

/// The state of `k`.
///
/// # Errors
/// A deletion was preempted, so that there is something that the specification has no word for.
pub fn of(k: &Kernel, anchor: Anchor) -> Result<State, NotAbstract> {
    of_census(&Census::of(k, anchor))
}

/// The state of the kernel that `census` is of.
///
/// # Errors
/// As for [`of`].
pub fn of_census(census: &Census) -> Result<State, NotAbstract> {
    if census.zombies > 0 {
        return Err(NotAbstract::Unfinished("there is a zombie"));
    }
    let k = census.k;
    let dying = census.endpoints.iter().any(|e| !e.at(k).queue().admits())
        || census
            .notifications
            .iter()
            .any(|n| !n.at(k).queue().admits());
    if dying {
        return Err(NotAbstract::Unfinished("an object is being emptied"));
    }
    Ok(State {
        clock: Clock {
            ticks_per_unit: k.machine.ticks_per_unit(),
        },
        caps: caps::capabilities(census),
        cnodes: caps::cnodes(census),
        threads: threads::threads(census),
        endpoints: threads::endpoints(census),
        notifications: threads::notifications(census),
        replies: threads::replies(census),
        contexts: time::contexts(census),
        tables: spaces::tables(census),
        pools: spaces::pools(census),
        asids: spaces::asids(k),
        irqs: irqs(k),
        ports: isa::ports(census),
        domains: time::domains(k),
        cores: time::cores(k),
        executing: time::id(k.core_id()),
        readings: sandglass_model::state::Readings::default(),
        memory: memory::words(census),
        devices: isa::devices(k),
    })
}

fn irqs(k: &Kernel) -> std::collections::BTreeMap<IrqNumber, Irq> {
    (0..=MAX_IRQ as IrqNumber)
        .filter_map(|irq| Some((irq, isa::irq(k.irqs.inspect(irq).line?))))
        .collect()
}
