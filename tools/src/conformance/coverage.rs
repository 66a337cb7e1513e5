//! Whether checks and sections fit together.

use std::collections::BTreeSet;

use super::checks::Check;
use super::sections::{page_of, Section};
use crate::abi_pages::Pages;
use crate::arch::Arch;

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

/// Sections that need a check and have none, on an architecture that they are about; and those that have one although they
/// state why they cannot, or are about another architecture.
pub fn unchecked(sections: &[Section], checks: &[Check]) -> Vec<String> {
    let of = |arch| {
        sections
            .iter()
            .filter_map(move |one| fault(one, checks, arch))
    };
    Arch::ALL.into_iter().flat_map(of).collect()
}

/// What is wrong with the checks of `section` on `arch`.
fn fault(section: &Section, checks: &[Check], arch: Arch) -> Option<String> {
    let is_own = |check: &&Check| check.section == section.id && check.is_of(arch);
    let has_check = checks.iter().any(|check| is_own(&check));
    let Section { id, title, .. } = section;
    let arch_name = arch.name();
    match &section.unobservable {
        _ if !section.is_of(arch) => has_check
            .then(|| format!("{id} ({title}) has a check on {arch_name}, which it is not about")),
        None if !has_check => Some(format!(
            "{id} ({title}) has no check on {arch_name}: add one, or state in sections.toml why \
             nothing of it can be observed, or which architecture it is about"
        )),
        Some(reason) if has_check => Some(format!(
            "{id} ({title}) has a check on {arch_name}, so `unobservable = \"{reason}\"` is not so"
        )),
        _ => None,
    }
}

/// Checks whose names are malformed, not unique, of an unknown section, or in another page's
/// folder.
pub fn misnamed(sections: &[Section], checks: &[Check]) -> Vec<String> {
    let known: BTreeSet<&str> = sections.iter().map(|section| section.id.as_str()).collect();
    let mut seen = BTreeSet::new();
    checks
        .iter()
        .filter_map(|check| {
            let of = |arch: &Arch| check.is_of(*arch);
            let is_new = |arch| seen.insert((arch, &check.name));
            let news: Vec<bool> = Arch::ALL.into_iter().filter(of).map(is_new).collect();
            let wrong = if news.contains(&false) {
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
            arch: None,
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
        // On each architecture.
        assert_eq!(findings.len(), 4, "{findings:?}");
        assert!(findings[0].starts_with("01/2 "));
        assert!(findings[1].starts_with("01/4 "));
    }

    #[test]
    fn a_section_about_one_architecture_has_checks_there_only() {
        let mut sections = [section("01/1", None)];
        sections[0].arch = Some(Arch::Aarch64);
        let mut checks = [check("01/1/a")];
        let findings = unchecked(&sections, &checks);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].contains("on x86_64"), "{findings:?}");
        checks[0].arch = Some(Arch::Aarch64);
        assert_eq!(unchecked(&sections, &checks), Vec::<String>::new());
        // And one about all has them on all.
        sections[0].arch = None;
        let findings = unchecked(&sections, &checks);
        assert!(findings[0].contains("no check on x86_64"), "{findings:?}");
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
        let mut twice = [check("01/1/a"), check("01/1/a")];
        assert_eq!(misnamed(&sections, &twice).len(), 1);
        // Of two architectures, they are one.
        twice[0].arch = Some(Arch::X86_64);
        assert_eq!(misnamed(&sections, &twice).len(), 1);
        twice[1].arch = Some(Arch::Aarch64);
        assert_eq!(misnamed(&sections, &twice), Vec::<String>::new());
    }
}
