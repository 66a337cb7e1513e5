//! What cargo-mutants does not say of a mutant, and a [schema](super::schema) must know: the whole
//! expression that an operator belongs to, and whether the compiler evaluates the place.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use anyhow::{Context, Result};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Pat, Signature};

use super::generator::{Genre, Listed, Position};
use super::mutant::{Change, ConstFn, Found, Mutant};

/// Bytes of a file.
type Bytes = Range<usize>;

/// Reads `text`, the file `path` of the repository, for the mutants that are listed of it.
///
/// # Errors
/// It is not Rust, or a mutant is of something that is not there.
pub fn find(path: &str, text: &str, listed: &[&Listed]) -> Result<Found> {
    let file = syn::parse_file(text).with_context(|| format!("cannot parse {path}"))?;
    let mut places = Places {
        text,
        ..Places::default()
    };
    places.visit_file(&file);
    let lines = Lines::new(text);
    let mut mutants = Vec::new();
    for listed in listed {
        let mutant = places.mutant(listed, &lines);
        mutants.push(mutant.with_context(|| format!("cannot find `{}`", listed.name))?);
    }
    number_equals(&mut mutants);
    // A schema is built from the outside to the inside. Stable: equal ones stay together.
    mutants.sort_by_key(|mutant| {
        let place = mutant.change.place();
        (place.start, std::cmp::Reverse(place.end))
    });
    Ok(Found {
        mutants,
        const_fns: places.const_fns(),
    })
}

/// Appends ` #2`, ` #3` to names that are there already.
fn number_equals(mutants: &mut [Mutant]) {
    let mut seen = BTreeMap::<String, usize>::new();
    for mutant in mutants {
        let count = seen.entry(mutant.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            mutant.name = format!("{} #{count}", mutant.name);
        }
    }
}

/// Where lines begin.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str) -> Self {
        let ends = text.match_indices('\n').map(|(end, _)| end + 1);
        Self {
            text,
            starts: [0].into_iter().chain(ends).collect(),
        }
    }

    fn byte(&self, position: Position) -> Option<usize> {
        let start = *self.starts.get(position.line.checked_sub(1)?)?;
        let column = position.column.checked_sub(1)?;
        let rest = &self.text[start..];
        match rest.char_indices().nth(column) {
            Some((byte, _)) => Some(start + byte),
            None => (rest.chars().count() == column).then_some(self.text.len()),
        }
    }
}

/// A function.
struct Function {
    name: String,
    whole: Bytes,
    /// Its `const`, with the space behind it.
    keyword: Option<Bytes>,
}

/// What a mutant can be of, by the bytes that cargo-mutants names.
#[derive(Default)]
struct Places<'t> {
    text: &'t str,
    functions: Vec<Function>,
    /// What the compiler evaluates.
    constants: Vec<Bytes>,
    /// Operators with two operands: the expression and both operands.
    binaries: HashMap<Bytes, [Bytes; 3]>,
    /// Expressions from which an operator or a field can be left out.
    wholes: HashMap<Bytes, Bytes>,
    /// Arms: the pattern, and whether the arms without this one are exhaustive.
    arms: HashMap<Bytes, (Bytes, bool)>,
    /// The type around.
    namespace: String,
}

impl Places<'_> {
    fn mutant(&self, listed: &Listed, lines: &Lines) -> Option<Mutant> {
        let start = lines.byte(listed.span.start)?;
        let span = start..lines.byte(listed.span.end)?;
        let by = listed.replacement.clone();
        let mut possible = true;
        let change = match listed.genre {
            Genre::FnValue => {
                // A type that is not named is that of one expression.
                let returns = &listed.function.as_ref()?.return_type;
                possible = !returns.starts_with("-> impl ");
                Change::Body {
                    body: span.clone(),
                    value: by,
                }
            }
            Genre::BinaryOperator => {
                let [whole, left, right] = self.binaries.get(&span)?.clone();
                let original = &self.text[span.clone()];
                let (left, right) = (&self.text[left], &self.text[right]);
                let is_comparison = matches!(original, "==" | "!=" | "<=" | ">=");
                let text = match original.ends_with('=') && !is_comparison {
                    true => format!("{left} {by} ({right})"),
                    false => format!("({left}) {by} ({right})"),
                };
                Change::Expression { whole, text }
            }
            Genre::UnaryOperator | Genre::StructField => {
                let whole = self.wholes.get(&span)?.clone();
                let (before, after) = (whole.start..span.start, span.end..whole.end);
                let text = format!("{}{by}{}", &self.text[before], &self.text[after]);
                Change::Expression { whole, text }
            }
            Genre::MatchArmGuard => Change::Expression {
                whole: span.clone(),
                text: by,
            },
            Genre::MatchArm => {
                let (pattern, is_exhaustive) = self.arms.get(&span)?.clone();
                possible = is_exhaustive;
                Change::Arm {
                    arm: span.clone(),
                    pattern,
                }
            }
        };
        let contains = |place: &Bytes| place.start <= span.start && span.end <= place.end;
        let functions = self.functions.iter();
        let function = functions
            .filter(|function| contains(&function.whole))
            .min_by_key(|function| function.whole.len());
        let is_constant = |function: &Function| {
            let around = |place: &&Bytes| contains(place) && place.start >= function.whole.start;
            self.constants.iter().any(|place| around(&place))
        };
        Some(Mutant {
            name: listed.stable_name(),
            line: listed.span.start.line,
            change,
            is_switchable: possible && function.is_some_and(|function| !is_constant(function)),
            const_fn: function
                .and_then(|function| function.keyword.as_ref())
                .map(|keyword| keyword.start),
        })
    }

    fn const_fns(&self) -> Vec<ConstFn> {
        let of = |function: &Function| {
            Some(ConstFn {
                name: function.name.clone(),
                keyword: function.keyword.clone()?,
            })
        };
        self.functions.iter().filter_map(of).collect()
    }

    fn function(&mut self, signature: &Signature, whole: &impl Spanned) {
        // These have no mutants, and constants call them, also those of tests.
        let is_left_alone =
            signature.ident == "new" || matches!(signature.safety, syn::Safety::Unsafe(_));
        let keyword = signature.constness.filter(|_| !is_left_alone);
        let keyword = keyword.map(|keyword| {
            let start = keyword.span().byte_range().start;
            let length = self.text[start..].find("fn").unwrap_or(0);
            start..start + length
        });
        let name = match self.namespace.as_str() {
            "" => signature.ident.to_string(),
            namespace => format!("{namespace}::{}", signature.ident),
        };
        self.functions.push(Function {
            name,
            whole: range(whole),
            keyword,
        });
    }

    fn in_namespace(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.namespace, name);
        visit(self);
        self.namespace = outer;
    }
}

fn range(part: &impl Spanned) -> Bytes {
    part.span().byte_range()
}

/// The pattern of `arm` without its guard, and whether it has one.
fn pattern(arm: &syn::Arm) -> (&Pat, bool) {
    match &arm.pat {
        Pat::Guard(guarded) => (&guarded.pat, true),
        pattern => (pattern, false),
    }
}

impl<'a> Visit<'a> for Places<'_> {
    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        let name = self.text[range(&item.self_ty)].to_owned();
        self.in_namespace(name, |places| visit::visit_item_impl(places, item));
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        let name = item.ident.to_string();
        self.in_namespace(name, |places| visit::visit_item_trait(places, item));
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.function(&item.sig, item);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.function(&item.sig, item);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        self.function(&item.sig, item);
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_const(&mut self, item: &'a syn::ItemConst) {
        self.constants.push(range(item));
        visit::visit_item_const(self, item);
    }

    fn visit_impl_item_const(&mut self, item: &'a syn::ImplItemConst) {
        self.constants.push(range(item));
        visit::visit_impl_item_const(self, item);
    }

    fn visit_item_static(&mut self, item: &'a syn::ItemStatic) {
        self.constants.push(range(item));
        visit::visit_item_static(self, item);
    }

    fn visit_type(&mut self, item: &'a syn::Type) {
        self.constants.push(range(item));
        visit::visit_type(self, item);
    }

    fn visit_variant(&mut self, item: &'a syn::Variant) {
        self.constants.push(range(item));
        visit::visit_variant(self, item);
    }

    fn visit_generic_argument(&mut self, item: &'a syn::GenericArgument) {
        if let syn::GenericArgument::Const(value) = item {
            self.constants.push(range(value));
        }
        visit::visit_generic_argument(self, item);
    }

    fn visit_expr_const(&mut self, item: &'a syn::ExprConst) {
        self.constants.push(range(item));
        visit::visit_expr_const(self, item);
    }

    fn visit_expr_repeat(&mut self, item: &'a syn::ExprRepeat) {
        self.constants.push(range(&item.len));
        visit::visit_expr_repeat(self, item);
    }

    fn visit_pat(&mut self, item: &'a Pat) {
        if !matches!(item, Pat::Guard(_)) {
            self.constants.push(range(item));
        }
        visit::visit_pat(self, item);
    }

    fn visit_expr_binary(&mut self, item: &'a syn::ExprBinary) {
        let parts = [range(item), range(&item.left), range(&item.right)];
        self.binaries.insert(range(&item.op), parts);
        visit::visit_expr_binary(self, item);
    }

    fn visit_expr_unary(&mut self, item: &'a syn::ExprUnary) {
        self.wholes.insert(range(&item.op), range(item));
        visit::visit_expr_unary(self, item);
    }

    fn visit_expr_match(&mut self, item: &'a syn::ExprMatch) {
        let is_exhaustive = item.arms.iter().any(|arm| matches!(arm.pat, Pat::Wild(_)));
        for arm in &item.arms {
            let place = (range(pattern(arm).0), is_exhaustive);
            self.arms.insert(range(arm), place);
        }
        visit::visit_expr_match(self, item);
    }

    fn visit_expr_struct(&mut self, item: &'a syn::ExprStruct) {
        for pair in item.fields.pairs() {
            let field = range(pair.value());
            let end = pair.punct().map_or(field.end, |comma| range(comma).end);
            self.wholes.insert(field.start..end, range(item));
        }
        visit::visit_expr_struct(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(text: &str, genre: Genre, original: &str) -> Mutant {
        let listed = Listed::in_line(text, genre, original, "x");
        let mut found = find("a.rs", text, &[&listed]).unwrap();
        found.mutants.pop().unwrap()
    }

    #[test]
    fn equal_names_are_numbered() {
        let text = "fn f() { g(a < b, 1 < 2) }";
        let first = Listed::in_line(text, Genre::BinaryOperator, "<", ">");
        let second = Listed {
            span: Listed::in_line(text, Genre::BinaryOperator, "< 2", ">").span,
            ..first.clone()
        };
        assert!(
            find("a.rs", text, &[&second]).is_err(),
            "`< 2` is no operator"
        );
        let found = find("a.rs", text, &[&first, &first]).unwrap();
        let names: Vec<&str> = found.mutants.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(
            names,
            ["a.rs: replace < with >", "a.rs: replace < with > #2"]
        );
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let listed = Listed::in_line("a + b", Genre::BinaryOperator, "+", "-");
        let error = find("a.rs", "fn f() {}", &[&listed]).unwrap_err();
        assert!(
            error.to_string().contains("cannot find `a.rs:1:3"),
            "{error}"
        );
    }

    #[test]
    fn a_field_is_left_out_of_its_structure() {
        let text = "fn f() { S { a: 1, b: 2, ..c } }";
        let listed = Listed::in_line(text, Genre::StructField, "a: 1,", "");
        let found = find("a.rs", text, &[&listed]).unwrap();
        let expected = Change::Expression {
            whole: 9..30,
            text: "S {  b: 2, ..c }".to_owned(),
        };
        assert_eq!(found.mutants[0].change, expected);
    }

    #[test]
    fn what_the_compiler_evaluates_cannot_be_switched() {
        assert!(mutant("fn f() { a & b }", Genre::BinaryOperator, "&").is_switchable);
        assert!(
            mutant(
                "fn f() { match x { A => b, _ => c } }",
                Genre::MatchArm,
                "A => b,"
            )
            .is_switchable
        );
        assert!(
            mutant(
                "fn f() { match x { a if b ^ c => b } }",
                Genre::BinaryOperator,
                "^"
            )
            .is_switchable
        );
        for (text, genre, original) in [
            ("const A: u8 = 1 ^ 2;", Genre::BinaryOperator, "^"),
            (
                "fn f() { const A: u8 = 1 ^ 2; }",
                Genre::BinaryOperator,
                "^",
            ),
            ("fn f() { [a; 1 ^ 2] }", Genre::BinaryOperator, "^"),
            ("fn f(a: [u8; 1 ^ 2]) { b }", Genre::BinaryOperator, "^"),
            ("fn f() { g::<{ 1 ^ 2 }>() }", Genre::BinaryOperator, "^"),
            (
                "fn f() -> impl Iterator<Item = u8> { b }",
                Genre::FnValue,
                "b",
            ),
            (
                "fn f() { match x { A => b, _ if c(d) => e, B => g } }",
                Genre::MatchArm,
                "A => b,",
            ),
        ] {
            assert!(!mutant(text, genre, original).is_switchable, "{text}");
        }
        let constant = mutant("const fn f() -> u8 { a }", Genre::FnValue, "a");
        assert_eq!(constant.const_fn, Some(0));
    }
}
