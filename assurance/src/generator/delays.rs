//! Time inside events: how long the kernel takes, and long operations while it does.

use fastrand::Rng;
use sandglass_abi::invocation as label;
use sandglass_model::state::{Cap, State};

use super::{Generator, Invocation, View};
use crate::operations::OPERATIONS;
use crate::script::Action;

/// The longest that a step takes, in ticks. A machine that stands still for many budgets is another matter:
/// what it owes is forgiven from 256 refills on (docs/src/reference/abi.md, 13).
const LONGEST: u64 = 4_000_000;

impl Generator {
    /// How long the kernel takes from now on: mostly some microseconds or nothing, now and then so
    /// long that something happens meanwhile, as far as is known: a budget ends, a release comes.
    pub(super) fn slow_kernel(&mut self, state: &State) -> Action {
        self.is_slow = true;
        if self.chance(50) {
            let quick = 1 + self.rng.usize(0..6) / 4;
            let mut delays = vec![0; quick];
            let most = self.interesting_time(state).min(LONGEST);
            delays.push(match self.rest_of_budget(state) {
                Some(rest) if self.chance(70) => rest,
                _ => most,
            });
            return Action::Delays(delays);
        }
        let count = self.rng.usize(0..6);
        let delay = |rng: &mut Rng| match rng.u32(0..10) {
            0..4 => 0,
            4..7 => rng.u64(0..3_000),
            7 | 8 => rng.u64(0..30_000),
            _ => rng.u64(0..400_000),
        };
        Action::Delays((0..count).map(|_| delay(&mut self.rng)).collect())
    }

    /// What is left of the budget of who runs, or a little less, as if the next event were to begin now.
    pub(super) fn rest_of_budget(&mut self, state: &State) -> Option<u64> {
        const PATH: u64 = 700;
        let core = state.core();
        let context = core.context.and_then(|id| state.contexts.get(&id))?;
        let head = context.refills.first()?.amount;
        let rest = head.checked_sub(core.consumed)?.checked_sub(PATH)?;
        let least = state.clock.min_budget();
        let ends = rest.saturating_sub(self.rng.u64(0..2 * least));
        Some(ends.min(LONGEST))
    }

    /// Something that takes many steps, maybe, if it has just been said that steps take time.
    pub(super) fn while_slow(&mut self, view: &View) -> Option<Action> {
        if !std::mem::take(&mut self.is_slow) || self.chance(40) {
            return None;
        }
        let is_large = |cap: &Cap| {
            matches!(
                cap,
                Cap::Thread(_)
                    | Cap::CNode { .. }
                    | Cap::Endpoint { .. }
                    | Cap::Notification { .. }
            )
        };
        if self.chance(25) {
            return self.retype_used(view);
        }
        let is_thread = |cap: &Cap| matches!(cap, Cap::Thread(_));
        let target = match self.pick(view, is_thread) {
            Some(thread) if self.chance(50) => thread,
            _ => self.pick(view, is_large)?,
        };
        let slot = view.entries.iter().find(|entry| entry.cptr == target)?.slot;
        let node = view.nodes.iter().copied().find_map(|node| match slot {
            sandglass_model::state::SlotId::CNode(object, i) if node.object == object => {
                Some((node, i))
            }
            _ => None,
        });
        let (node, i) = node?;
        let (index, depth) = node.address(i);
        let label = match self.rng.u32(0..3) {
            _ if matches!(
                view.entries.iter().find(|it| it.cptr == target)?.cap,
                Cap::Untyped { .. }
            ) =>
            {
                label::CNODE_REVOKE
            }
            0 => label::CNODE_REVOKE,
            _ => label::CNODE_DELETE,
        };
        let invocation = Invocation {
            cap: node.cptr,
            label,
            words: vec![index, depth],
            caps: vec![],
        };
        Some(self.send(view, invocation))
    }

    /// Memory that was used is to become objects: it is zeroed first, which takes long.
    fn retype_used(&mut self, view: &View) -> Option<Action> {
        let retype = OPERATIONS
            .iter()
            .find(|it| it.label == label::UNTYPED_RETYPE)?;
        let is_used = |cap: &Cap| {
            matches!(
                cap,
                Cap::Untyped {
                    bits: ..16,
                    device: false,
                    watermark: 1..,
                    ..
                }
            )
        };
        let cap = self.pick(view, is_used)?;
        let (words, caps) = self.arguments(view, retype, cap)?;
        let invocation = Invocation {
            cap,
            label: retype.label,
            words,
            caps,
        };
        Some(self.send(view, invocation))
    }
}
