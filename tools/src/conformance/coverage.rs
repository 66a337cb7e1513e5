//! Whether checks and sections fit together.

use std::collections::BTreeSet;

use super::checks::Check;
use super::sections::{page_of, Section};
use crate::abi_pages::Pages;

/// The page about configurations that Sandglass does not have.
const PROFILES: &str = "09";

/// Sections of the pages that are not listed, and those that are listed and are not in the pages,
/// or under another title.
pub fn unlisted(sections: &[Section], pages: &Pages) -> Vec<String> {
    let listed: BTreeSet<(String, &str)> = sections
        .iter()
        .map(|section| (section.id.clone(), section.title.as_str()))
        .collect();
    let there: BTreeSet<(String, &str)> = pages
        .sections()
        .filter(|&(page, _, _)| page != PROFILES)
        .map(|(page, number, title)| (format!("{page}/{number}"), title))
        .collect();
    let missing = there
        .difference(&listed)
        .map(|(id, title)| format!("{id} ({title}) is in docs/src/abi and not in sections.toml"));
    let gone = listed
        .difference(&there)
        .map(|(id, title)| format!("{id} ({title}) is in sections.toml and not in docs/src/abi"));
    missing.chain(gone).collect()
}

/// Sections that need a check and have none; and those that have one although they state why
/// they cannot.
pub fn unchecked(sections: &[Section], checks: &[Check]) -> Vec<String> {
    let checked: BTreeSet<&str> = checks.iter().map(|check| check.section.as_str()).collect();
    sections
        .iter()
        .filter_map(|section| {
            let has_check = checked.contains(section.id.as_str());
            match &section.unobservable {
                None if !has_check => Some(format!(
                    "{} ({}) has no check: add one, or state in sections.toml why nothing of it \
                     can be observed",
                    section.id, section.title
                )),
                Some(reason) if has_check => Some(format!(
                    "{} ({}) has a check, so `unobservable = \"{reason}\"` is not so",
                    section.id, section.title
                )),
                _ => None,
            }
        })
        .collect()
}

/// Checks whose names are malformed, not unique, of an unknown section, or in another page's
/// folder.
pub fn misnamed(sections: &[Section], checks: &[Check]) -> Vec<String> {
    let known: BTreeSet<&str> = sections.iter().map(|section| section.id.as_str()).collect();
    let mut seen = BTreeSet::new();
    checks
        .iter()
        .filter_map(|check| {
            let wrong = if !seen.insert(&check.name) {
                "is used by two checks".to_owned()
            } else if check.property.is_empty()
                || check.name.contains(char::is_whitespace)
                || check.property.contains('/')
            {
                "is not of the form page/section/property, without spaces".to_owned()
            } else if !known.contains(check.section.as_str()) {
                format!("names the section {}, which no page has", check.section)
            } else if !check
                .file
                .starts_with(format!("page{}", page_of(&check.name)))
            {
                "is in the folder of another page".to_owned()
            } else {
                return None;
            };
            Some(format!(
                "{}: `{}` {wrong}",
                check.file.display(),
                check.name
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn section(id: &str, unobservable: Option<&str>) -> Section {
        Section {
            id: id.to_owned(),
            title: "Title".to_owned(),
            unobservable: unobservable.map(str::to_owned),
        }
    }

    fn check(name: &str) -> Check {
        Check::new(name, Path::new("page01/a.rs"))
    }

    #[test]
    fn the_list_is_that_of_the_pages() {
        let mut pages = Pages::default();
        pages.add("01", "## 1. Title\n## 2. Title\n").unwrap();
        pages.add(PROFILES, "## 1. Others\n").unwrap();
        let section = |id| section(id, None);
        let right = [section("01/1"), section("01/2")];
        assert_eq!(unlisted(&right, &pages), Vec::<String>::new());
        assert_eq!(unlisted(&right[..1], &pages).len(), 1);
        let more = [section("01/1"), section("01/2"), section("01/3")];
        assert_eq!(unlisted(&more, &pages).len(), 1);
        pages.add("01", "## 1. Title\n## 2. Renamed\n").unwrap();
        assert_eq!(unlisted(&right, &pages).len(), 2);
    }

    #[test]
    fn a_section_has_either_a_check_or_a_reason() {
        let sections = [
            section("01/1", None),
            section("01/2", None),
            section("01/3", Some("prose")),
            section("01/4", Some("prose")),
        ];
        let findings = unchecked(&sections, &[check("01/1/a"), check("01/4/b")]);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].starts_with("01/2 "));
        assert!(findings[1].starts_with("01/4 "));
    }

    #[test]
    fn names_are_unique_well_formed_and_of_known_sections() {
        let sections = [section("01/1", None), section("02/1", None)];
        assert_eq!(
            misnamed(&sections, &[check("01/1/a")]),
            Vec::<String>::new()
        );
        for wrong in ["01/9/a", "01/1", "01/1/", "01/1/a b", "01/1/a/b", "02/1/a"] {
            assert_eq!(misnamed(&sections, &[check(wrong)]).len(), 1, "{wrong}");
        }
        let twice = [check("01/1/a"), check("01/1/a")];
        assert_eq!(misnamed(&sections, &twice).len(), 1);
    }
}
