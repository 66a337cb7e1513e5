//! Arguments of invocations that fill and empty slots: untypeds, CNodes, interrupts.

use sandglass::abi::cnode::GuardData;
use sandglass::abi::invocation::*;

use super::{Composer, Draft, Effect, Place};
use crate::arch::operations::TYPES;
use crate::catalogue::{Kind, Node};

const TYPE_WEIGHTS: [u64; TYPES.len()] = {
    let mut weights = [0; TYPES.len()];
    let mut i = 0;
    while i < weights.len() {
        weights[i] = TYPES[i].3;
        i += 1;
    }
    weights
};

impl Composer<'_> {
    pub(super) fn retype(&mut self, draft: &mut Draft) {
        let (number, size, kind, _) = TYPES[self.dice.weighted(TYPE_WEIGHTS)];
        let size = if size == 0 { self.dice.below(64) } else { size };
        let place = self.empty_place();
        let count = match self.dice.below(8) {
            0 => 1 + self.dice.below(4),
            1 => self.dice.below(300),
            _ => 1,
        };
        draft.words([number, size]);
        if self.dice.one_in(6) {
            // The CNode is named by a slot that holds it.
            let holder = self.place_of(Kind::MainNode);
            draft.words([holder.index, holder.depth]);
            draft.words([place.index, count]);
            draft.cap(holder.root);
        } else {
            draft.words([0, 0, place.index, count]);
            draft.cap(place.root);
            draft.effect = Effect::Filled(place.at, count as usize, kind);
        }
    }

    pub(super) fn node(&mut self, draft: &mut Draft) {
        match draft.label {
            CNODE_REVOKE => {
                let place = self.used_place();
                self.destination(draft, place);
            }
            CNODE_DELETE => {
                let place = self.used_place();
                self.destination(draft, place);
                draft.effect = Effect::Filled(place.at, 1, Kind::Null);
            }
            CNODE_CANCEL_BADGED_SENDS => {
                let place = self.place_of(Kind::Endpoint);
                self.destination(draft, place);
            }
            CNODE_ROTATE => self.rotate(draft),
            _ => self.transfer(draft),
        }
    }

    /// Copy, Mint, MintCall, Move, Mutate.
    fn transfer(&mut self, draft: &mut Draft) {
        let from = if draft.label == CNODE_MUTATE && self.dice.one_in(2) {
            self.place_of(Kind::OtherNode)
        } else {
            self.used_place()
        };
        let to = self.empty_place();
        self.destination(draft, to);
        self.source(draft, from);
        match draft.label {
            CNODE_COPY => {
                let rights = self.rights();
                draft.word(rights);
            }
            CNODE_MINT | extension::CNODE_MINT_CALL => {
                let rights = self.rights();
                let data = self.data();
                draft.words([rights, data]);
            }
            CNODE_MUTATE => {
                let data = self.data();
                draft.word(data);
            }
            _ => {}
        }
        draft.effect = match draft.label {
            CNODE_COPY | CNODE_MINT | extension::CNODE_MINT_CALL => {
                Effect::Filled(to.at, 1, self.catalogue.get(from.at))
            }
            _ => Effect::Moved(to.at, from.at),
        };
    }

    fn rotate(&mut self, draft: &mut Draft) {
        let (pivot, source) = (self.used_place(), self.used_place());
        let to = if self.dice.one_in(3) {
            source
        } else {
            self.empty_place()
        };
        self.destination(draft, to);
        let data = [self.data(), self.data()];
        draft.words([data[0], pivot.index, pivot.depth, data[1]]);
        draft.words([source.index, source.depth]);
        draft.cap(pivot.root);
        draft.cap(source.root);
        draft.effect = Effect::Rotated(to.at, pivot.at, source.at);
    }

    /// Index and depth of the slot that is written; its CNode is the one invoked.
    fn destination(&mut self, draft: &mut Draft, place: Place) {
        draft.invoked = place.root;
        draft.words([place.index, place.depth]);
    }

    fn source(&mut self, draft: &mut Draft, place: Place) {
        draft.words([place.index, place.depth]);
        draft.cap(place.root);
    }

    pub(super) fn rights(&mut self) -> u64 {
        match self.dice.below(3) {
            0 => self.dice.below(16),
            _ => 15,
        }
    }

    /// A badge, or a guard.
    fn data(&mut self) -> u64 {
        match self.dice.below(4) {
            0 => 0,
            1 => GuardData::new(self.dice.below(4), 64 - Node::Main.radix()).raw(),
            2 => self.dice.wild(),
            _ => self.dice.below(8),
        }
    }

    pub(super) fn interrupt(&mut self, draft: &mut Draft) {
        if draft.label == IRQ_HANDLER_SET_NOTIFICATION {
            let notification = self.pick(Kind::Notification);
            draft.cap(notification);
        }
    }
}
