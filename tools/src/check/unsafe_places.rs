//! Finds every `unsafe` of a file.

use proc_macro2::{Span, TokenTree};
use syn::visit::{self, Visit};

use super::source::{walk, Source};

/// What an `unsafe` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A block or an implementation: whoever wrote it has made sure.
    Use,
    /// A function or a trait: whoever uses it has to make sure.
    Declaration,
    /// A method of an implemented trait, whose declaration is the trait's.
    Inherited,
}

/// Where an `unsafe` stands.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub span: Span,
    pub kind: Kind,
}

/// Every `unsafe` of a file: blocks, functions, traits, implementations, and macros' tokens.
/// (Foreign blocks and attributes hold no code of their own and are not listed.)
pub fn unsafe_places(source: &Source) -> Vec<Place> {
    let mut finder = Finder::default();
    finder.visit_file(&source.syntax);
    finder.places
}

#[derive(Default)]
struct Finder {
    places: Vec<Place>,
    in_trait_impl: bool,
}

impl Finder {
    fn add(&mut self, span: Span, kind: Kind) {
        self.places.push(Place { span, kind });
    }
}

impl<'s> Visit<'s> for Finder {
    fn visit_expr_unsafe(&mut self, node: &'s syn::ExprUnsafe) {
        self.add(node.unsafe_token.span, Kind::Use);
        visit::visit_expr_unsafe(self, node);
    }

    fn visit_item_impl(&mut self, node: &'s syn::ItemImpl) {
        if let Some(token) = node.unsafety {
            self.add(token.span, Kind::Use);
        }
        let outer = std::mem::replace(&mut self.in_trait_impl, node.trait_.is_some());
        visit::visit_item_impl(self, node);
        self.in_trait_impl = outer;
    }

    fn visit_item_trait(&mut self, node: &'s syn::ItemTrait) {
        if let Some(token) = node.unsafety {
            self.add(token.span, Kind::Declaration);
        }
        visit::visit_item_trait(self, node);
    }

    fn visit_signature(&mut self, node: &'s syn::Signature) {
        if let syn::Safety::Unsafe(token) = node.safety {
            let kind = if self.in_trait_impl {
                Kind::Inherited
            } else {
                Kind::Declaration
            };
            self.add(token.span, kind);
        }
        visit::visit_signature(self, node);
    }

    fn visit_macro(&mut self, node: &'s syn::Macro) {
        walk(&node.tokens, &mut |tokens| {
            if let [TokenTree::Ident(name), rest @ ..] = tokens {
                if name == "unsafe" {
                    let is_function = matches!(rest,
                        [TokenTree::Ident(next), ..] if next == "fn" || next == "extern");
                    let kind = if is_function {
                        Kind::Declaration
                    } else {
                        Kind::Use
                    };
                    self.add(name.span(), kind);
                }
            }
            1
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unsafe_is_of_its_kind() {
        for (text, kind) in [
            ("fn f() { unsafe { g() } }", Kind::Use),
            ("unsafe impl Send for X {}", Kind::Use),
            ("fn f() { m!({ unsafe { g() } }) }", Kind::Use),
            ("unsafe fn f() {}", Kind::Declaration),
            ("unsafe trait T {}", Kind::Declaration),
            ("trait T { unsafe fn f(); }", Kind::Declaration),
            ("impl X { unsafe fn f() {} }", Kind::Declaration),
            ("m! { unsafe fn f() {} }", Kind::Declaration),
            ("impl T for X { unsafe fn f() {} }", Kind::Inherited),
        ] {
            let source = Source::parse("a.rs", text.to_owned()).unwrap();
            let kinds: Vec<Kind> = unsafe_places(&source)
                .iter()
                .map(|place| place.kind)
                .collect();
            assert_eq!(kinds, [kind], "{text}");
        }
    }
}
