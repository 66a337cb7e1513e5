//! Mutant schemata: the source of a file in which each mutant is there, switched off.
//!
//! Where a mutant changes an expression, the expression becomes a choice between what it was and
//! what the mutant makes of it:
//!
//! ```text
//! a + b   =>   (if crate::mutants::on(7) { (a) - (b) } else { a + b })
//! ```
//!
//! Only one mutant is ever on, so what the mutant makes of it is made from the original text, and
//! other mutants inside of it are in the last branch only.

use std::fmt::Write;
use std::ops::Range;

use super::mutant::{Change, ConstFn, Mutant};

/// A file with its mutants built in.
#[derive(Debug, Default)]
pub struct Schema {
    pub text: String,
    /// Bytes of `text` that are there for a mutant alone.
    pub places: Vec<(Range<usize>, u32)>,
}

impl Schema {
    /// The mutant that the bytes `range` of the text belong to.
    pub fn mutant_at(&self, range: &Range<usize>) -> Option<u32> {
        self.places
            .iter()
            .filter(|(place, _)| place.start <= range.start && range.end <= place.end)
            .min_by_key(|(place, _)| place.len())
            .map(|&(_, id)| id)
    }
}

/// A change of the text, with others inside of it.
struct Site<'m> {
    range: Range<usize>,
    /// Mutants of the expression; empty if the site is an insertion or omission.
    choices: Vec<(u32, &'m str)>,
    /// What is inserted, and the mutant that it is for.
    insertion: Option<(u32, String)>,
}

/// Builds `mutants`, each with the number that switches it on, into `text`, and takes the `const`
/// off `plain_fns`.
pub fn build(text: &str, mutants: &[(u32, &Mutant)], plain_fns: &[&ConstFn]) -> Schema {
    let mut sites: Vec<Site> = Vec::new();
    for &(id, mutant) in mutants {
        match &mutant.change {
            Change::Expression { whole, text } => {
                // The mutants of an expression follow each other.
                match sites.last_mut() {
                    Some(last) if last.range == *whole && !last.choices.is_empty() => {
                        last.choices.push((id, text));
                    }
                    _ => sites.push(Site {
                        range: whole.clone(),
                        choices: vec![(id, text)],
                        insertion: None,
                    }),
                }
            }
            Change::Body { body, value, .. } => {
                let text = format!("if crate::mutants::on({id}) {{ return {value}; }} ");
                sites.push(Site::insertion(body.start, id, text));
            }
            Change::Arm { pattern, .. } => {
                let text = format!(" if !crate::mutants::on({id})");
                sites.push(Site::insertion(pattern.end, id, text));
            }
        }
    }
    sites.extend(plain_fns.iter().map(|function| Site {
        range: function.keyword.clone(),
        choices: Vec::new(),
        insertion: None,
    }));
    // Stable: among those of one range, those that were found first are outside.
    sites.sort_by_key(|site| (site.range.start, std::cmp::Reverse(site.range.end)));
    // What is inserted before an expression stands before it.
    sites.sort_by_key(|site| (site.range.start, site.insertion.is_none()));
    let mut schema = Schema::default();
    schema.emit(text, 0..text.len(), &mut sites.into_iter().peekable());
    schema
}

impl Site<'_> {
    fn insertion(at: usize, id: u32, text: String) -> Self {
        Site {
            range: at..at,
            choices: Vec::new(),
            insertion: Some((id, text)),
        }
    }
}

type Sites<'m> = std::iter::Peekable<std::vec::IntoIter<Site<'m>>>;

impl Schema {
    /// Emits `range` of `text` with the `sites` that lie in it.
    fn emit(&mut self, text: &str, range: Range<usize>, sites: &mut Sites) {
        let mut at = range.start;
        let inside = |site: &Site| site.range.end <= range.end && site.range.start <= range.end;
        while let Some(site) = sites.next_if(|site| inside(site)) {
            self.text.push_str(&text[at..site.range.start]);
            at = site.range.end;
            self.site(text, site, sites);
        }
        self.text.push_str(&text[at..range.end]);
    }

    fn site(&mut self, text: &str, site: Site, sites: &mut Sites) {
        if let Some((id, inserted)) = site.insertion {
            self.place(id, &inserted);
        } else if !site.choices.is_empty() {
            self.text.push('(');
            for (id, choice) in site.choices {
                // A `String` takes everything.
                let _ = write!(self.text, "if crate::mutants::on({id}) {{ ");
                self.place(id, choice);
                self.text.push_str(" } else ");
            }
            self.text.push_str("{ ");
            self.emit(text, site.range, sites);
            self.text.push_str(" })");
        }
    }

    fn place(&mut self, id: u32, text: &str) {
        let start = self.text.len();
        self.text.push_str(text);
        self.places.push((start..self.text.len(), id));
    }
}

/// `text` with `mutant` alone applied, as an ordinary change.
pub fn apply(text: &str, mutant: &Mutant) -> String {
    let (range, by) = match &mutant.change {
        Change::Expression { whole, text } => (whole, text.as_str()),
        Change::Body { body, value, .. } => (body, value.as_str()),
        Change::Arm { arm, .. } => (arm, ""),
    };
    format!("{}{by}{}", &text[..range.start], &text[range.end..])
}

#[cfg(test)]
mod tests {
    use super::super::generator::{Genre, Listed};
    use super::super::syntax;
    use super::*;

    /// The schema of `text`, of one line, with these mutants: kind, what is replaced (where it first stands), and
    /// by what.
    fn schema(text: &str, mutants: &[(Genre, &str, &str)]) -> String {
        let listed: Vec<Listed> = mutants
            .iter()
            .map(|&(genre, original, by)| Listed::in_line(text, genre, original, by))
            .collect();
        let listed: Vec<&Listed> = listed.iter().collect();
        let found = syntax::find("a.rs", text, &listed).unwrap();
        let numbered: Vec<_> = (0..).zip(&found.mutants).collect();
        let plain: Vec<_> = found.const_fns.iter().collect();
        let text = build(text, &numbered, &plain).text;
        text.replace("crate::mutants::", "")
    }

    #[test]
    fn a_body_returns_at_once() {
        assert_eq!(
            schema(
                "const fn f() -> u8 { x }",
                &[(Genre::FnValue, "x", "0"), (Genre::FnValue, "x", "1")]
            ),
            "fn f() -> u8 { if on(0) { return 0; } if on(1) { return 1; } x }"
        );
    }

    #[test]
    fn inner_mutants_stand_in_the_last_branch() {
        assert_eq!(
            schema(
                "fn f() { g(!(a == b)) }",
                &[
                    (Genre::FnValue, "g(!(a == b))", "()"),
                    (Genre::UnaryOperator, "!", ""),
                    (Genre::BinaryOperator, "==", "!=")
                ]
            ),
            "fn f() { if on(0) { return (); } g((if on(1) { (a == b) } else \
             { !((if on(2) { (a) != (b) } else { a == b })) })) }"
        );
    }

    #[test]
    fn operators_at_one_start_nest() {
        assert_eq!(
            schema(
                "fn f() { a != b && c }",
                &[
                    (Genre::BinaryOperator, "&&", "||"),
                    (Genre::BinaryOperator, "!=", "==")
                ]
            ),
            "fn f() { (if on(0) { (a != b) || (c) } else \
             { (if on(1) { (a) == (b) } else { a != b }) && c }) }"
        );
    }

    #[test]
    fn arms_are_passed_over_and_guards_replaced() {
        assert_eq!(
            schema(
                "fn f() { match x { 1 => y, z if z == 3 => y, _ => w } }",
                &[
                    (Genre::MatchArm, "1 => y,", ""),
                    (Genre::MatchArmGuard, "z == 3", "true"),
                    (Genre::MatchArmGuard, "z == 3", "false"),
                    (Genre::BinaryOperator, "==", "!=")
                ]
            ),
            "fn f() { match x { 1 if !on(0) => y, z if (if on(1) { true } \
             else if on(2) { false } else if on(3) { (z) != (3) } else { z == 3 }) => y, \
             _ => w } }"
        );
    }

    #[test]
    fn an_error_belongs_to_the_innermost_mutant() {
        let schema = Schema {
            text: String::new(),
            places: vec![(0..10, 1), (3..6, 2)],
        };
        assert_eq!(schema.mutant_at(&(4..5)), Some(2));
        assert_eq!(schema.mutant_at(&(1..5)), Some(1));
        assert_eq!(schema.mutant_at(&(9..12)), None);
    }
}
