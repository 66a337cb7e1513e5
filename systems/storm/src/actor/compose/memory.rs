//! Arguments of invocations of frames, paging structures and address space identifiers.

use super::{Composer, Draft, Effect};
use crate::area::{AREAS_ADDRESS, BUFFERS_ADDRESS};
use crate::catalogue::Kind;

/// Where the storm maps: two places in address spaces, far from what its threads need.
pub const PLAYGROUNDS: [u64; 2] = [0x4000_0000_0000, 0x5000_0000_0000];

impl Composer<'_> {
    pub fn map_table(&mut self, draft: &mut Draft) {
        let (address, attributes) = (self.address(), self.dice.below(4));
        draft.words([address, attributes]);
        self.add_root(draft);
    }

    pub fn map_page(&mut self, draft: &mut Draft) {
        let large = self.dice.one_in(8);
        if large {
            draft.invoked = self.pick(Kind::LargeFrame);
        }
        let mut address = self.address();
        if large && !self.dice.one_in(4) {
            address &= !0x1f_ffff;
        }
        let (rights, attributes) = (self.rights(), self.dice.below(8));
        draft.words([address, rights, attributes]);
        self.add_root(draft);
    }

    pub fn make_pool(&mut self, draft: &mut Draft) {
        let place = self.empty_place();
        draft.words([place.index, place.depth]);
        let untyped = self.pick(Kind::PageUntyped);
        draft.cap(untyped);
        draft.cap(place.root);
        draft.effect = Effect::Filled(place.at, 1, Kind::AsidPool);
    }

    pub fn assign(&mut self, draft: &mut Draft) {
        let place = self.place_of(Kind::Pml4);
        let root = if place.at.node == self.home {
            self.pointer(place.at.slot)
        } else {
            self.pick(Kind::Pml4)
        };
        draft.cap(root);
        if place.at.node == self.home {
            draft.effect = Effect::Filled(place.at, 1, Kind::VSpace);
        }
    }

    fn add_root(&mut self, draft: &mut Draft) {
        let root = self.pick(Kind::VSpace);
        draft.cap(root);
    }

    /// A page to map: few, so that mappings and structures meet.
    pub fn address(&mut self) -> u64 {
        match self.dice.below(32) {
            0 => self.dice.wild(),
            1 => self.dice.wild() & !0xfff,
            // Over what a thread needs.
            2 => AREAS_ADDRESS + (self.dice.below(0x200) << 12),
            3 => BUFFERS_ADDRESS + (self.dice.below(0x10) << 12),
            _ => {
                let [first, second] = PLAYGROUNDS;
                let base = if self.dice.one_in(4) { second } else { first };
                base + (u64::from(self.dice.one_in(4)) << 30)
                    + (u64::from(self.dice.one_in(4)) << 21)
                    + (self.dice.below(4) << 12)
            }
        }
    }
}
