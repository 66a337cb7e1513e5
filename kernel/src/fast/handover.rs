//! The processor goes from the current thread, which blocks, to one that it has woken.

use crate::mem::Ref;
use crate::object::{SchedContext, Tcb};
use crate::View;

/// On whose time the woken thread runs.
#[derive(Clone, Copy)]
pub enum Payer {
    /// On that of the current thread, which it gets.
    Lent(Ref<SchedContext>),
    /// On its own.
    Own(Ref<SchedContext>),
}

/// Whether `woken`, which is blocked, is the next to run on this core if the current thread blocks: the time has come
/// for nobody else.
#[inline(always)]
pub fn is_next(k: &View, woken: Ref<Tcb>) -> bool {
    k.is_here(woken) && !k.core().ready.has_above(woken.at(k).priority())
}

/// `woken` has a context of its own, which lets it run: not one of those that change when a thread wakes.
#[inline(always)]
pub fn runs_on(k: &View, own: Ref<SchedContext>) -> bool {
    own.at(k).is_active() && !own.at(k).is_sporadic()
}
