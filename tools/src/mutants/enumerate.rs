//! The mutants of a source file: those that cargo-mutants 27 generates with its defaults.
//!
//! - a function's body gives way to a value of its return type;
//! - an operator is exchanged for another, or left out;
//! - an arm of a `match` that has a catch-all is left out;
//! - the guard of an arm is always or never true;
//! - a field of a structure that has a base is left out.
//!
//! Not looked into: what only tests have, `unsafe fn`, `fn new` of a type, `Default`, and calls of
//! macros.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Context, Result};
use proc_macro2::Span;
use quote::ToTokens;
use syn::punctuated::Pair;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Expr, Pat, ReturnType, Signature, Type, UnOp};

use super::mutant::{Change, ConstFn, Found, Mutant};
use super::replacements;

/// Looks through `text`, the file `path` of the repository.
///
/// # Errors
/// It is not Rust.
pub fn enumerate(path: &str, text: &str) -> Result<Found> {
    let file = syn::parse_file(text).with_context(|| format!("cannot parse {path}"))?;
    let mut finder = Finder {
        path,
        text,
        found: Found::default(),
        namespaces: Vec::new(),
        functions: Vec::new(),
        constants: 0,
    };
    finder.visit_file(&file);
    let mut found = finder.found;
    number_equals(&mut found.mutants);
    Ok(found)
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

struct Finder<'t> {
    path: &'t str,
    text: &'t str,
    found: Found,
    /// Modules, implementations and functions around.
    namespaces: Vec<String>,
    functions: Vec<Function>,
    /// Constants around that the compiler evaluates.
    constants: usize,
}

/// A function around.
struct Function {
    name: String,
    /// Position of its `const`.
    const_fn: Option<usize>,
    /// Constants around its definition.
    constants: usize,
}

impl Finder<'_> {
    /// The source of what has this span, on one line.
    fn source(&self, span: Span) -> String {
        let lines = self.text[span.byte_range()].split_whitespace();
        lines.collect::<Vec<_>>().join(" ")
    }

    fn add(&mut self, span: Span, description: &str, change: Change) {
        self.add_switchable(span, description, change, true);
    }

    /// Adds a mutant that can be chosen at run time only if `possible`.
    fn add_switchable(&mut self, span: Span, description: &str, change: Change, possible: bool) {
        let function = self.functions.last();
        let is_body = matches!(change, Change::Body { .. });
        let place = match function {
            Some(function) if !is_body => format!(" in {}", function.name),
            _ => String::new(),
        };
        let outside = function.map_or(0, |function| function.constants);
        self.found.mutants.push(Mutant {
            name: format!("{}: {description}{place}", self.path),
            line: span.start().line,
            change,
            is_switchable: possible && function.is_some() && self.constants == outside,
            const_fn: function.and_then(|function| function.const_fn),
        });
    }

    /// Visits a function by `visit`, after its body as a whole.
    fn function(&mut self, signature: &Signature, block: &Block, visit: impl FnOnce(&mut Self)) {
        self.namespaces.push(signature.ident.to_string());
        let const_fn = signature.constness.map(|keyword| {
            let start = keyword.span().byte_range().start;
            let end = self.text[start..]
                .find("fn")
                .map_or(start, |length| start + length);
            let parts = self.namespaces.len().saturating_sub(2);
            self.found.const_fns.push(ConstFn {
                name: self.namespaces[parts..].join("::"),
                keyword: start..end,
            });
            start
        });
        self.functions.push(Function {
            name: self.namespaces.join("::"),
            const_fn,
            constants: self.constants,
        });
        self.body(signature, block);
        visit(self);
        self.functions.pop();
        self.namespaces.pop();
    }

    fn body(&mut self, signature: &Signature, block: &Block) {
        let (Some(first), Some(last)) = (block.stmts.first(), block.stmts.last()) else {
            return;
        };
        let body = first.span().byte_range().start..last.span().byte_range().end;
        let returns = match &signature.output {
            ReturnType::Default => String::new(),
            output => format!(" {}", self.source(output.span())),
        };
        // A type that is not named is that of one expression.
        let is_opaque = matches!(&signature.output,
            ReturnType::Type(_, result) if matches!(**result, Type::ImplTrait(_)));
        for value in replacements::of_return_type(&signature.output) {
            if without_space(&self.text[body.clone()]) == without_space(&value) {
                continue;
            }
            let description = format!(
                "replace {}{returns} with {value}",
                self.namespaces.join("::")
            );
            let change = Change::Body {
                body: body.clone(),
                value,
            };
            self.add_switchable(first.span(), &description, change, !is_opaque);
        }
    }

    fn in_namespace(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.namespaces.push(name);
        visit(self);
        self.namespaces.pop();
    }

    fn in_constant(&mut self, visit: impl FnOnce(&mut Self)) {
        self.constants += 1;
        visit(self);
        self.constants -= 1;
    }

    /// `expression` with `part` of it replaced.
    fn replaced(&self, expression: &Range<usize>, part: &Range<usize>, by: &str) -> String {
        let (before, after) = (expression.start..part.start, part.end..expression.end);
        format!("{}{by}{}", &self.text[before], &self.text[after])
    }

    fn operator(&mut self, binary: &syn::ExprBinary) {
        let operator = binary.op.span();
        let (left, right) = (self.range(&binary.left), self.range(&binary.right));
        let original = self.source(operator);
        let is_assignment =
            original.ends_with('=') && !matches!(&*original, "==" | "!=" | "<=" | ">=");
        for &by in replacements::of_operator(&binary.op) {
            let (left, right) = (&self.text[left.clone()], &self.text[right.clone()]);
            let text = if is_assignment {
                format!("{left} {by} ({right})")
            } else {
                format!("({left}) {by} ({right})")
            };
            let change = Change::Expression {
                whole: self.range(binary),
                text,
            };
            self.add(operator, &format!("replace {original} with {by}"), change);
        }
    }

    fn range(&self, part: &impl Spanned) -> Range<usize> {
        part.span().byte_range()
    }
}

impl<'a> Visit<'a> for Finder<'_> {
    fn visit_file(&mut self, file: &'a syn::File) {
        if !is_excluded(&file.attrs) {
            visit::visit_file(self, file);
        }
    }

    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        if !is_excluded(&module.attrs) {
            let name = module.ident.to_string();
            self.in_namespace(name, |finder| visit::visit_item_mod(finder, module));
        }
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        if is_excluded(&item.attrs) {
            return;
        }
        let name = self.source(item.self_ty.span());
        let name = match &item.trait_ {
            Some((path, _)) if ends_with(path, "Default") => return,
            Some((path, _)) => format!("<impl {} for {name}>", self.source(path.span())),
            None => name,
        };
        self.in_namespace(name, |finder| visit::visit_item_impl(finder, item));
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        if !is_excluded(&item.attrs) {
            let name = item.ident.to_string();
            self.in_namespace(name, |finder| visit::visit_item_trait(finder, item));
        }
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        if !is_unsafe(&item.sig) && !is_excluded(&item.attrs) {
            self.function(&item.sig, &item.block, |finder| {
                visit::visit_item_fn(finder, item)
            });
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        if !is_unsafe(&item.sig) && !is_excluded(&item.attrs) && item.sig.ident != "new" {
            self.function(&item.sig, &item.block, |finder| {
                visit::visit_impl_item_fn(finder, item);
            });
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        if is_unsafe(&item.sig) || is_excluded(&item.attrs) || item.sig.ident == "new" {
            return;
        }
        if let Some(block) = &item.default {
            self.function(&item.sig, block, |finder| {
                visit::visit_trait_item_fn(finder, item)
            });
        }
    }

    fn visit_item_const(&mut self, item: &'a syn::ItemConst) {
        self.in_constant(|finder| visit::visit_item_const(finder, item));
    }

    fn visit_impl_item_const(&mut self, item: &'a syn::ImplItemConst) {
        self.in_constant(|finder| visit::visit_impl_item_const(finder, item));
    }

    fn visit_item_static(&mut self, item: &'a syn::ItemStatic) {
        self.in_constant(|finder| visit::visit_item_static(finder, item));
    }

    fn visit_type(&mut self, item: &'a Type) {
        self.in_constant(|finder| visit::visit_type(finder, item));
    }

    fn visit_variant(&mut self, item: &'a syn::Variant) {
        self.in_constant(|finder| visit::visit_variant(finder, item));
    }

    fn visit_expr_const(&mut self, item: &'a syn::ExprConst) {
        self.in_constant(|finder| visit::visit_expr_const(finder, item));
    }

    fn visit_expr_repeat(&mut self, item: &'a syn::ExprRepeat) {
        self.visit_expr(&item.expr);
        self.in_constant(|finder| finder.visit_expr(&item.len));
    }

    fn visit_pat(&mut self, item: &'a Pat) {
        match item {
            Pat::Guard(guarded) => {
                self.visit_pat(&guarded.pat);
                self.visit_expr(&guarded.guard);
            }
            pattern => self.in_constant(|finder| visit::visit_pat(finder, pattern)),
        }
    }

    fn visit_expr_binary(&mut self, item: &'a syn::ExprBinary) {
        if !is_excluded(&item.attrs) {
            self.operator(item);
            visit::visit_expr_binary(self, item);
        }
    }

    fn visit_expr_unary(&mut self, item: &'a syn::ExprUnary) {
        if is_excluded(&item.attrs) {
            return;
        }
        if matches!(item.op, UnOp::Not(_) | UnOp::Neg(_)) {
            let whole = self.range(item);
            let operator = item.op.span();
            let text = self.replaced(&whole, &operator.byte_range(), "");
            let description = format!("delete {}", self.source(operator));
            self.add(operator, &description, Change::Expression { whole, text });
        }
        visit::visit_expr_unary(self, item);
    }

    fn visit_expr_match(&mut self, item: &'a syn::ExprMatch) {
        if is_excluded(&item.attrs) {
            return;
        }
        let is_catch_all = |arm: &&syn::Arm| matches!(pattern(arm).0, Pat::Wild(_));
        if item.arms.iter().any(|arm| is_catch_all(&arm)) {
            let is_exhaustive = item.arms.iter().any(|arm| matches!(arm.pat, Pat::Wild(_)));
            let arms = item.arms.iter().filter(|arm| !is_catch_all(arm));
            for arm in arms.filter(|arm| pattern(arm).1.is_none()) {
                let description = format!("delete match arm {}", self.source(arm.pat.span()));
                let change = Change::Arm {
                    arm: self.range(arm),
                    pattern: self.range(&arm.pat),
                };
                self.add_switchable(arm.span(), &description, change, is_exhaustive);
            }
        }
        for guard in item.arms.iter().filter_map(|arm| pattern(arm).1) {
            let original = self.source(guard.span());
            for by in ["true", "false"] {
                let change = Change::Expression {
                    whole: self.range(guard),
                    text: by.to_owned(),
                };
                let description = format!("replace match guard {original} with {by}");
                self.add(guard.span(), &description, change);
            }
        }
        visit::visit_expr_match(self, item);
    }

    fn visit_expr_struct(&mut self, item: &'a syn::ExprStruct) {
        if is_excluded(&item.attrs) {
            return;
        }
        if item.rest.is_some() {
            let whole = self.range(item);
            let path = self.source(item.path.span());
            for pair in item.fields.pairs() {
                let field = pair.value().span().byte_range();
                let end = match &pair {
                    Pair::Punctuated(_, comma) => comma.span().byte_range().end,
                    Pair::End(_) => field.end,
                };
                let syn::Member::Named(name) = &pair.value().member else {
                    continue;
                };
                let text = self.replaced(&whole, &(field.start..end), "");
                let description = format!("delete field {name} from struct {path} expression");
                let whole = whole.clone();
                self.add(
                    name.span(),
                    &description,
                    Change::Expression { whole, text },
                );
            }
        }
        visit::visit_expr_struct(self, item);
    }
}

fn is_unsafe(signature: &Signature) -> bool {
    matches!(signature.safety, syn::Safety::Unsafe(_))
}

/// The pattern of `arm` without its guard, and the guard.
fn pattern(arm: &syn::Arm) -> (&Pat, Option<&Expr>) {
    match &arm.pat {
        Pat::Guard(guarded) => (&guarded.pat, Some(&guarded.guard)),
        pattern => (pattern, None),
    }
}

/// Whether only tests have what carries these attributes, or it asks to be left out.
fn is_excluded(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        ends_with(path, "test")
            || path.to_token_stream().to_string() == "mutants :: skip"
            || path.is_ident("cfg")
                && attribute
                    .parse_args::<syn::Path>()
                    .is_ok_and(|condition| condition.is_ident("test"))
    })
}

fn ends_with(path: &syn::Path, name: &str) -> bool {
    path.segments.last().is_some_and(|last| last.ident == name)
}

fn without_space(text: &str) -> String {
    text.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::enumerate;

    fn names(text: &str) -> Vec<String> {
        let found = enumerate("a.rs", text).unwrap();
        found
            .mutants
            .into_iter()
            .map(|mutant| mutant.name)
            .collect()
    }

    #[test]
    fn names_say_file_change_and_function() {
        assert_eq!(
            names("impl S { fn f(&self) -> Option<bool> { g(a < !b, 1 < 2) } }"),
            [
                "a.rs: replace S::f -> Option<bool> with None",
                "a.rs: replace S::f -> Option<bool> with Some(true)",
                "a.rs: replace S::f -> Option<bool> with Some(false)",
                "a.rs: replace < with == in S::f",
                "a.rs: replace < with > in S::f",
                "a.rs: replace < with <= in S::f",
                "a.rs: delete ! in S::f",
                "a.rs: replace < with == in S::f #2",
                "a.rs: replace < with > in S::f #2",
                "a.rs: replace < with <= in S::f #2",
            ]
        );
    }

    #[test]
    fn arms_are_left_out_where_others_catch_all() {
        assert_eq!(
            names("fn f() { match x { 1 => a, 2 if b => c, _ => d } }")[1..],
            [
                "a.rs: delete match arm 1 in f",
                "a.rs: replace match guard b with true in f",
                "a.rs: replace match guard b with false in f",
            ]
        );
        assert_eq!(names("fn f() { match x { A => a, B => c } }").len(), 1);
    }

    #[test]
    fn fields_are_left_out_where_a_base_has_them() {
        assert_eq!(
            names("fn f() { S { a: 1, b: 2, ..c } }")[1..],
            [
                "a.rs: delete field a from struct S expression in f",
                "a.rs: delete field b from struct S expression in f",
            ]
        );
        assert_eq!(names("fn f() { S { a: 1, b: 2 } }").len(), 1);
    }

    #[test]
    fn tests_and_constructors_are_left_alone() {
        for text in [
            "#[cfg(test)] mod tests { fn f() {  a } }",
            "#[test] fn f() { a }",
            "unsafe fn f() { a }",
            "impl S { fn new() -> S { a + b } }",
            "impl Default for S { fn default() -> S { a } }",
            "fn f() {}",
            "fn f() { () }",
        ] {
            assert_eq!(names(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn what_the_compiler_evaluates_cannot_be_switched() {
        let switchable = |text| enumerate("a.rs", text).unwrap().mutants.pop().unwrap();
        assert!(switchable("fn f() { a & b }").is_switchable);
        for text in [
            "const A: u8 = 1 ^ 2;",
            "fn f() { const A: u8 = 1 ^ 2; }",
            "fn f() { [a; 1 ^ 2] }",
            "fn f(a: [u8; 1 ^ 2]) { b }",
            "fn f() -> impl Iterator<Item = u8> { b }",
            "fn f() { match x { A => b, _ if c(d) => e, B => g } }",
        ] {
            let found = enumerate("a.rs", text).unwrap();
            assert!(
                found.mutants.iter().any(|mutant| !mutant.is_switchable),
                "{text}"
            );
        }
        let constant = switchable("const fn f() -> u8 { a }");
        assert_eq!(constant.const_fn, Some(0));
    }
}
