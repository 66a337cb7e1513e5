//! What registers and memory hold, as far as it tells accesses of one line from others: numbers, and symbols for numbers that
//! nobody knows.
//!
//! A symbol stands for one number as long as a state speaks of it: what an instruction found or made in a node of the network,
//! or what a place holds where ways meet. Who defines it anew first makes the state forget the old one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A number that nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Symbol(u32);

/// A symbol and a number, or a number alone: their sum modulo 2^64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term {
    pub symbol: Option<Symbol>,
    pub plus: u64,
}

impl Term {
    pub const fn number(plus: u64) -> Self {
        Self { symbol: None, plus }
    }

    pub const fn symbol(symbol: Symbol) -> Self {
        Self {
            symbol: Some(symbol),
            plus: 0,
        }
    }

    #[must_use]
    pub const fn add(self, by: u64) -> Self {
        Self {
            plus: self.plus.wrapping_add(by),
            ..self
        }
    }

    /// How far another is from it, if that is known.
    pub fn distance(self, other: Self) -> Option<u64> {
        (self.symbol == other.symbol).then(|| other.plus.wrapping_sub(self.plus))
    }
}

/// Where a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Register(u8),
    /// A word of memory.
    Memory(Term),
}

/// What a symbol stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// What the instruction at an address found or made in a node of the network, and which of it.
    Made {
        node: usize,
        address: u64,
        which: u8,
    },
    /// What a place holds where ways meet in a node.
    Joined { node: usize, place: Place },
    /// What a call that counts as a step was given: in an order of its own.
    Given(u32),
    /// What such a call, out of a node, leaves where it knows it by this symbol.
    Left { node: usize, inner: Symbol },
    /// Another, shifted left by so many bits.
    Scaled(Symbol, u8),
    /// The sum of two.
    Added(Symbol, Symbol),
}

/// So many origins have a symbol in another's, at most.
const MOST_NESTED: u32 = 4;

/// All symbols.
#[derive(Debug)]
pub struct Symbols {
    /// Where the kernel's stacks are.
    stacks: Range<u64>,
    origins: Vec<(Origin, u32)>,
    known: BTreeMap<Origin, Symbol>,
    /// By how much what a place holds where a loop begins is more than in the turn before; `None` if it is anything.
    steps: Steps,
    here: Here,
}

/// What is to be known of the network in which symbols are used.
#[derive(Debug, Default)]
pub struct Here {
    /// Nodes to which a path may come again.
    pub turning: BTreeSet<usize>,
    /// What changes from turn to turn in accesses that go through memory step by step.
    pub stepping: BTreeSet<Symbol>,
}

/// Of symbols of places where loops begin.
pub type Steps = BTreeMap<Symbol, Option<u64>>;

impl Symbols {
    pub fn new(stacks: Range<u64>) -> Self {
        Self {
            stacks,
            origins: Vec::new(),
            known: BTreeMap::new(),
            steps: BTreeMap::new(),
            here: Here::default(),
        }
    }

    pub fn stacks(&self) -> &Range<u64> {
        &self.stacks
    }

    pub fn of(&mut self, origin: Origin) -> Symbol {
        if let Some(&known) = self.known.get(&origin) {
            return known;
        }
        let depth = match origin {
            Origin::Scaled(of, _) => self.depth(of) + 1,
            Origin::Added(first, second) => self.depth(first).max(self.depth(second)) + 1,
            _ => 0,
        };
        self.origins.push((origin, depth));
        let symbol = Symbol(self.origins.len() as u32 - 1);
        self.known.insert(origin, symbol);
        symbol
    }

    pub fn origin(&self, symbol: Symbol) -> Origin {
        self.origins[symbol.0 as usize].0
    }

    fn depth(&self, symbol: Symbol) -> u32 {
        self.origins[symbol.0 as usize].1
    }

    /// Symbols are used in another network from now on. What was to be known of the one before.
    pub fn go_to(&mut self, here: Here) -> Here {
        std::mem::replace(&mut self.here, here)
    }

    /// Accesses go through memory step by step by these.
    pub fn step_by(&mut self, stepping: BTreeSet<Symbol>) {
        self.here.stepping = stepping;
    }

    /// Whether a path may have several numbers at several times that this stands for.
    pub fn changes(&self, term: Term) -> bool {
        let is_it = |origin: &Origin| match origin {
            Origin::Made { node, .. } | Origin::Joined { node, .. } | Origin::Left { node, .. } => {
                self.here.turning.contains(node)
            }
            Origin::Given(_) | Origin::Scaled(..) | Origin::Added(..) => false,
        };
        term.symbol.is_some_and(|symbol| self.has(symbol, &is_it))
    }

    /// Whether it matters of a line that may not be there whether it was used: since the path began, or in this turn of a loop
    /// that goes through memory.
    pub fn is_followed(&self, term: Term) -> bool {
        let mut stepping = self.here.stepping.iter();
        let steps = |symbol: Symbol| stepping.any(|&part| self.is_of(symbol, part));
        !self.changes(term) || term.symbol.is_some_and(steps)
    }

    /// Adds the symbols that one is made of.
    pub fn parts(&self, symbol: Symbol, all: &mut BTreeSet<Symbol>) {
        match self.origin(symbol) {
            Origin::Scaled(of, _) => self.parts(of, all),
            Origin::Added(first, second) => {
                self.parts(first, all);
                self.parts(second, all);
            }
            _ => {
                all.insert(symbol);
            }
        }
    }

    /// Whether a symbol is made of these.
    pub fn is_made_of(&self, symbol: Symbol, parts: &BTreeSet<Symbol>) -> bool {
        match self.origin(symbol) {
            Origin::Scaled(of, _) => self.is_made_of(of, parts),
            Origin::Added(first, second) => {
                self.is_made_of(first, parts) && self.is_made_of(second, parts)
            }
            _ => parts.contains(&symbol),
        }
    }

    /// Takes out by how much places change from turn to turn, in the nodes of a network: those of another have the same numbers.
    pub fn take_steps(&mut self) -> Steps {
        std::mem::take(&mut self.steps)
    }

    /// Puts that back.
    pub fn put_steps(&mut self, steps: Steps) {
        self.steps = steps;
    }

    /// What a place holds where a loop begins is by so much more than in the turn before; or anything.
    pub fn steps(&mut self, symbol: Symbol, by: Option<u64>) {
        let known = self.steps.entry(symbol).or_insert(by);
        if *known != by {
            *known = None;
        }
    }

    /// The part of a symbol that changes from turn to turn of a loop, if no other does, and by how much.
    pub fn step_in(&self, symbol: Symbol) -> Option<(Symbol, u64)> {
        match self.origin(symbol) {
            Origin::Scaled(of, _) => self.step_in(of),
            Origin::Added(first, second) => {
                let stays = |part| !self.changes(Term::symbol(part));
                match (self.step_in(first), self.step_in(second)) {
                    (Some(step), None) if stays(second) => Some(step),
                    (None, Some(step)) if stays(first) => Some(step),
                    _ => None,
                }
            }
            _ => {
                let step = self.steps.get(&symbol).copied().flatten()?;
                (step != 0).then_some((symbol, step))
            }
        }
    }

    /// Whether what a symbol is made of has such an origin.
    pub fn has(&self, symbol: Symbol, is_it: &impl Fn(&Origin) -> bool) -> bool {
        match self.origin(symbol) {
            Origin::Scaled(of, _) => self.has(of, is_it),
            Origin::Added(first, second) => self.has(first, is_it) || self.has(second, is_it),
            origin => is_it(&origin),
        }
    }

    /// Whether a symbol is another, or made of it.
    pub fn is_of(&self, symbol: Symbol, part: Symbol) -> bool {
        symbol == part
            || match self.origin(symbol) {
                Origin::Scaled(of, _) => self.is_of(of, part),
                Origin::Added(first, second) => self.is_of(first, part) || self.is_of(second, part),
                _ => false,
            }
    }

    /// The term, shifted left; `None` if that has no symbol.
    pub fn scaled(&mut self, term: Term, by: u8) -> Option<Term> {
        let plus = term.plus.checked_shl(by.into())?;
        let symbol = match term.symbol {
            Some(of) if by > 0 => {
                if self.depth(of) >= MOST_NESTED {
                    return None;
                }
                Some(self.of(Origin::Scaled(of, by)))
            }
            symbol => symbol,
        };
        Some(Term { symbol, plus })
    }

    /// The sum of two; `None` if that has no symbol.
    pub fn added(&mut self, first: Term, second: Term) -> Option<Term> {
        let plus = first.plus.wrapping_add(second.plus);
        let symbol = match (first.symbol, second.symbol) {
            (Some(first), Some(second)) => {
                if self.depth(first).max(self.depth(second)) >= MOST_NESTED {
                    return None;
                }
                Some(self.of(Origin::Added(first.min(second), first.max(second))))
            }
            (first, second) => first.or(second),
        };
        Some(Term { symbol, plus })
    }

    /// A term where a part of its symbol is another term; where there is no part, a number is added. `None` if that has no symbol.
    pub fn with(&mut self, term: Term, part: Option<Symbol>, by: Term) -> Option<Term> {
        let (Some(symbol), Some(part)) = (term.symbol, part) else {
            return self.added(by, Term::number(term.plus));
        };
        Some(self.symbol_with(symbol, part, by)?.add(term.plus))
    }

    fn symbol_with(&mut self, symbol: Symbol, part: Symbol, by: Term) -> Option<Term> {
        if symbol == part {
            return Some(by);
        }
        match self.origin(symbol) {
            Origin::Scaled(of, shift) => {
                let of = self.symbol_with(of, part, by)?;
                self.scaled(of, shift)
            }
            Origin::Added(first, second) => {
                let first = self.symbol_with(first, part, by)?;
                let second = self.symbol_with(second, part, by)?;
                self.added(first, second)
            }
            _ => Some(Term::symbol(symbol)),
        }
    }

    /// The same symbol where those that it is made of have other names.
    pub fn renamed(
        &mut self,
        symbol: Symbol,
        name: &mut impl FnMut(&mut Self, Symbol) -> Option<Symbol>,
    ) -> Option<Symbol> {
        match self.origin(symbol) {
            Origin::Scaled(of, by) => {
                let of = self.renamed(of, name)?;
                Some(self.of(Origin::Scaled(of, by)))
            }
            Origin::Added(first, second) => {
                let first = self.renamed(first, name)?;
                let second = self.renamed(second, name)?;
                Some(self.of(Origin::Added(first.min(second), first.max(second))))
            }
            _ => name(self, symbol),
        }
    }
}

/// What memory an address can be in: a bit for each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Region(u8);

impl Region {
    /// The kernel's stacks.
    pub const STACK: Self = Self(1);
    /// Its statics.
    pub const STATIC: Self = Self(2);
    /// What it has given to objects and users.
    pub const GIVEN: Self = Self(4);
    pub const ANYWHERE: Self = Self(7);

    const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What both allow; of what contradicts itself, the second, which is newer.
    const fn and(self, other: Self) -> Self {
        match self.0 & other.0 {
            0 => other,
            both => Self(both),
        }
    }

    /// That of a sum: of an address and what says how far it is. What is known of an address is known of how far it is from
    /// others, too; what may be none is one, if it is not [small](Bits::region_in_sum) for sure.
    const fn of_sum(self, other: Self) -> Self {
        match self.0 & other.0 {
            0 => Self::ANYWHERE,
            both => Self(both),
        }
    }

    /// Whether nothing is in both.
    pub const fn is_apart(self, other: Self) -> bool {
        self.0 & other.0 == 0
    }
}

/// What is known of the bits of a number, and what is there if it is an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bits {
    pub unknown: u64,
    /// Of those that are known; zero where nothing is.
    pub value: u64,
    pub region: Region,
}

impl Bits {
    pub const UNKNOWN: Self = Self::of(u64::MAX, 0);

    pub const fn of(unknown: u64, value: u64) -> Self {
        Self {
            unknown,
            value,
            region: Region::ANYWHERE,
        }
    }

    pub const fn number(value: u64) -> Self {
        Self::of(0, value)
    }

    #[must_use]
    pub const fn within(self, region: Region) -> Self {
        Self { region, ..self }
    }

    /// Of a sum: a carry may come from wherever something is unknown.
    #[must_use]
    pub const fn add(self, other: Self) -> Self {
        let value = self.value.wrapping_add(other.value);
        let most = self.unknown.wrapping_add(other.unknown).wrapping_add(value);
        let unknown = (most ^ value) | self.unknown | other.unknown;
        Self {
            unknown,
            value: value & !unknown,
            region: self.region_in_sum().of_sum(other.region_in_sum()),
        }
    }

    /// What is small is no address, but says how far something is from one: wherever that is.
    const fn region_in_sum(self) -> Region {
        match self.fits(32) {
            true => Region::ANYWHERE,
            false => self.region,
        }
    }

    #[must_use]
    pub const fn shifted_left(self, by: u8) -> Self {
        Self::of(self.unknown << by, self.value << by)
    }

    #[must_use]
    pub const fn shifted_right(self, by: u8) -> Self {
        Self::of(self.unknown >> by, self.value >> by)
    }

    #[must_use]
    pub const fn masked(self, mask: u64) -> Self {
        Self {
            unknown: self.unknown & mask,
            value: self.value & mask,
            ..self
        }
    }

    /// What is known if either holds.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        let unknown = self.unknown | other.unknown | (self.value ^ other.value);
        Self {
            unknown,
            value: self.value & !unknown,
            region: self.region.or(other.region),
        }
    }

    /// What is known if less was known before than what was known then, and may go on so, as of a number that is counted up: from
    /// the lowest bit on that is not known any more, nothing.
    #[must_use]
    pub const fn widened(self, before: Self) -> Self {
        let lost = self.unknown & !before.unknown;
        let unknown = self.unknown | (lost & lost.wrapping_neg()).wrapping_sub(1) ^ u64::MAX;
        match lost {
            0 => self,
            _ => Self {
                unknown,
                value: self.value & !unknown,
                ..self
            },
        }
    }

    /// What is known if both hold; of what contradicts itself, the first, since nobody comes there.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            unknown: self.unknown & other.unknown,
            value: self.value | (other.value & self.unknown),
            region: self.region.and(other.region),
        }
    }

    /// The least and the greatest number that it can be.
    pub const fn range(self) -> (u64, u64) {
        (self.value, self.value | self.unknown)
    }

    /// Whether it has no more than so many bits.
    pub const fn fits(self, bits: u32) -> bool {
        (self.unknown | self.value) >> bits == 0
    }

    /// Whether two numbers cannot be the same in what `mask` has.
    pub const fn differ(self, other: Self, mask: u64) -> bool {
        (self.value ^ other.value) & !self.unknown & !other.unknown & mask != 0
    }

    /// How many of the lowest bits are known.
    pub const fn known_from_below(self) -> u32 {
        self.unknown.trailing_zeros()
    }
}
