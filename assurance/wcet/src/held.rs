//! Lines that are in a data cache for sure, each with what may have driven it out since (Ferdinand and Wilhelm 1999: must
//! analysis), where most addresses are a symbol and a number.
//!
//! A line stays until as many others of its set were used as the cache has ways. What is less than all sets apart from another is in
//! another set, or in the same line: so of a part of memory, however much of it is used, one line counts.

use sandglass_cache::Geometry;

use crate::data::DataState;
use crate::streams::Stream;
use crate::values::{Bits, Origin, Place, Symbols, Term};

/// A line that is in the cache for sure.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// Of an access to it.
    pub at: Term,
    /// What is known of its address.
    pub bits: Bits,
    /// Parts of memory that have been used since, of each of which one line, at most, is in the same set: in their order.
    pub others: Vec<Part>,
    /// And so many more lines, of which nothing is known.
    pub unknown: u64,
}

impl Held {
    /// How many others of its set may have been used since.
    pub fn age(&self) -> u64 {
        self.others.len() as u64 + self.unknown
    }

    /// A line of a part of memory is used that may be in the same set.
    fn meets(&mut self, part: Part) {
        if let Err(place) = self.others.binary_search(&part) {
            self.others.insert(place, part);
        }
    }
}

/// [`PART`] bytes from a multiple of so many on, from what a symbol points to: less than all sets hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part(pub Term);

pub const PART: u64 = 4096;

impl Part {
    pub fn of(term: Term) -> Self {
        Self(Term {
            plus: term.plus & !(PART - 1),
            ..term
        })
    }
}

impl DataState {
    /// The line of an address, if it is there for sure.
    pub fn held(&self, place: Term, cache: Geometry, symbols: &Symbols) -> Option<&Held> {
        let place = self.within_line(place, cache, symbols);
        let bits = self.bits_of(place, symbols);
        let mut held = self.held.iter();
        held.find(|held| is_one_line((held.at, held.bits), (place, bits), cache))
    }

    /// A loop is entered that makes these accesses: the lines of the turn before its first are brought.
    pub fn begins(&mut self, streams: &[Stream], cache: Geometry, symbols: &mut Symbols) {
        for stream in streams {
            if let Some(at) = self.before_turn(stream, symbols) {
                self.access(at, cache, symbols);
            }
        }
    }

    /// The address of an access in the turn before the one that begins here.
    pub fn before_turn(&self, stream: &Stream, symbols: &mut Symbols) -> Option<Term> {
        let value = match stream.place {
            Place::Register(register) => self.registers[usize::from(register)],
            Place::Memory(place) => self.memory.get(&place).copied(),
        };
        symbols.with(stream.before, Some(stream.symbol), value?)
    }

    /// The line of an address is used, and is there from now on. Whether it was there for sure. What is accessed at once is in
    /// one line: the kernel's data is aligned.
    pub fn access(&mut self, place: Term, cache: Geometry, symbols: &Symbols) -> bool {
        let place = self.within_line(place, cache, symbols);
        let bits = self.bits_of(place, symbols);
        let is_it = |held: &Held| is_one_line((held.at, held.bits), (place, bits), cache);
        let is_hit = self.held.iter().any(is_it) || self.holds_any(place, cache);
        self.held.retain(|held| !is_it(held));
        // A part begins anywhere in a line, and so may be in one line more than it fills: a way must be larger than it, for no
        // two lines of it to want the same set.
        let has_room = cache.line * cache.sets >= 2 * PART;
        self.held.retain_mut(|held| {
            if may_meet((held.at, held.bits), (place, bits), cache) {
                match has_room {
                    true => held.meets(Part::of(place)),
                    false => held.unknown += 1,
                }
            }
            held.age() < cache.ways
        });
        let new = Held {
            at: place,
            bits,
            others: Vec::new(),
            unknown: 0,
        };
        let at = self.held.partition_point(|held| held.at < place);
        self.held.insert(at, new);
        is_hit
    }

    /// Another address in the same line, without what only chooses a place in it.
    pub fn within_line(&self, place: Term, cache: Geometry, symbols: &Symbols) -> Term {
        let Some(Origin::Added(first, second)) = place.symbol.map(|it| symbols.origin(it)) else {
            return place;
        };
        let both = [(first, second), (second, first)];
        let found = both.into_iter().find_map(|(base, by)| {
            let base = Term {
                symbol: Some(base),
                ..place
            };
            let by = self.bits_of(Term::symbol(by), symbols).range().1;
            let within = self.bits_of(base, symbols).masked(cache.line - 1);
            (by < cache.line && within.range().1 + by < cache.line).then_some(base)
        });
        found.unwrap_or(place)
    }

    /// Whether the line of an address that is one of a few numbers is there for each of them.
    fn holds_any(&self, place: Term, cache: Geometry) -> bool {
        let numbers = place.symbol.and_then(|symbol| self.numbers.get(&symbol));
        numbers.is_some_and(|numbers| {
            numbers.iter().all(|number| {
                let line = |plus: u64| cache.line_of(number.wrapping_add(plus));
                self.held.iter().any(|held| match held.at.symbol {
                    None => cache.line_of(held.at.plus) == line(place.plus),
                    symbol => symbol == place.symbol && line(held.at.plus) == line(place.plus),
                })
            })
        })
    }

    /// So many lines of each set are used, nobody knows which.
    pub fn age_all(&mut self, by: u64, cache: Geometry) {
        if by > 0 {
            self.held.retain_mut(|held| {
                held.unknown += by;
                held.age() < cache.ways
            });
        }
    }
}

/// How many lines so many bytes use, one behind the other, wherever they begin.
pub fn spanned(bytes: u64, cache: Geometry) -> u64 {
    match bytes {
        0 => 0,
        bytes => (bytes + cache.line - 2) / cache.line + 1,
    }
}

/// Whether two accesses are of one line for sure.
pub fn is_one_line(first: (Term, Bits), second: (Term, Bits), cache: Geometry) -> bool {
    let Some(distance) = first.0.distance(second.0) else {
        return false;
    };
    if distance == 0 {
        return true;
    }
    let distance = distance as i64;
    if distance.unsigned_abs() >= cache.line {
        return false;
    }
    // Wherever in a line the first is, the second is in the same.
    let within = first.1.masked(cache.line - 1);
    let (least, most) = (within.value as i64, (within.value | within.unknown) as i64);
    if least + distance >= 0 && most + distance < cache.line as i64 {
        return true;
    }
    // Or both are in one part of it that is aligned.
    let known = first.1.known_from_below().min(cache.line.ilog2());
    let part = first.1.value & ((1 << known) - 1);
    let other = part as i64 + distance;
    other >= 0 && other < 1 << known
}

/// Whether two lines, of which it is not known that they are one, can be in one set.
fn may_meet(first: (Term, Bits), second: (Term, Bits), cache: Geometry) -> bool {
    let whole = cache.line * cache.sets;
    if let Some(distance) = first.0.distance(second.0) {
        // What is less than all sets apart is in others, or in the same line.
        let distance = (distance as i64).unsigned_abs();
        if distance <= whole - cache.line {
            return false;
        }
    }
    let sets = whole - cache.line;
    !first.1.differ(second.1, sets)
}
