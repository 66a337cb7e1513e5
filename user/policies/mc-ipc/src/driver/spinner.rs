//! Spinners: the time of clients that wait passes, and the server gets on.

use super::kernel::SpinnerKernel;
use super::sender::Request;
use super::shared::{Payer, Shared};
use crate::protocol::ClientId;

/// How often spinners look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Ticks from one look at the server's registers to the next. Each interrupts the server.
    pub poll: u64,
}

/// What a spinner saw of the server.
#[derive(Clone, Copy)]
struct Seen {
    payer: Payer,
    value: u64,
    at: u64,
}

/// What a spinner's thread does, for good: as long as it has its client's context. `core` is its client's cluster.
pub async fn spin<K: SpinnerKernel>(
    kernel: &mut K,
    shared: &Shared,
    client: ClientId,
    core: usize,
    timing: Timing,
) -> ! {
    let mut seen: Option<Seen> = None;
    let mut core = core;
    loop {
        if let Some(here) = kernel.core().filter(|&here| here != core) {
            core = here;
            kernel.ask(Request::Moved.label(), here as u64).await;
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
                Some(_) => is_standing(kernel, &mut seen, payer, timing).await,
            };
        if stands_still {
            seen = None;
            kernel.ask(Request::Take.label(), payer.raw()).await;
        } else {
            kernel.pause().await;
        }
    }
}

/// Whether the server has stood still since the last look, with the same client paying.
async fn is_standing<K: SpinnerKernel>(
    kernel: &mut K,
    seen: &mut Option<Seen>,
    payer: Payer,
    timing: Timing,
) -> bool {
    let last = seen.filter(|last| last.payer == payer);
    if last.is_some_and(|last| kernel.now() - last.at < timing.poll) {
        return false;
    }
    let value = kernel.look_at_server().await;
    let at = kernel.now();
    *seen = Some(Seen { payer, value, at });
    last.is_some_and(|last| last.value == value)
}
