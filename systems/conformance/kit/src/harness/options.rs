//! What a run leaves out. A root task is given nothing but the boot information, on some kernels not
//! even a command line: so the options stand in the program's own file, in a section of that size
//! into which `sandglass conformance` writes them.

use alloc::format;
use alloc::string::String;
use core::ptr;

use super::Check;

/// Bytes of the section: what the tool may write, a zero byte at the end included.
const SIZE: usize = 4096;
/// The first line of the section, by which the tool knows it.
const HEADER: &[u8] = b"options of the conformance suite, 1\n";

/// The section: [`HEADER`], a line for each option, and zero bytes.
#[used]
#[link_section = ".conformance.options"]
static SECTION: [u8; SIZE] = {
    let mut section = [0; SIZE];
    let mut i = 0;
    while i < HEADER.len() {
        section[i] = HEADER[i];
        i += 1;
    }
    section
};

/// Which checks are left out; as the file has it, none.
pub struct Options {
    lines: String,
}

impl Options {
    /// Those in this program's file.
    ///
    /// # Panics
    /// They are not what the tool writes.
    pub fn of_this_file() -> Self {
        let byte = |i| {
            // SAFETY: `i` is within the section. The compiler must not take the bytes for those
            // that it has put there.
            unsafe { ptr::read_volatile(SECTION.as_ptr().add(i)) }
        };
        let bytes = (HEADER.len()..SIZE).map(byte).take_while(|&byte| byte != 0);
        let options = Self {
            lines: bytes.map(char::from).collect(),
        };
        for line in options.lines.lines() {
            assert!(Rule::read(line).is_some(), "`{line}` is not an option");
        }
        options
    }

    /// Why the check is left out, if it is.
    pub fn leave_out(&self, check: &Check) -> Option<String> {
        let rules = || self.lines.lines().filter_map(Rule::read);
        if let Some(rule) = rules().find(|rule| rule.skips(check)) {
            return Some(match rule {
                Rule::Skip(pattern) => format!("left out by the pattern `{pattern}`"),
                _ => String::from("left out: wrong arguments of a debug call"),
            });
        }
        let mut only = rules().filter_map(|rule| rule.wants(check)).peekable();
        let left_out = only.peek().is_some() && !only.any(|wanted| wanted);
        left_out.then(|| String::from("left out: not among the only ones"))
    }
}

/// A line.
#[derive(Clone, Copy)]
enum Rule<'a> {
    /// Leaves out the checks whose names match.
    Skip(&'a str),
    /// Leaves out all others, but those of another line of this kind.
    Only(&'a str),
    /// Leaves out the checks that make debug calls with wrong arguments.
    SkipWrongDebugCalls,
}

impl<'a> Rule<'a> {
    fn read(line: &'a str) -> Option<Self> {
        match line.split_once(' ') {
            Some(("skip", pattern)) => Some(Self::Skip(pattern)),
            Some(("only", pattern)) => Some(Self::Only(pattern)),
            None if line == "skip-wrong-debug-calls" => Some(Self::SkipWrongDebugCalls),
            _ => None,
        }
    }

    fn skips(&self, check: &Check) -> bool {
        match self {
            Self::Skip(pattern) => matches(pattern, check.name),
            Self::Only(_) => false,
            Self::SkipWrongDebugCalls => check.makes_wrong_debug_calls,
        }
    }

    /// Whether the check is one of the only ones, if this line names such.
    fn wants(&self, check: &Check) -> Option<bool> {
        match self {
            Self::Only(pattern) => Some(matches(pattern, check.name)),
            _ => None,
        }
    }
}

/// Whether the pattern is all of the name: each `*` of it stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(first) else {
        return false;
    };
    // The pieces between two stars are found as far to the left as they are.
    let mut rest = rest;
    while let Some((piece, after)) = rest.split_once('*') {
        let Some(place) = name.find(piece) else {
            return false;
        };
        name = &name[place + piece.len()..];
        rest = after;
    }
    name.ends_with(rest)
}
