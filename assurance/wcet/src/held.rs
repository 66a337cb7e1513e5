//! Lines that are in a data cache for sure, each with what may have driven it out since (Ferdinand and Wilhelm 1999: must
//! analysis), where most addresses are a symbol and a number.
//!
//! A line stays until as many others of its set were used as the cache has ways. What is less than all sets apart from another is in
//! another set, or in the same line: so of a part of memory, however much of it is used, one line counts.

use sandglass_cache::Geometry;

use crate::data::DataState;
use crate::streams::Stream;
use crate::values::{Bits, Origin, Place, Symbol, Symbols, Term};

/// A line that is in the cache; or was used on a way to here, and is there or not.
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
    /// It was used on every way to here: else this is so if it was used.
    pub is_sure: bool,
}

impl Held {
    /// How many others of its set may have been used since.
    pub fn age(&self) -> u64 {
        self.others.len() as u64 + self.unknown
    }

    /// Whether something is to be known of it still: if it may have been driven out, only that.
    fn remains(&mut self, cache: Geometry, symbols: &Symbols) -> bool {
        if self.age() < cache.ways {
            return true;
        }
        self.is_sure = false;
        self.others.clear();
        self.unknown = cache.ways;
        symbols.is_followed(self.at)
    }

    /// A line of a part of memory is used that may be in the same set.
    fn meets(&mut self, part: Part) {
        if let Err(place) = self.others.binary_search(&part) {
            self.others.insert(place, part);
        }
    }
}

/// What is accessed from a multiple of [`PART`] on, from what a symbol points to: so many bytes, or an array that ends
/// somewhat behind. It is less than all sets hold.
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
        let held = self.line_of((place, bits), cache);
        held.filter(|held| held.is_sure && held.age() < cache.ways)
    }

    /// What is known of the line of an address.
    pub fn line_of(&self, place: (Term, Bits), cache: Geometry) -> Option<&Held> {
        let symbol = place.0.symbol;
        let first = self.held.partition_point(|held| held.at.symbol < symbol);
        let mut near = self.held[first..]
            .iter()
            .take_while(|held| held.at.symbol == symbol);
        near.find(|held| is_one_line((held.at, held.bits), place, cache))
    }

    /// Where the line of an address begins, as far as that is known; and whether the line is there if it was used at all.
    pub fn first_use(&self, place: Term, cache: Geometry, symbols: &Symbols) -> (Term, bool) {
        let place = self.within_line(place, cache, symbols);
        let bits = self.bits_of(place, symbols);
        // What may be the same line, by what is known now, may have had the same name when more was known.
        let mut near = self.held.iter().filter(|held| {
            let distance = held.at.distance(place);
            distance.is_some_and(|it| (it as i64).unsigned_abs() < cache.line)
        });
        let stays = near.all(|held| held.age() < cache.ways)
            && match self.line_of((place, bits), cache) {
                Some(held) => held.age() < cache.ways,
                None => !self.is_forgetful,
            };
        let line = match 1 << bits.known_from_below().min(63) >= cache.line {
            true => place.add((bits.value & (cache.line - 1)).wrapping_neg()),
            false => place,
        };
        (line, stays && !symbols.changes(line))
    }

    /// A loop is entered that makes these accesses: the lines of the turn before its first are brought.
    pub fn begins(&mut self, streams: &[Stream], cache: Geometry, symbols: &mut Symbols) {
        for stream in streams {
            if let Some(at) = self.before_turn(stream, symbols) {
                self.access(at, cache, symbols);
            }
        }
    }

    /// Whether an access of a loop is the first to its line, if that is not there: the line that the turn before ended in is there,
    /// and so is each of those of this turn that may be the same, if it was used in this turn.
    pub fn is_first(&self, at: Term, stream: &Stream, cache: Geometry, symbols: &Symbols) -> bool {
        let is_near = |other: &&Term| {
            let distance = at.distance(**other).map_or(0, |it| it as i64);
            distance.unsigned_abs() < cache.line
        };
        let is_there = |other: &Term| {
            let other = self.within_line(*other, cache, symbols);
            match self.line_of((other, self.bits_of(other, symbols)), cache) {
                Some(held) => held.is_sure && held.age() < cache.ways,
                None => !self.is_forgetful,
            }
        };
        let before = self.held(stream.before, cache, symbols);
        before.is_some() && stream.all.iter().filter(is_near).all(is_there)
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
        let line = self.line_of((place, bits), cache);
        let is_hit = line.is_some_and(|held| held.is_sure) || self.holds_any(place, cache);
        self.held.retain(|held| !is_it(held));
        self.age_others((place, bits), cache, symbols);
        self.hold((place, bits), true);
        is_hit
    }

    /// The line of an address is used, or not. Whether it was there for sure.
    pub fn may_access(&mut self, place: Term, cache: Geometry, symbols: &Symbols) -> bool {
        let place = self.within_line(place, cache, symbols);
        let bits = self.bits_of(place, symbols);
        let line = self.line_of((place, bits), cache);
        let is_known = line.is_some();
        let is_hit = line.is_some_and(|held| held.is_sure) || self.holds_any(place, cache);
        self.age_others((place, bits), cache, symbols);
        if !is_known {
            self.hold((place, bits), false);
        }
        is_hit
    }

    /// A line is used that is none of those that are known of.
    fn hold(&mut self, (at, bits): (Term, Bits), is_sure: bool) {
        let new = Held {
            at,
            bits,
            others: Vec::new(),
            unknown: 0,
            is_sure,
        };
        let place = self.held.partition_point(|held| held.at < at);
        self.held.insert(place, new);
    }

    /// All lines but that of an address, which is used, may be driven out by it.
    fn age_others(&mut self, used: (Term, Bits), cache: Geometry, symbols: &Symbols) {
        let part = self.part_of(used.0, cache, symbols);
        let mut all = std::mem::take(&mut self.held);
        all.retain_mut(|held| {
            let is_other = || !is_one_line((held.at, held.bits), used, cache);
            if held.age() < cache.ways && is_other() && self.may_meet(held, used, cache, symbols) {
                match part {
                    Some(part) => held.meets(part),
                    None => held.unknown += 1,
                }
            }
            held.remains(cache, symbols)
        });
        self.held = all;
    }

    /// The part of memory that an address is in; `None` if no part fits into a way.
    fn part_of(&self, place: Term, cache: Geometry, symbols: &Symbols) -> Option<Part> {
        if cache.line * cache.sets < 2 * PART {
            return None;
        }
        // Wherever an array is accessed, if it is behind something: it counts with that.
        let mut spans = self.spans(place, symbols).into_iter();
        let array = spans.find(|span| {
            let first = Part::of(span.first()).0.plus;
            let base = span.first();
            let is_small = span.most - first <= farthest(cache);
            span.least < span.most && is_small && !symbols.changes(base)
        });
        Some(Part::of(array.map_or(place, |span| span.first())))
    }

    /// Where an address can be, by what it is known to be behind.
    fn spans(&self, place: Term, symbols: &Symbols) -> Vec<Span> {
        let at = |base: Option<Symbol>, (least, most): (u64, u64)| {
            let most = most.checked_add(place.plus)?;
            Some(Span {
                base,
                least: least + place.plus,
                most,
            })
        };
        let Some(symbol) = place.symbol else {
            return at(None, (0, 0)).into_iter().collect();
        };
        let mut spans = Vec::new();
        let range = |symbol: Symbol| self.bits_of(Term::symbol(symbol), symbols).range();
        spans.extend(at(Some(symbol), (0, 0)));
        spans.extend(at(None, range(symbol)));
        if let Origin::Added(first, second) = symbols.origin(symbol) {
            spans.extend(at(Some(first), range(second)));
            spans.extend(at(Some(second), range(first)));
        }
        spans
    }

    /// Whether a line, of which it is not known that it is that of an address, can be in its set.
    fn may_meet(
        &self,
        held: &Held,
        place: (Term, Bits),
        cache: Geometry,
        symbols: &Symbols,
    ) -> bool {
        let sets = cache.line * cache.sets - cache.line;
        if held.bits.differ(place.1, sets) {
            return false;
        }
        let own = self.spans(held.at, symbols);
        let other = self.spans(place.0, symbols);
        let mut pairs = own
            .iter()
            .flat_map(|own| other.iter().map(move |other| (own, other)));
        !pairs.any(|(own, other)| own.base == other.base && own.is_beside(other, cache))
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
                let mut sure = self.held.iter().filter(|held| held.is_sure);
                sure.any(|held| match held.at.symbol {
                    None => cache.line_of(held.at.plus) == line(place.plus),
                    symbol => symbol == place.symbol && line(held.at.plus) == line(place.plus),
                })
            })
        })
    }

    /// So many lines of each set are used, nobody knows which.
    pub fn age_all(&mut self, by: u64, cache: Geometry, symbols: &Symbols) {
        if by > 0 {
            self.held.retain_mut(|held| {
                held.unknown += by;
                held.remains(cache, symbols)
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

/// So many bytes behind what is at an address there is no other line in the same set.
const fn farthest(cache: Geometry) -> u64 {
    cache.line * cache.sets - cache.line
}

/// From where to where an address can be, from what a symbol points to.
#[derive(Debug, Clone, Copy)]
struct Span {
    base: Option<Symbol>,
    least: u64,
    most: u64,
}

impl Span {
    /// Whether what is in one and what is in the other is in different sets, or in one line: unless it is all sets apart, or
    /// several times that.
    fn is_beside(self, other: &Self, cache: Geometry) -> bool {
        let (way, within) = (cache.line * cache.sets, cache.line - 1);
        let [way, within] = [way, within].map(i128::from);
        let ends = |span: Self| [span.least, span.most].map(|end| i128::from(end as i64));
        let ([own_least, own_most], [least, most]) = (ends(self), ends(*other));
        // How far the other may be behind this.
        let (first, last) = (least - own_most - within, most - own_least + within);
        let multiples = (-(-first).div_euclid(way), last.div_euclid(way));
        let has_none = multiples.0 > multiples.1 || multiples == (0, 0);
        own_least <= own_most && least <= most && has_none
    }

    const fn first(self) -> Term {
        Term {
            symbol: self.base,
            plus: self.least,
        }
    }
}
