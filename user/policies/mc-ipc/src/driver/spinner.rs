//! Spinners: the time of clients that wait passes, and the server gets on.

use super::kernel::SpinnerKernel;
use super::sender::Request;
use super::shared::{Shared, Target};
use crate::protocol::ClientId;

/// How long spinners wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Ticks from one look at the server's registers to the next. Each interrupts the server.
    pub poll: u64,
    /// Pauses of a spinner, before a request is answered that is beyond its client's allowance: of the client's own time, so
    /// that nobody can have the gate work for less than that.
    pub toll: u64,
}

/// What a spinner saw of whoever does the server's work.
#[derive(Clone, Copy)]
struct Seen {
    target: Target,
    value: u64,
    at: u64,
}

/// What a spinner's thread does, for good: as long as it has its client's context. `core` is its client's cluster; `None` for
/// a client that is another gate's server: that is a cluster of its own, wherever it runs.
pub async fn spin<K: SpinnerKernel>(
    kernel: &mut K,
    shared: &Shared,
    client: ClientId,
    core: Option<usize>,
    timing: Timing,
) -> ! {
    let mut seen: Option<Seen> = None;
    let mut core = core;
    loop {
        if let (Some(here), Some(home)) = (kernel.core(), &mut core) {
            if here != *home {
                *home = here;
                kernel.ask(Request::Moved.label(), here as u64).await;
            }
        }
        if shared.take_toll(client) {
            for _ in 0..timing.toll {
                kernel.pause().await;
            }
            kernel.ask(Request::TollPaid.label(), 0).await;
        }
        if shared.is_exhausted(client) {
            kernel.ask(Request::Replenished.label(), 0).await;
            continue;
        }
        let payer = shared.payer();
        let stands_still = payer.is_active
            && match payer.client {
                None => true,
                Some(payer_itself) if payer_itself == client => false,
                Some(_) => is_standing(kernel, shared, &mut seen, timing).await,
            };
        if stands_still {
            seen = None;
            kernel.ask(Request::Take.label(), 0).await;
        } else {
            kernel.pause().await;
        }
    }
}

/// Whether the server has stood still since the last look. Who paid meanwhile does not matter: there may be two that take it
/// from each other all the time, neither of which gets to run it.
async fn is_standing<K: SpinnerKernel>(
    kernel: &mut K,
    shared: &Shared,
    seen: &mut Option<Seen>,
    timing: Timing,
) -> bool {
    let target = shared.target();
    let last = seen.filter(|last| last.target == target);
    if last.is_some_and(|last| kernel.now().saturating_sub(last.at) < timing.poll) {
        return false;
    }
    let value = kernel.look_at(target).await;
    let at = kernel.now();
    *seen = Some(Seen { target, value, at });
    last.is_some_and(|last| last.value == value)
}
