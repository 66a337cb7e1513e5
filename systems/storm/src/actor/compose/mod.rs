//! Random invocations whose arguments mostly make sense.

mod memory;
mod slots;
mod threads;

pub use memory::PLAYGROUNDS;
pub use threads::PRIORITIES;

use sandglass::abi::invocation::*;
use sandglass::abi::message::{MessageInfo, MAX_EXTRA_CAPS};

use sandglass::arch::order;

use super::dice::Dice;
use crate::catalogue::{Catalogue, Kind, Node, Position};

/// Prefix of the capability pointers that lead to the shelf, in a CSpace that has it.
const SHELF: u64 = 1 << 16;
/// Prefix of those that lead to the main CNode on a path of three levels.
const DEEP_PATH: u64 = 2 << 16;
/// Words of the longest invocation that is composed: WriteRegisters of all registers.
const WORDS: usize = order::COUNT + 2;

/// What the storm may believe once an invocation has succeeded.
#[derive(Clone, Copy)]
pub enum Effect {
    None,
    /// `count` slots from here on hold a new capability.
    Filled(Position, usize, Kind),
    /// The second slot's capability is in the first now.
    Moved(Position, Position),
    /// The slots have changed places: destination, pivot, source.
    Rotated(Position, Position, Position),
}

/// An invocation to be made.
pub struct Draft {
    pub label: u64,
    /// Capability pointer.
    pub invoked: u64,
    pub words: [u64; WORDS],
    pub length: usize,
    pub caps: [u64; MAX_EXTRA_CAPS],
    pub extra: usize,
    pub effect: Effect,
}

impl Draft {
    fn new(label: u64, invoked: u64) -> Self {
        Self {
            label,
            invoked,
            words: [0; WORDS],
            length: 0,
            caps: [0; MAX_EXTRA_CAPS],
            extra: 0,
            effect: Effect::None,
        }
    }

    pub fn word(&mut self, word: u64) {
        if let Some(next) = self.words.get_mut(self.length) {
            *next = word;
            self.length += 1;
        }
    }

    pub fn words<const N: usize>(&mut self, words: [u64; N]) {
        words.into_iter().for_each(|word| self.word(word));
    }

    pub fn cap(&mut self, cap: u64) {
        if let Some(next) = self.caps.get_mut(self.extra) {
            *next = cap;
            self.extra += 1;
        }
    }

    pub fn info(&self) -> u64 {
        MessageInfo::new(self.label, 0, self.extra, self.length).raw()
    }
}

/// A slot as CNode operations name it.
#[derive(Clone, Copy)]
pub struct Place {
    /// Capability pointer of the CNode.
    pub root: u64,
    pub index: u64,
    pub depth: u64,
    pub at: Position,
}

/// Composes for one thread.
pub struct Composer<'a> {
    pub dice: Dice<'a>,
    pub catalogue: &'a Catalogue,
    pub home: Node,
    pub has_shelf: bool,
}

impl Composer<'_> {
    /// An invocation with `label` of a capability believed to be of the kind `invoked`.
    pub fn invocation(&mut self, label: u64, invoked: Kind) -> Draft {
        let invoked = self.pick(invoked);
        let mut draft = Draft::new(label, invoked);
        match label {
            UNTYPED_RETYPE => self.retype(&mut draft),
            TCB_READ_REGISTERS..=TCB_SET_FLAGS => self.thread(&mut draft),
            CNODE_REVOKE..=CNODE_ROTATE | extension::CNODE_MINT_CALL => self.node(&mut draft),
            IRQ_HANDLER_ACK..=IRQ_HANDLER_CLEAR => self.interrupt(&mut draft),
            DOMAIN_SET..=SCHED_CONTEXT_YIELD_TO => self.time(&mut draft),
            _ => self.own(&mut draft),
        }
        self.disturb(&mut draft);
        draft
    }

    /// Spoils an argument, sometimes.
    fn disturb(&mut self, draft: &mut Draft) {
        match self.dice.below(64) {
            0 => draft.length = self.dice.index(draft.length + 1),
            1 => draft.extra = self.dice.index(MAX_EXTRA_CAPS + 1),
            2 => draft.label = self.dice.below(64),
            3 => draft.invoked = self.dice.wild(),
            4 => draft.caps[self.dice.index(MAX_EXTRA_CAPS)] = self.dice.wild(),
            5 | 6 if draft.length > 0 => {
                draft.words[self.dice.index(draft.length)] = self.dice.wild();
            }
            7 => {
                draft.length = WORDS;
                for word in &mut draft.words {
                    *word = self.dice.wild();
                }
            }
            _ => return,
        }
        draft.effect = Effect::None;
    }

    /// Capability pointer of a capability believed to be of the kind `kind`; of something else
    /// if there is none, and sometimes in any case.
    pub fn pick(&mut self, kind: Kind) -> u64 {
        let start = self.dice.index(self.home.slots());
        match self.dice.below(40) {
            0 => return self.dice.wild(),
            1 => return start as u64,
            _ => {}
        }
        if kind == Kind::IrqControl {
            return if self.has_shelf { SHELF } else { start as u64 };
        }
        let found = self.catalogue.find(self.home, start, |k| k == kind);
        self.pointer(found.unwrap_or(start))
    }

    /// Capability pointer of a slot of the home CNode.
    fn pointer(&mut self, slot: usize) -> u64 {
        let deep = self.has_shelf && self.dice.one_in(4);
        slot as u64 | if deep { DEEP_PATH } else { 0 }
    }

    /// A slot that `wanted` accepts, as CNode operations name it.
    fn place(&mut self, wanted: impl Fn(Kind) -> bool) -> Place {
        let node = if self.dice.one_in(4) {
            Node::Small
        } else {
            Node::Main
        };
        let root = self.pick(match node {
            Node::Main => Kind::MainNode,
            Node::Small => Kind::SmallNode,
        });
        let start = self.dice.index(node.slots());
        let slot = self.catalogue.find(node, start, wanted).unwrap_or(start);
        Place {
            root,
            index: slot as u64,
            depth: u64::from(node.radix()),
            at: Position { node, slot },
        }
    }

    pub fn empty_place(&mut self) -> Place {
        self.place(|kind| kind == Kind::Null)
    }

    fn place_of(&mut self, kind: Kind) -> Place {
        self.place(|k| k == kind)
    }

    fn used_place(&mut self) -> Place {
        self.place(|kind| kind != Kind::Null)
    }

    /// Where to receive a capability: CNode, index, depth.
    pub fn receive_slot(&mut self) -> [u64; 3] {
        let place = self.empty_place();
        [place.root, place.index, place.depth]
    }
}
