//! The table of sections and checks, as a chapter of the book.

use std::fmt::Write;

use super::checks::Check;
use super::sections::Section;
use crate::arch::Arch;

/// What stands above the table.
const INTRODUCTION: &str = "\
# Conformance: sections and checks

The conformance suite, `systems/conformance`, is a root task that checks what a program can observe
of the [ABI pages](../abi/README.md), using nothing but the ABI. `./sandglass conformance` runs it, and it
[runs on any kernel of the ABI](../how-to/conformance.md). The table lists the checks of each numbered
section; for a section without any, it says why nothing of it can be observed.
A check's full name is the section and the property: `03/4.5/a-property`. A property or a section that only one
architecture has is marked with it.

`./sandglass conformance table` has made this page; `./sandglass test` fails when it is out of date.
";

/// The chapter, for sections in their order.
pub fn render(sections: &[Section], checks: &[Check]) -> String {
    let unobservable = sections
        .iter()
        .filter(|section| section.unobservable.is_some())
        .count();
    let counts = Arch::ALL.map(|arch| {
        let own = checks.iter().filter(|check| check.is_of(arch)).count();
        format!("{own} on {}", arch.name())
    });
    let mut text = format!(
        "{INTRODUCTION}\nChecks of {} sections, {}; {unobservable} sections have nothing to check.\n",
        sections.len() - unobservable,
        counts.join(" and "),
    );
    let mut page = "";
    for section in sections {
        if section.page() != page {
            page = section.page();
            // Writing to a string does not fail.
            let _ = write!(
                text,
                "\n## Page {page}\n\n| section | title | checks |\n| --- | --- | --- |\n"
            );
        }
        let number = section.id.split_once('/').map_or("", |(_, number)| number);
        let _ = writeln!(
            text,
            "| {number} | {}{} | {} |",
            escape(&section.title),
            mark(section.arch),
            cell(section, checks)
        );
    }
    text
}

/// The last column: properties, or the reason for having none.
fn cell(section: &Section, checks: &[Check]) -> String {
    if let Some(reason) = &section.unobservable {
        return format!("*none: {}*", escape(reason));
    }
    let own = |check: &&Check| check.section == section.id;
    let mut properties: Vec<String> = Vec::new();
    for check in checks.iter().filter(own) {
        // The same on several architectures, each with its own, is one.
        let others = checks.iter().filter(|other| other.name == check.name);
        let arch = check
            .arch
            .filter(|_| others.count() == 1 && section.arch.is_none());
        let property = format!("`{}`{}", check.property, mark(arch));
        if !properties.contains(&property) {
            properties.push(property);
        }
    }
    properties.join("<br>")
}

/// Behind what only one architecture has.
fn mark(arch: Option<Arch>) -> String {
    arch.map_or_else(String::new, |arch| format!(" ({})", arch.name()))
}

/// Text for a cell of a Markdown table.
fn escape(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('*', "\\*")
        .replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_row_shows_the_checks_or_the_reason() {
        let section = |id: &str, reason: Option<&str>| Section {
            id: id.to_owned(),
            title: "A | B".to_owned(),
            unobservable: reason.map(str::to_owned),
            arch: None,
        };
        let sections = [section("01/1", None), section("02/1", Some("prose"))];
        let check = |name| Check::new(name, Path::new("page01/a.rs"));
        let text = render(&sections, &[check("01/1/a"), check("01/1/b")]);
        assert!(
            text.contains("Checks of 1 sections, 2 on x86_64 and 2 on aarch64; 1 sections"),
            "{text}"
        );
        assert!(text.contains("| 1 | A \\| B | `a`<br>`b` |\n"), "{text}");
        assert!(text.contains("## Page 02"), "{text}");
        assert!(text.contains("*none: prose*"), "{text}");
    }

    #[test]
    fn what_only_one_architecture_has_is_marked() {
        let mut sections = [Section {
            id: "01/1".to_owned(),
            title: "A".to_owned(),
            unobservable: None,
            arch: None,
        }];
        let mut checks =
            ["01/1/a", "01/1/b", "01/1/b"].map(|name| Check::new(name, Path::new("page01/a.rs")));
        checks[0].arch = Some(Arch::Aarch64);
        checks[1].arch = Some(Arch::X86_64);
        checks[2].arch = Some(Arch::Aarch64);
        let text = render(&sections, &checks);
        assert!(text.contains("| A | `a` (aarch64)<br>`b` |\n"), "{text}");
        assert!(text.contains("1 on x86_64 and 2 on aarch64"), "{text}");
        sections[0].arch = Some(Arch::Aarch64);
        let text = render(&sections, &checks[..1]);
        assert!(text.contains("| A (aarch64) | `a` |\n"), "{text}");
    }
}
