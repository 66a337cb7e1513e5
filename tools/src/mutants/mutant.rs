//! What a mutant is.

use std::ops::Range;

/// One change of one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    /// File, change and function, and a number from 2 on for those that have that in common:
    /// stable as long as the function is.
    pub name: String,
    /// 1-based.
    pub line: usize,
    pub change: Change,
    /// Whether it can be chosen at run time, as far as the syntax tells: not where the compiler
    /// evaluates a constant, nor where what it does without is needed by the compiler.
    pub is_switchable: bool,
    /// Position in its file's text of the `const fn` that it is in.
    pub const_fn: Option<usize>,
}

/// What a mutant changes, as ranges of bytes in its file's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The body, the range, returns `value`.
    Body { body: Range<usize>, value: String },
    /// The expression becomes `text`.
    Expression { whole: Range<usize>, text: String },
    /// The arm, whose pattern is given, is left out.
    Arm {
        arm: Range<usize>,
        pattern: Range<usize>,
    },
}

impl Change {
    /// The text that is changed or left out.
    pub fn place(&self) -> &Range<usize> {
        match self {
            Self::Body { body, .. } => body,
            Self::Expression { whole, .. } => whole,
            Self::Arm { arm, .. } => arm,
        }
    }
}

/// A `const fn`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstFn {
    /// Its type, if it has one, and its name: `Slot::new`.
    pub name: String,
    /// `const` with the space behind it.
    pub keyword: Range<usize>,
}

/// What is found in a file.
#[derive(Debug, Default)]
pub struct Found {
    pub mutants: Vec<Mutant>,
    pub const_fns: Vec<ConstFn>,
}
