//! What registers and memory hold, by which accesses of one line of a data cache are told from others.
//!
//! A line is known by the address of an access to it: a number, or a symbol and a number. Of two such it is mostly known
//! whether they are in one line, and whether they can be in one set: what has one symbol has a known distance, and pointers
//! to objects are aligned as the compiler says ([`crate::pointers`]).

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use sandglass_cache::Geometry;

use crate::code::{Access, AtMost, Compared, Instruction, Made, Register, Sum, Value, REGISTERS};
use crate::held::{spanned, Held};
use crate::pointers::Pointer;
use crate::streams::Streams;
use crate::values::{Bits, Origin, Region, Symbol, Symbols, Term};

/// Words of memory of which is known what they hold, at most.
const MOST_WORDS: usize = 96;

/// Where the kernel maps all memory, on any architecture. What it finds by adding an address to that, and at most so many bytes
/// of an object, is an object or memory of user level. Numbers above that are addresses of its own stack and statics, if they
/// are none of the last, which go back by so many bytes.
const WINDOW: u64 = 0xffff_ff80_0000_0000;
const LARGEST: u64 = 1 << 20;

/// Below, there is no memory: what points there does not point to anything.
const NOWHERE: u64 = 4096;

/// What is at an address to which this number was added, where these are the kernel's stacks.
fn region_of(plus: u64, stacks: &Range<u64>) -> Region {
    const OWN: u64 = WINDOW + LARGEST;
    const BACK: u64 = LARGEST.wrapping_neg();
    match plus {
        WINDOW..OWN => Region::GIVEN,
        OWN..BACK if stacks.contains(&plus) || stacks.end == plus => Region::STACK,
        OWN..BACK => Region::STATIC,
        _ => Region::ANYWHERE,
    }
}

/// What is known at a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DataState {
    pub registers: [Option<Term>; REGISTERS],
    pub memory: BTreeMap<Term, Term>,
    pub bits: BTreeMap<Symbol, Bits>,
    /// What a symbol stands for, if it is one of a few numbers.
    pub numbers: BTreeMap<Symbol, Rc<[u64]>>,
    /// In the order of their addresses.
    pub held: Vec<Held>,
    /// More lines may have been used than that says.
    pub is_forgetful: bool,
}

/// What may have been missing in the cache.
#[derive(Debug, Default)]
pub struct Misses {
    /// Addresses.
    pub at: Vec<Term>,
    /// Lines, and whether each is there if it was used before.
    pub lines: Vec<(Term, bool)>,
    /// And so many more.
    pub more: u64,
}

/// Where something is executed, and with which cache.
pub struct At<'a> {
    pub symbols: &'a mut Symbols,
    pub cache: Geometry,
    /// The node of the network.
    pub node: usize,
    pub stack_pointer: Register,
    /// Accesses that are paid for where their loops are entered.
    pub streams: &'a Streams,
    pub misses: &'a mut Misses,
}

impl DataState {
    /// Nothing.
    pub fn new() -> Self {
        Self {
            registers: [None; REGISTERS],
            memory: BTreeMap::new(),
            bits: BTreeMap::new(),
            numbers: BTreeMap::new(),
            held: Vec::new(),
            is_forgetful: false,
        }
    }

    /// Forgets what is known, but for numbers in registers, as the stack pointer mostly is.
    pub fn give_up(&mut self) {
        let numbers = self
            .registers
            .map(|term| term.filter(|term| term.symbol.is_none()));
        *self = Self {
            registers: numbers,
            is_forgetful: true,
            ..Self::new()
        };
    }

    /// Anything may be in the cache.
    pub fn cache_is_unknown(&mut self) {
        self.held.clear();
        self.is_forgetful = false;
    }

    /// An instruction is executed, of whose registers the compiler says that they are these pointers.
    pub fn executes(&mut self, instruction: &Instruction, pointers: &[Pointer], at: &mut At) {
        for pointer in pointers {
            self.points(pointer, instruction, at);
        }
        let places = self.places(instruction, at);
        for (access, &place) in instruction.accesses.iter().zip(&places) {
            if let Some(access) = access {
                self.accesses(access, place, at);
            }
        }
        let more = u64::from(instruction.more_accesses);
        at.misses.more += more;
        self.age_all(more, at.cache, at.symbols);
        let results = self.results(instruction, &places, at);
        self.write(instruction, &places, 1, at);
        self.become_of(instruction, results);
    }

    /// An instruction repeats itself so many times, from word to word. With two ways, its lines stay while it needs them,
    /// wherever they are; with one, what it reads and what it writes may drive each other out.
    pub fn repeats(&mut self, instruction: &Instruction, times: u64, at: &mut At) {
        let places = self.places(instruction, at);
        let accesses: Vec<&Access> = instruction.accesses.iter().flatten().collect();
        let spans: Vec<u64> = accesses
            .iter()
            .map(|access| spanned(u64::from(access.bytes).max(1) * times, at.cache))
            .collect();
        let each_set = spans.iter().map(|span| span.div_ceil(at.cache.sets));
        self.age_all(each_set.sum(), at.cache, at.symbols);
        at.misses.more += match accesses.len() as u64 <= at.cache.ways {
            true => spans.iter().sum(),
            false => times * accesses.len() as u64 * 2,
        };
        let results = self.results(instruction, &[None; 2], at);
        self.write(instruction, &places, times, at);
        self.become_of(instruction, results);
    }

    /// The branch at an address says something of a register.
    pub fn is_at_most(&mut self, said: &AtMost, address: u64, at: &mut At) {
        let Term {
            symbol: Some(symbol),
            plus: 0,
        } = self.named(said.register, address, at)
        else {
            return;
        };
        let compared = match said.compared {
            Compared::Number(number) => Some(number),
            Compared::Register(other) => self.registers[usize::from(other)]
                .map(|term| self.bits_of(term, at.symbols).range().1),
        };
        // It is less than what is not zero.
        let Some(most) = compared.and_then(|it| it.checked_sub(said.is_less.into())) else {
            return;
        };
        let above = match most.checked_ilog2() {
            Some(bit) => u64::MAX.checked_shl(bit + 1).unwrap_or(0),
            None => u64::MAX,
        };
        let known = Bits::of(!above, 0);
        self.learn(symbol, known, at.symbols);
    }

    /// The compiler says that a register points to what is aligned.
    fn points(&mut self, pointer: &Pointer, instruction: &Instruction, at: &mut At) {
        let term = self.named(pointer.register, instruction.address, at);
        let Some(symbol) = term.symbol else {
            return;
        };
        let aligned = Bits::of(!pointer.zeros, 0);
        let before = term.plus.wrapping_add(pointer.plus);
        let region = match pointer.is_given {
            true => Region::GIVEN,
            false => Region::ANYWHERE,
        };
        let known = aligned
            .add(Bits::number(before.wrapping_neg()))
            .within(region);
        self.learn(symbol, known, at.symbols);
    }

    fn learn(&mut self, symbol: Symbol, known: Bits, symbols: &Symbols) {
        let before = self.bits_of(Term::symbol(symbol), symbols);
        let after = before.and(known);
        if after == before {
            return;
        }
        self.bits.insert(symbol, after);
        for number in 0..self.held.len() {
            let at = self.held[number].at;
            if at.symbol.is_some_and(|it| symbols.is_of(it, symbol)) {
                self.held[number].bits = self.bits_of(at, symbols);
            }
        }
    }

    /// What is known of the bits of a number.
    pub fn bits_of(&self, term: Term, symbols: &Symbols) -> Bits {
        let plus = Bits::number(term.plus).within(region_of(term.plus, symbols.stacks()));
        let Some(symbol) = term.symbol else {
            // What points nowhere points to no stack.
            return match term.plus < NOWHERE {
                true => plus.within(Region::GIVEN),
                false => plus,
            };
        };
        let own = self.bits.get(&symbol).copied().unwrap_or(Bits::UNKNOWN);
        let made = match symbols.origin(symbol) {
            Origin::Scaled(of, by) => self.bits_of(Term::symbol(of), symbols).shifted_left(by),
            Origin::Added(first, second) => self
                .bits_of(Term::symbol(first), symbols)
                .add(self.bits_of(Term::symbol(second), symbols)),
            _ => Bits::UNKNOWN,
        };
        own.and(made).add(plus)
    }

    /// The least and the greatest number that a term can be, with some distance from the last number of all; `None` if that is
    /// not known.
    fn range_of(&self, term: Term, symbols: &Symbols) -> Option<(u64, u64)> {
        const MOST: u64 = u64::MAX - LARGEST;
        let (least, most) = match term.symbol {
            Some(symbol) => self.bits_of(Term::symbol(symbol), symbols).range(),
            None => (0, 0),
        };
        let most = most.checked_add(term.plus).filter(|&most| most < MOST)?;
        Some((least + term.plus, most))
    }

    /// What a term stands for, if it is one of a few numbers.
    pub fn numbers_of(&self, term: Term) -> Option<Vec<u64>> {
        let Some(symbol) = term.symbol else {
            return Some(vec![term.plus]);
        };
        let numbers = self.numbers.get(&symbol)?.iter();
        Some(numbers.map(|it| it.wrapping_add(term.plus)).collect())
    }

    /// What a register holds, which has a symbol from now on.
    fn named(&mut self, register: Register, address: u64, at: &mut At) -> Term {
        if let Some(term) = self.registers[usize::from(register)] {
            return term;
        }
        let symbol = self.made(address, FOUND | register, at);
        if register == at.stack_pointer {
            self.bits
                .insert(symbol, Bits::UNKNOWN.within(Region::STACK));
        }
        let term = Term::symbol(symbol);
        self.registers[usize::from(register)] = Some(term);
        term
    }

    /// A symbol for something that an instruction makes or finds.
    fn made(&mut self, address: u64, which: u8, at: &mut At) -> Symbol {
        let node = at.node;
        let origin = Origin::Made {
            node,
            address,
            which,
        };
        let symbol = at.symbols.of(origin);
        self.forget(at.symbols, &|other| *other == origin);
        symbol
    }

    /// Forgets what symbols with such an origin were.
    pub fn forget(&mut self, symbols: &Symbols, is_it: &impl Fn(&Origin) -> bool) {
        let is_gone = |term: &Term| term.symbol.is_some_and(|symbol| symbols.has(symbol, is_it));
        for register in &mut self.registers {
            *register = register.filter(|term| !is_gone(term));
        }
        self.memory
            .retain(|place, value| !is_gone(place) && !is_gone(value));
        self.held.retain(|held| !is_gone(&held.at));
        for held in &mut self.held {
            let before = held.others.len();
            held.others.retain(|part| !is_gone(&part.0));
            held.unknown += (before - held.others.len()) as u64;
        }
        self.bits.retain(|&symbol, _| !symbols.has(symbol, is_it));
        self.numbers
            .retain(|&symbol, _| !symbols.has(symbol, is_it));
    }

    fn sum(&mut self, sum: Sum, address: u64, at: &mut At) -> Option<Term> {
        let mut term = Term::number(sum.plus);
        if let Some(base) = sum.base {
            let base = self.named(base, address, at);
            term = base.add(sum.plus);
        }
        if let Some((index, shift)) = sum.index {
            let whole = self.named(index, address, at);
            let by = match sum.is_half {
                true => self.half(Some(whole), address, INDEX | index, at)?,
                false => whole,
            };
            let index = at.symbols.scaled(by, shift)?;
            term = at.symbols.added(term, index)?;
        }
        Some(term)
    }

    /// The addresses of an instruction's accesses.
    fn places(&mut self, instruction: &Instruction, at: &mut At) -> [Option<Term>; 2] {
        instruction
            .accesses
            .map(|access| self.sum(access?.place?, instruction.address, at))
    }

    /// Reads or writes.
    fn accesses(&mut self, access: &Access, place: Option<Term>, at: &mut At) {
        let bytes = u64::from(access.bytes);
        let Some(place) = place else {
            let lines = match access.is_at_once() {
                true => 1,
                false => spanned(bytes, at.cache),
            };
            at.misses.more += lines;
            self.age_all(lines.div_ceil(at.cache.sets), at.cache, at.symbols);
            return;
        };
        let mut lines = Vec::new();
        for each in (0..bytes).step_by(access.at_once.into()) {
            let word = place.add(each);
            let line = self.first_use(word, at.cache, at.symbols);
            let stream = at.streams.with(word, at.node);
            let is_paid = stream.is_some_and(|it| self.is_first(word, it, at.cache, at.symbols));
            let is_hit = match each < access.sure.into() {
                true => self.access(word, at.cache, at.symbols),
                false => self.may_access(word, at.cache, at.symbols),
            };
            if !is_hit && !is_paid {
                at.misses.at.push(word);
                lines.push(line);
            }
        }
        let most = spanned(bytes, at.cache);
        match lines.len() as u64 <= most {
            true => at.misses.lines.extend(lines),
            false => at.misses.more += most,
        }
    }

    /// What an instruction makes of registers.
    fn results(
        &mut self,
        instruction: &Instruction,
        places: &[Option<Term>; 2],
        at: &mut At,
    ) -> [Option<(Register, Option<Term>)>; 3] {
        let mut results: [Option<(Register, Option<Term>)>; 3] = [None; 3];
        let known = instruction.changes.known.iter().enumerate();
        for (number, made) in known.filter_map(|(number, made)| Some((number, (*made)?))) {
            let mut value = self.result(instruction, number as u8, made, places, at);
            if made.is_half {
                value = self.half(value, instruction.address, HALF | number as u8, at);
            }
            // What was found before may be made of what has the name of this.
            let here = (at.node, instruction.address);
            let is_it = |which: u8| which & !HALF == number as u8;
            for (_, before) in results.iter_mut().flatten() {
                *before = before.filter(|&term| !is_made(term, here, is_it, at.symbols));
            }
            results[number] = Some((made.register, value));
        }
        results
    }

    fn result(
        &mut self,
        instruction: &Instruction,
        number: u8,
        made: Made,
        places: &[Option<Term>; 2],
        at: &mut At,
    ) -> Option<Term> {
        let address = instruction.address;
        let half = match made.is_half {
            true => u32::MAX.into(),
            false => u64::MAX,
        };
        let own = |this: &Self, register: Register| this.registers[usize::from(register)];
        let of = |this: &Self, register: Register| {
            let bits = own(this, register).map_or(Bits::UNKNOWN, |it| this.bits_of(it, at.symbols));
            bits.masked(half)
        };
        let bits = match made.value {
            Value::Unknown => return None,
            Value::Sum(Sum {
                base: None,
                index: None,
                plus,
                ..
            }) => return Some(Term::number(plus)),
            Value::Sum(sum) => return self.sum(sum, address, at),
            Value::Loaded(word) => {
                let place = places[0]?.add(u64::from(word) * WORD);
                // The address may be made of what this instruction, or part of it, made before.
                let here = (at.node, address);
                let is_old = is_made(place, here, |which| which < FOUND, at.symbols);
                if let Some(&known) = self.memory.get(&place).filter(|_| !is_old) {
                    return Some(known);
                }
                let loaded = self.made(address, number, at);
                if !is_old {
                    self.keep(place, Term::symbol(loaded));
                }
                return Some(Term::symbol(loaded));
            }
            Value::Masked(register, mask) => of(self, register).masked(mask),
            Value::ShiftedRight(register, by) => of(self, register).shifted_right(by),
            Value::Narrow(bits) => {
                let above = u64::MAX.checked_shl(bits.into()).unwrap_or(0);
                Bits::of(!above, 0)
            }
            Value::Inserted(register, mask, inserted) => {
                let before = of(self, register).masked(!mask);
                Bits::of(before.unknown, before.value | inserted)
            }
            Value::Combined(first, second, mask) => {
                let (first, second) =
                    (of(self, first).masked(!mask), of(self, second).masked(mask));
                Bits::of(first.unknown | second.unknown, first.value | second.value)
            }
            Value::Part(register) => {
                let all = of(self, register);
                Bits::of(all.unknown | all.value, 0)
            }
            Value::Either(first, second) => {
                let (one, other) = (own(self, first), own(self, second));
                if one == other {
                    return one;
                }
                of(self, first).or(of(self, second))
            }
            Value::Set(register, set) => {
                let before = of(self, register);
                // What is zero is counted up.
                if (before.unknown | before.value) & set == 0 {
                    return Some(own(self, register)?.add(set));
                }
                Bits::of(before.unknown & !set, before.value | set)
            }
        };
        // A mask may leave all that is there.
        if let Value::Masked(register, mask) = made.value {
            let all = of(self, register);
            if (all.unknown | all.value) & !mask == 0 {
                return own(self, register);
            }
        }
        Some(self.known(bits, address, number, at))
    }

    /// Something of which these bits are known.
    fn known(&mut self, bits: Bits, address: u64, which: u8, at: &mut At) -> Term {
        if bits.unknown == 0 {
            return Term::number(bits.value);
        }
        let symbol = self.made(address, which, at);
        self.bits.insert(symbol, bits);
        Term::symbol(symbol)
    }

    /// The lower 32 bits of something.
    fn half(&mut self, value: Option<Term>, address: u64, which: u8, at: &mut At) -> Option<Term> {
        let bits = match value {
            Some(term) => {
                let bits = self.bits_of(term, at.symbols);
                if bits.fits(32) {
                    return value;
                }
                bits
            }
            None => Bits::UNKNOWN,
        };
        let half = bits.masked(u32::MAX.into()).within(Region::ANYWHERE);
        Some(self.known(half, address, which, at))
    }

    fn keep(&mut self, place: Term, value: Term) {
        if self.memory.len() >= MOST_WORDS {
            self.memory.pop_last();
        }
        self.memory.insert(place, value);
    }

    /// What an instruction writes to memory, so many times from word to word.
    fn write(
        &mut self,
        instruction: &Instruction,
        places: &[Option<Term>; 2],
        times: u64,
        at: &mut At,
    ) {
        for (access, &place) in instruction.accesses.iter().zip(places) {
            let Some(access) = access.as_ref().filter(|access| access.writes) else {
                continue;
            };
            let Some(place) = place else {
                self.memory.clear();
                continue;
            };
            let bytes = u64::from(access.bytes).max(1) * times;
            if bytes == 0 {
                continue;
            }
            let written = (place, self.bits_of(place, at.symbols), bytes);
            let written_range = self.range_of(place, at.symbols);
            let memory = std::mem::take(&mut self.memory);
            let stays = |&(word, _): &(Term, Term)| {
                let bits = self.bits_of(word, at.symbols);
                let is_apart = || {
                    let (least, most) = written_range?;
                    let (first, last) = self.range_of(word, at.symbols)?;
                    Some(last + (WORD - 1) < least || most + (bytes - 1) < first)
                };
                is_apart() == Some(true) || !may_overlap((word, bits, WORD), written)
            };
            self.memory = memory.into_iter().filter(stays).collect();
            if times > 1 {
                continue;
            }
            for (word, stored) in access.stored.iter().enumerate() {
                let Some(stored) = *stored else { continue };
                let Some(value) = self.sum(stored, instruction.address, at) else {
                    continue;
                };
                // What it makes of registers may have the name of something that this is made of.
                let here = (at.node, instruction.address);
                let is_old = |term| is_made(term, here, |which| which < FOUND, at.symbols);
                if !is_old(place) && !is_old(value) {
                    self.keep(place.add(word as u64 * WORD), value);
                }
            }
        }
        if instruction.more_accesses > 0 {
            self.memory.clear();
        }
    }

    fn become_of(
        &mut self,
        instruction: &Instruction,
        results: [Option<(Register, Option<Term>)>; 3],
    ) {
        for register in 0..REGISTERS {
            if instruction.changes.lost >> register & 1 == 1 {
                self.registers[register] = None;
            }
        }
        for (register, value) in results.into_iter().flatten() {
            self.registers[usize::from(register)] = value;
        }
    }
}

/// Of what an instruction finds in a register, besides its number.
const FOUND: u8 = 0x80;
/// Of the lower half of what it makes, besides the number of that.
const HALF: u8 = 0x40;
/// Of the lower half of an index, besides the register's number.
const INDEX: u8 = 0xa0;

/// Bytes of a word.
const WORD: u64 = 8;

/// Whether a term is made of what an instruction of a node made: of that with one of these numbers.
fn is_made(term: Term, by: (usize, u64), is_it: impl Fn(u8) -> bool, symbols: &Symbols) -> bool {
    let is_of = |origin: &Origin| matches!(*origin, Origin::Made { node, address, which } if (node, address) == by && is_it(which));
    term.symbol
        .is_some_and(|symbol| symbols.has(symbol, &is_of))
}

/// Whether so many bytes at two addresses can overlap.
fn may_overlap(first: (Term, Bits, u64), second: (Term, Bits, u64)) -> bool {
    if let Some(distance) = first.0.distance(second.0) {
        return distance < first.2 || distance.wrapping_neg() < second.2;
    }
    if first.1.region.is_apart(second.1.region) {
        return false;
    }
    let known = first
        .1
        .known_from_below()
        .min(second.1.known_from_below())
        .min(63);
    let modulus = 1_u64 << known;
    let distance = second.1.value.wrapping_sub(first.1.value) & (modulus - 1);
    distance < first.2 || modulus - distance < second.2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::InstructionSet;

    /// Executes words, all of which are in one node, at these addresses.
    fn executed(code: &[(u64, u32)]) -> (DataState, Misses) {
        let mut symbols = Symbols::new(0..0);
        let (streams, mut misses) = (Streams::default(), Misses::default());
        let mut state = DataState::new();
        for &(address, word) in code {
            let instruction = InstructionSet::Aarch64.decode(&word.to_le_bytes(), address)[0];
            let mut at = At {
                symbols: &mut symbols,
                cache: Geometry {
                    line: 64,
                    sets: 128,
                    ways: 4,
                },
                node: 0,
                stack_pointer: 31,
                streams: &streams,
                misses: &mut misses,
            };
            state.executes(&instruction, &[], &mut at);
        }
        (state, misses)
    }

    fn after(code: &[(u64, u32)]) -> DataState {
        executed(code).0
    }

    /// A pair of halves is aligned as a half, so it may be in two lines.
    #[test]
    fn a_pair_of_halves_may_be_in_two_lines() {
        // mov x2, #4096; stp w0, w1, [x2, #60]
        let (_, misses) = executed(&[(0, 0xd282_0002), (4, 0x2907_8440)]);
        assert_eq!(misses.at.len() as u64 + misses.more, 2);
    }

    /// What an instruction makes has the name of what it made before, of which its address, or what it makes besides, may be
    /// made.
    #[test]
    fn what_is_made_anew_is_no_part_of_what_was_before() {
        // ldp x0, x1, [x0], twice; ldr x2, [x0, #8]
        let state = after(&[(0, 0xa940_0400), (0, 0xa940_0400), (4, 0xf940_0402)]);
        assert_ne!(state.registers[2], state.registers[1], "of the next one");
        // ldr x1, [x3], #8; mov x3, x1; and the first again
        let state = after(&[(0, 0xf840_8461), (4, 0xaa01_03e3), (0, 0xf840_8461)]);
        let both = state.registers[1].zip(state.registers[3]);
        let distance = both.and_then(|(loaded, moved)| loaded.distance(moved));
        assert_eq!(distance, None, "what is loaded may be anything");
    }
}
