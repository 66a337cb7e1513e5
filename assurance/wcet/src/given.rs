//! What a call that counts as a step knows of what its caller knows, and what it leaves, each in symbols of its own: so calls
//! that know the same are one.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::data::DataState;
use crate::held::{Held, Part};
use crate::values::{Origin, Symbol, Symbols, Term};

/// What a call knows of what its caller knows: in symbols of its own.
#[derive(Debug)]
pub struct Given {
    pub state: DataState,
    /// The caller's symbols, in the order of the call's.
    pub names: Rc<[Symbol]>,
}

impl DataState {
    /// The same in other symbols; what has none is left out.
    fn renamed(
        &self,
        symbols: &mut Symbols,
        name: &mut impl FnMut(&mut Symbols, Symbol) -> Option<Symbol>,
    ) -> Self {
        let mut term = |symbols: &mut Symbols, term: Term| -> Option<Term> {
            let symbol = match term.symbol {
                Some(symbol) => Some(symbols.renamed(symbol, name)?),
                None => None,
            };
            Some(Term { symbol, ..term })
        };
        let mut renamed = Self::new();
        renamed.is_forgetful = self.is_forgetful;
        for (to, from) in renamed.registers.iter_mut().zip(self.registers) {
            *to = from.and_then(|from| term(symbols, from));
        }
        for (&place, &value) in &self.memory {
            let both = term(symbols, place).zip(term(symbols, value));
            renamed.memory.extend(both);
        }
        for held in &self.held {
            let Some(at) = term(symbols, held.at) else {
                continue;
            };
            let parts = held.others.iter().map(|part| term(symbols, part.0));
            let mut others: Vec<Part> = parts.flatten().map(Part).collect();
            others.sort_unstable();
            others.dedup();
            renamed.held.push(Held {
                at,
                unknown: held.age() - others.len() as u64,
                others,
                ..*held
            });
        }
        renamed.held.sort_unstable();
        for (&symbol, &bits) in &self.bits {
            let symbol = term(symbols, Term::symbol(symbol)).and_then(|term| term.symbol);
            renamed.bits.extend(symbol.map(|symbol| (symbol, bits)));
        }
        for (&symbol, numbers) in &self.numbers {
            let symbol = term(symbols, Term::symbol(symbol)).and_then(|term| term.symbol);
            renamed
                .numbers
                .extend(symbol.map(|symbol| (symbol, numbers.clone())));
        }
        renamed
    }

    /// Forgets what nothing leads to any more: numbers that no register holds, nor a word of memory that is found by one.
    pub fn forget_lost(&mut self, symbols: &Symbols) {
        let mut found = BTreeSet::new();
        let add = |term: &Term, found: &mut BTreeSet<Symbol>| {
            let before = found.len();
            if let Some(symbol) = term.symbol {
                symbols.parts(symbol, found);
            }
            found.len() > before
        };
        for term in self.registers.iter().flatten() {
            add(term, &mut found);
        }
        let is_found = |term: &Term, found: &BTreeSet<Symbol>| {
            term.symbol
                .is_none_or(|symbol| symbols.is_made_of(symbol, found))
        };
        let mut has_more = true;
        while has_more {
            has_more = false;
            for (place, value) in &self.memory {
                if is_found(place, &found) {
                    has_more |= add(value, &mut found);
                }
            }
        }
        self.memory.retain(|place, _| is_found(place, &found));
        self.held.retain(|held| is_found(&held.at, &found));
        self.bits
            .retain(|&symbol, _| symbols.is_made_of(symbol, &found));
        self.numbers
            .retain(|&symbol, _| symbols.is_made_of(symbol, &found));
    }

    /// As a call knows it.
    pub fn given(&self, symbols: &mut Symbols) -> Given {
        let mut names: Vec<Symbol> = Vec::new();
        let state = self.renamed(symbols, &mut |symbols, symbol| {
            let known = names.iter().position(|&name| name == symbol);
            let number = known.unwrap_or_else(|| {
                names.push(symbol);
                names.len() - 1
            });
            Some(symbols.of(Origin::Given(number as u32)))
        });
        Given {
            state,
            names: names.into(),
        }
    }

    /// What a call out of a node leaves, as its caller knows it.
    pub fn left(&self, names: &[Symbol], node: usize, symbols: &mut Symbols) -> Self {
        self.renamed(symbols, &mut |symbols, inner| {
            name_of(inner, names, node, symbols)
        })
    }
}

/// What the caller calls a symbol of a call out of a node.
fn name_of(inner: Symbol, names: &[Symbol], node: usize, symbols: &mut Symbols) -> Option<Symbol> {
    match symbols.origin(inner) {
        Origin::Given(number) => names.get(number as usize).copied(),
        _ => Some(symbols.of(Origin::Left { node, inner })),
    }
}

/// A term of a call out of a node, as the caller knows it.
pub fn left(term: Term, names: &[Symbol], node: usize, symbols: &mut Symbols) -> Option<Term> {
    let symbol = match term.symbol {
        Some(symbol) => Some(symbols.renamed(symbol, &mut |symbols, inner| {
            name_of(inner, names, node, symbols)
        })?),
        None => None,
    };
    Some(Term { symbol, ..term })
}
