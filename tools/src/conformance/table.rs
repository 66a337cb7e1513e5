//! The table of sections and checks, as a chapter of the book.

use std::fmt::Write;

use super::checks::Check;
use super::sections::Section;

/// What stands above the table.
const INTRODUCTION: &str = "\
# Conformance: sections and checks

The conformance suite, `systems/conformance`, is a root task that checks what a program can observe
of the [ABI pages](../abi/README.md), using nothing but the ABI. `./sandglass conformance` runs it, and it
[runs on any kernel of the ABI](../how-to/conformance.md). The table lists the checks of each numbered
section; for a section without any, it says why nothing of it can be observed.
A check's full name is the section and the property: `03/4.5/a-property`.

`./sandglass conformance table` has made this page; `./sandglass test` fails when it is out of date.
";

/// The chapter, for sections in their order.
pub fn render(sections: &[Section], checks: &[Check]) -> String {
    let unobservable = sections
        .iter()
        .filter(|section| section.unobservable.is_some())
        .count();
    let mut text = format!(
        "{INTRODUCTION}\n{} checks of {} sections; {unobservable} sections have nothing to check.\n",
        checks.len(),
        sections.len() - unobservable,
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
            "| {number} | {} | {} |",
            escape(&section.title),
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
    let properties: Vec<String> = checks
        .iter()
        .filter(|check| check.section == section.id)
        .map(|check| format!("`{}`", check.property))
        .collect();
    properties.join("<br>")
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
        };
        let sections = [section("01/1", None), section("02/1", Some("prose"))];
        let check = |name| Check::new(name, Path::new("page01/a.rs"));
        let text = render(&sections, &[check("01/1/a"), check("01/1/b")]);
        assert!(
            text.contains("2 checks of 1 sections; 1 sections"),
            "{text}"
        );
        assert!(text.contains("| 1 | A \\| B | `a`<br>`b` |\n"), "{text}");
        assert!(text.contains("## Page 02"), "{text}");
        assert!(text.contains("*none: prose*"), "{text}");
    }
}
