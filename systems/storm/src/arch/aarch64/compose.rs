//! Arguments of the invocations that only this architecture has.

use sandglass::abi::invocation::aarch64::*;
use sandglass::abi::invocation::IRQ_CONTROL_GET;
use sandglass::SetupError;

use crate::actor::compose::{Composer, Draft, Effect};
use crate::arena::Builder;
use crate::catalogue::Kind;

/// Interrupts that the storm asks for, by their numbers: private ones, those of devices, and numbers that are none.
const INTERRUPTS: u64 = 0xa4;
/// That of the physical timer, which any thread of the storm can set.
const TIMER: u64 = 30;
const PAGE: u64 = 0x1000;

/// Gives the storm what only this architecture has: it makes that itself.
pub fn lend(_builder: &mut Builder) -> Result<(), SetupError> {
    Ok(())
}

impl Composer<'_> {
    pub fn own(&mut self, draft: &mut Draft) {
        match draft.label {
            VSPACE_CLEAN_DATA..=VSPACE_UNIFY_INSTRUCTION => {
                let start = self.address();
                self.range(draft, start);
            }
            PAGE_CLEAN_DATA..=PAGE_UNIFY_INSTRUCTION => {
                let start = self.dice.below(PAGE);
                self.range(draft, start);
            }
            SMC_CALL => {
                for _ in 0..8 {
                    let word = self.dice.wild();
                    draft.word(word);
                }
            }
            PAGE_TABLE_MAP => self.map_table(draft),
            PAGE_MAP => self.map_page(draft),
            ASID_CONTROL_MAKE_POOL => self.make_pool(draft),
            ASID_POOL_ASSIGN => self.assign(draft),
            IRQ_CONTROL_GET => self.issue(draft, &[]),
            IRQ_CONTROL_GET_TRIGGER => {
                let trigger = self.dice.below(2);
                self.issue(draft, &[trigger]);
            }
            // A signal and its target; or an interrupt and its trigger, and a core behind the slot.
            IRQ_CONTROL_ISSUE_SGI_SIGNAL => {
                let target = self.dice.below(9);
                self.issue(draft, &[target]);
                let core = self.dice.below(5);
                draft.word(core);
            }
            _ => {}
        }
    }

    /// From `start` on, mostly within a page.
    fn range(&mut self, draft: &mut Draft, start: u64) {
        let rest = PAGE - start % PAGE;
        let length = match self.dice.below(8) {
            0 => self.dice.wild(),
            1 => rest,
            _ => 1 + self.dice.below(rest),
        };
        draft.words([start, start.wrapping_add(length)]);
    }

    /// A handler for an interrupt, with words between its number and the slot; or a signal, whose capability the storm
    /// takes for a handler.
    fn issue(&mut self, draft: &mut Draft, more: &[u64]) {
        let place = self.empty_place();
        let number = match self.dice.below(4) {
            0 => self.dice.below(INTERRUPTS),
            1 => TIMER,
            _ => self.dice.below(16),
        };
        draft.word(number);
        more.iter().for_each(|&word| draft.word(word));
        draft.words([place.index, place.depth]);
        draft.cap(place.root);
        draft.effect = Effect::Filled(place.at, 1, Kind::IrqHandler);
    }
}
