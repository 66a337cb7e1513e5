//! Every `unsafe` has its argument: a `SAFETY:` comment at a use, a `# Safety` section (or such a
//! comment) at a declaration.
//!
//! Elsewhere than in the kernel, that is clippy's to say. Of the kernel it sees what is built: not what is for the bare
//! machine, where no clippy is for it (Debian's toolchain), nor what no pass turns on. This reads every file.

use super::source::Source;
use super::unsafe_places::{unsafe_places, Kind, Place};

/// Lines of one statement that may stand between an `unsafe` and the comment above the statement.
const STATEMENT_LINES: usize = 8;

/// See the module.
pub fn rule(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
    let mut findings = Vec::new();
    for Place { span, kind } in unsafe_places(source) {
        let line = span.start().line;
        let what = match kind {
            Kind::Use => "`unsafe` without a `SAFETY:` comment above it",
            Kind::Declaration => "`unsafe` declaration without a `# Safety` section",
            Kind::Inherited => continue,
        };
        if !has_argument(&lines, line, kind == Kind::Declaration) {
            findings.push(source.at_line(line, what));
        }
    }
    findings
}

/// Whether the comment that belongs to the 1-based `line` has an argument. It may stand at the
/// end of the line, directly above it, or above the statement that the line continues.
fn has_argument(lines: &[&str], line: usize, is_declaration: bool) -> bool {
    let argues = |text: &str| {
        text.contains("SAFETY:")
            || (is_declaration && is_comment(text) && text.contains("# Safety"))
    };
    let at = line - 1;
    if lines[at]
        .split_once("//")
        .is_some_and(|(_, comment)| argues(comment))
    {
        return true;
    }
    let mut statement_lines = 0;
    for text in lines[..at].iter().rev() {
        if is_comment(text) {
            if argues(text) {
                return true;
            }
        } else if text.starts_with("#[") || is_another_unsafe_impl(lines[at], text) {
            // Attributes stand between; implementations side by side share an argument.
        } else if ends_statement(text) || statement_lines == STATEMENT_LINES {
            return false;
        } else {
            statement_lines += 1;
        }
    }
    false
}

fn is_comment(line: &str) -> bool {
    line.starts_with("//")
}

fn is_another_unsafe_impl(line: &str, other: &str) -> bool {
    line.starts_with("unsafe impl") && other.starts_with("unsafe impl")
}

/// Whether the line after `line` begins a new statement or item.
fn ends_statement(line: &str) -> bool {
    line.is_empty() || line.ends_with([';', '{', '}', ','])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> usize {
        rule(&Source::parse("kernel/src/mem/a.rs", text.to_owned()).unwrap()).len()
    }

    #[test]
    fn a_use_without_an_argument_is_found() {
        assert_eq!(findings("fn f() {\n    unsafe { g() }\n}"), 1);
        assert_eq!(findings("unsafe impl Send for X {}"), 1);
        assert_eq!(findings("unsafe fn f() {}"), 1);
        assert_eq!(
            findings("/// # Safety of another\nfn f() {\n    unsafe { g() }\n}"),
            1
        );
    }

    #[test]
    fn an_argument_belongs_to_its_own_statement() {
        let text = "fn f() {\n    // SAFETY: fine.\n    unsafe { g() };\n    unsafe { g() };\n}";
        assert_eq!(findings(text), 1);
    }

    #[test]
    fn arguments_are_seen_where_they_stand() {
        for text in [
            "fn f() {\n    // SAFETY: fine.\n    unsafe { g() }\n}",
            "fn f() {\n    // SAFETY: fine.\n    // Really.\n    let x =\n        unsafe { g() };\n}",
            "fn f() {\n    unsafe { g() } // SAFETY: fine.\n}",
            "/// # Safety\n/// Be careful.\n#[inline]\nunsafe fn f() {}",
            "// SAFETY: fine.\nunsafe impl Send for X {}\nunsafe impl Sync for X {}",
        ] {
            assert_eq!(findings(text), 0, "{text}");
        }
    }
}
