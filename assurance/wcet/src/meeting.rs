//! What is known where ways meet: what both have, by one name.

use sandglass_cache::Geometry;

use crate::code::REGISTERS;
use crate::data::DataState;
use crate::held::{Held, Part};
use crate::streams::Stream;
use crate::values::{Bits, Origin, Place, Symbol, Symbols, Term};

/// The places of one group: in both states what they hold is one number apart from the first of them.
#[derive(Clone, Copy)]
struct Group {
    own: Term,
    other: Term,
    name: Term,
}

/// Where ways meet.
#[derive(Clone, Copy)]
pub struct Meets<'a> {
    /// The node of the network.
    pub node: usize,
    /// Whether what changes is expected to go on changing.
    pub widen: bool,
    /// Behind a turn of a loop of which it is known how many it takes, at most.
    pub is_turn: bool,
    /// Accesses of that loop.
    pub streams: &'a [Stream],
}

/// What becomes of two states where ways meet.
struct Meeting<'a> {
    own: &'a DataState,
    other: &'a DataState,
    symbols: &'a mut Symbols,
    node: usize,
    /// Whether what changes is expected to go on changing.
    widen: bool,
    /// Behind a turn of a loop of which it is known how many it takes, at most.
    is_turn: bool,
    streams: &'a [Stream],
    groups: Vec<Group>,
}

impl Meeting<'_> {
    /// Whether a symbol of the other state is one that this node gave before.
    fn is_old(&self, symbol: Option<Symbol>) -> bool {
        let node = self.node;
        let is_it =
            |origin: &Origin| matches!(origin, Origin::Joined { node: by, .. } if *by == node);
        symbol.is_some_and(|symbol| self.symbols.has(symbol, &is_it))
    }

    /// What a place holds of which each state says something.
    fn value(&mut self, own: Term, other: Term, place: Option<Place>) -> Option<Term> {
        if own == other && !self.is_old(other.symbol) {
            return Some(own);
        }
        let known = self.groups.iter().find(|group| {
            let alike = group.own.symbol == own.symbol && group.other.symbol == other.symbol;
            alike
                && own.plus.wrapping_sub(group.own.plus)
                    == other.plus.wrapping_sub(group.other.plus)
        });
        if let Some(group) = known {
            return Some(group.name.add(own.plus.wrapping_sub(group.own.plus)));
        }
        let node = self.node;
        let place = place?;
        let symbol = self.symbols.of(Origin::Joined { node, place });
        let name = Term::symbol(symbol);
        if own == name && self.is_turn {
            self.symbols.steps(symbol, own.distance(other));
        }
        self.groups.push(Group { own, other, name });
        Some(name)
    }

    /// An own address by all its names behind the meeting, each with what the other state calls it.
    fn names(&mut self, own: Term) -> Vec<Name> {
        let mut names = Vec::new();
        if !self.is_old(own.symbol) {
            names.push(Name {
                name: own,
                other: own,
            });
        }
        for at in 0..self.groups.len() {
            let group = self.groups[at];
            let is_near = match group.own.symbol {
                Some(part) => own
                    .symbol
                    .is_some_and(|symbol| self.symbols.is_of(symbol, part)),
                None => {
                    let by = own.plus.wrapping_sub(group.own.plus) as i64;
                    own.symbol.is_none() && by.unsigned_abs() < NEAR
                }
            };
            if !is_near {
                continue;
            }
            let back = group.own.plus.wrapping_neg();
            let name = self
                .symbols
                .with(own, group.own.symbol, group.name.add(back));
            let other = self
                .symbols
                .with(own, group.own.symbol, group.other.add(back));
            names.extend(name.zip(other).map(|(name, other)| Name { name, other }));
        }
        names
    }

    /// What was used after a line in both states, by names behind the meeting.
    fn parts(&mut self, own: &[Part], other: &[Part]) -> Vec<Part> {
        let mut parts = Vec::new();
        for part in own {
            let names = self.names(part.0);
            // Elsewhere in a part, it would be another one: where a loop goes through memory, what it has gone through.
            let name = names.into_iter().find(|name| {
                let is_part = |&it: &Term| Part::of(it).0 == it;
                [name.name, name.other].iter().all(is_part) && other.contains(&Part::of(name.other))
            });
            parts.extend(name.map(|name| Part::of(name.name)));
        }
        parts.sort_unstable();
        parts.dedup();
        parts
    }
}

/// An address behind a meeting, and what the other state calls it.
struct Name {
    name: Term,
    other: Term,
}

/// One of so many numbers is something to know.
const MOST_NUMBERS: usize = 12;

/// Numbers so far apart have nothing to do with each other.
const NEAR: u64 = 4096;

impl DataState {
    /// What is known if either holds, in this node. Whether that is less than before.
    pub fn join(
        &mut self,
        other: &Self,
        meets: Meets,
        cache: Geometry,
        symbols: &mut Symbols,
    ) -> bool {
        if self == other {
            return false;
        }
        let mut meeting = Meeting {
            own: self,
            other,
            symbols,
            node: meets.node,
            widen: meets.widen,
            is_turn: meets.is_turn,
            streams: meets.streams,
            groups: Vec::new(),
        };
        let joined = meeting.run(cache);
        let changed = joined != *self;
        *self = joined;
        changed
    }
}

impl Meeting<'_> {
    fn run(&mut self, cache: Geometry) -> DataState {
        let (own, other) = (self.own, self.other);
        let mut joined = DataState::new();
        for register in 0..REGISTERS {
            let both = own.registers[register].zip(other.registers[register]);
            joined.registers[register] = both.and_then(|(own, other)| {
                self.value(own, other, Some(Place::Register(register as u8)))
            });
        }
        // First those at numbers, by which others may be named.
        for (&place, &value) in &own.memory {
            let Some(&others) = other
                .memory
                .get(&place)
                .filter(|_| !self.is_old(place.symbol))
            else {
                continue;
            };
            if let Some(value) = self.value(value, others, Some(Place::Memory(place))) {
                joined.memory.insert(place, value);
            }
        }
        for (&place, &value) in &own.memory {
            for each in self.names(place) {
                if joined.memory.contains_key(&each.name) {
                    continue;
                }
                let Some(&others) = other.memory.get(&each.other) else {
                    continue;
                };
                if let Some(value) = self.value(value, others, None) {
                    joined.memory.insert(each.name, value);
                }
            }
        }
        self.bits(&mut joined);
        joined.is_forgetful = own.is_forgetful || other.is_forgetful;
        self.lines(&mut joined, cache);
        for stream in self.streams {
            let found = self.stream(stream, &joined, cache);
            joined.held.extend(found);
        }
        joined.held.sort_unstable();
        joined.held.dedup_by_key(|held| held.at);
        joined.forget_lost(self.symbols);
        joined
    }

    /// Lines that both have; and those that one has, which were used on its way, by a name that has one meaning on it.
    fn lines(&mut self, joined: &mut DataState, cache: Geometry) {
        let (own, other) = (self.own, self.other);
        for held in &own.held {
            for each in self.names(held.at) {
                let is_same = (each.name, each.other) == (held.at, held.at);
                let bits = joined.bits_of(each.name, self.symbols);
                let others = other.bits_of(each.other, self.symbols);
                match other.line_of((each.other, others), cache) {
                    Some(found) if is_same || held.is_sure && found.is_sure => {
                        let others = self.parts(&held.others, &found.others);
                        let age = held.age().max(found.age());
                        joined.held.push(Held {
                            at: each.name,
                            bits,
                            unknown: age.saturating_sub(others.len() as u64),
                            others,
                            is_sure: held.is_sure && found.is_sure,
                        });
                    }
                    None if is_same => joined.held.extend(self.of_one(held, bits, other, cache)),
                    _ => {}
                }
            }
        }
        joined.held.sort_unstable();
        let mut more = Vec::new();
        for held in other.held.iter().filter(|it| !self.is_old(it.at.symbol)) {
            let bits = joined.bits_of(held.at, self.symbols);
            if joined.line_of((held.at, bits), cache).is_none() {
                more.extend(self.of_one(held, bits, own, cache));
            }
        }
        joined.held.extend(more);
    }

    /// A line that one of the two has: the other way did not use it, or nobody knows any more that it did.
    fn of_one(
        &self,
        held: &Held,
        bits: Bits,
        without: &DataState,
        cache: Geometry,
    ) -> Option<Held> {
        let others = held.others.iter().copied();
        let others: Vec<Part> = others.filter(|it| !self.is_old(it.0.symbol)).collect();
        let age = match without.is_forgetful {
            true => held.age().max(cache.ways),
            false => held.age(),
        };
        let one = Held {
            at: held.at,
            bits,
            unknown: age - others.len() as u64,
            others,
            is_sure: false,
        };
        self.symbols.is_followed(held.at).then_some(one)
    }

    /// The line of the turn before, if it is there in both states.
    fn stream(&mut self, stream: &Stream, joined: &DataState, cache: Geometry) -> Option<Held> {
        let at = joined.before_turn(stream, self.symbols)?;
        let of_own = self.own.before_turn(stream, self.symbols)?;
        let of_other = self.other.before_turn(stream, self.symbols)?;
        let own = self.own.held(of_own, cache, self.symbols)?;
        let other = self.other.held(of_other, cache, self.symbols)?;
        let others = self.parts(&own.others, &other.others);
        let age = own.age().max(other.age());
        Some(Held {
            at,
            bits: joined.bits_of(at, self.symbols),
            unknown: age.saturating_sub(others.len() as u64),
            others,
            is_sure: true,
        })
    }

    fn bits(&mut self, joined: &mut DataState) {
        let (own, other) = (self.own, self.other);
        for (&symbol, numbers) in &own.numbers {
            if !self.is_old(Some(symbol)) && other.numbers.get(&symbol) == Some(numbers) {
                joined.numbers.insert(symbol, numbers.clone());
            }
        }
        for (&symbol, &bits) in &own.bits {
            if self.is_old(Some(symbol)) {
                continue;
            }
            let others = other.bits_of(Term::symbol(symbol), self.symbols);
            let bits = bits.or(others);
            if bits != Bits::UNKNOWN {
                joined.bits.insert(symbol, bits);
            }
        }
        for group in &self.groups {
            let owns = own.bits_of(group.own, self.symbols);
            let others = other.bits_of(group.other, self.symbols);
            let mut bits = owns.or(others);
            if group.own == group.name && self.widen {
                bits = bits.widened(owns);
            }
            let Some(symbol) = group.name.symbol else {
                continue;
            };
            if bits != Bits::UNKNOWN {
                joined.bits.insert(symbol, bits);
            }
            let numbers = own.numbers_of(group.own).zip(other.numbers_of(group.other));
            if let Some((mut numbers, others)) = numbers {
                numbers.extend(others);
                numbers.sort_unstable();
                numbers.dedup();
                if numbers.len() <= MOST_NUMBERS {
                    joined.numbers.insert(symbol, numbers.into());
                }
            }
        }
    }
}
