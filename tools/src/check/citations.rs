//! Citations of the [ABI pages](crate::abi_pages), in code, tests, documents and configuration: each
//! names a page and a section that exist. These forms are understood:
//!
//! - `04, section 8.2`, `03, sections 4.4 and 4.9`, `07, sections 6 to 8`, also with "ABI" before
//!   it and steps or checks of the section behind it;
//! - `04/8.2`, as the names of conformance checks begin;
//! - `page 04`, `pages 01 and 05`;
//! - in a page, `section 8.2` for its own.
//!
//! Whatever else looks like a citation is a finding: a page's number that stands alone, a `section`
//! without a page, `§`. Only the section is looked up, not its steps and checks.
//!
//! Sources outside the repository ([`OUTSIDE`]) are cited as in "thesis, section 5.3"; these
//! citations are not checked.

use std::fs;
use std::path::Path;

use regex::{Captures, Regex};

use super::source;
use super::Verdict;
use crate::abi_pages::{self, Pages};
use crate::workspace;

/// Last words of the names of sources whose sections are not checked: they are not in the
/// repository.
const OUTSIDE: &[&str] = &["thesis", "paper", "specification"];

/// What files that may cite end with.
const ENDINGS: &[&str] = &["rs", "md", "toml", "c", "h", "S", "ld", "js", "sh", "txt"];

/// Files with citations that are wrong on purpose: tests of this rule and of what it rests on.
const EXEMPT: &[&str] = &["tools/src/check/citations.rs", "tools/src/abi_pages.rs"];

/// What to write instead of what is not understood.
const FORMS: &str = "write `04, section 8.2`, `03, sections 4.4 and 4.9`, `07, sections 6 to 8`, \
                     `04/8.2` or `page 04`; of another source, `thesis, section 5.3`";

/// The rule, for all files of the repository.
pub fn check() -> Verdict {
    match findings() {
        Ok(findings) => Verdict::of(findings),
        Err(error) => Verdict::Broken(vec![format!("{error:#}")]),
    }
}

fn findings() -> anyhow::Result<Vec<String>> {
    let pages = Pages::read()?;
    let citations = Citations::new();
    let root = workspace::root();
    let mut files = Vec::new();
    source::collect(&root, &may_cite, &mut files)?;
    files.sort();
    let mut findings = Vec::new();
    for file in files {
        let path = file.strip_prefix(&root).unwrap_or(&file);
        if EXEMPT.iter().any(|exempt| path == Path::new(exempt)) {
            continue;
        }
        match fs::read_to_string(&file) {
            Ok(text) => findings.extend(citations.judge(&pages, path, &text)),
            Err(error) => findings.push(format!("cannot read {}: {error}", path.display())),
        }
    }
    Ok(findings)
}

fn may_cite(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ENDINGS.iter().any(|may| ending == *may))
}

/// Finds citations.
struct Citations(Regex);

impl Citations {
    /// The first alternative that fits is taken, so that [`ODD`] gets what no other understands.
    fn new() -> Self {
        let number = r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)*(?-u:\b)";
        let numbers = format!("{number}(?:(?:, | and | or | to ){number})*");
        let one = format!("section (?<one>{number})");
        let many = format!("sections (?<many>{numbers})");
        let more = format!("(?: and | or | to |[-–/]){number}");
        let outside = OUTSIDE.join("|");
        let forms = [
            // Cursor positions are no pages.
            r"\\x1b\[[0-9;]*".to_owned(),
            format!(r"(?-u:\b)(?i-u:{outside}), sections? {numbers}"),
            format!(r"(?-u:\b)(?:ABI )?(?<page>[0-9]{{2}}), (?:{one}|{many})(?<more>{more})?"),
            format!(r#"(?-u:\b)(?:ABI )?(?<short_page>0[0-9])/(?:(?<short>{number})|[*"])"#),
            r"(?-u:\b)(?:ABI )?[Pp]ages? (?<pages>0[0-9](?:(?:, | and | or | to )0[0-9])*)(?-u:\b)"
                .to_owned(),
            format!(r"(?-u:\b)[Ss]ections? (?<own>{numbers})"),
            format!("(?<odd>{ODD})"),
        ];
        Self(Regex::new(&forms.join("|")).expect("the forms are regular expressions"))
    }

    /// What is wrong with the citations in `text`, the file at `path` of the repository.
    fn judge(&self, pages: &Pages, path: &Path, text: &str) -> Vec<String> {
        let own = path
            .starts_with(abi_pages::FOLDER)
            .then(|| abi_pages::page_of(path))
            .flatten();
        let text = Flat::new(text);
        self.0
            .captures_iter(&text.text)
            .flat_map(|found| {
                let whole = found.get(0).expect("what is found is there");
                let place = format!("{}:{}", path.display(), text.line(whole.start()));
                let cited = text.around(whole.range(), found.name("odd").is_some());
                let wrong = judge_one(pages, own, &text.text, &found);
                wrong
                    .into_iter()
                    .map(move |wrong| format!("{place}: `{cited}`: {wrong}"))
            })
            .collect()
    }
}

/// What looks like a citation and is none of the understood forms.
const ODD: &str =
    r"(?:(?-u:\b)ABI (?:pages? )?[0-9]+|(?-u:\b)0[1-9](?-u:\b))(?:,? (?:§|sections? )?[0-9.]+)?|§";

/// What is wrong with one citation, in a page if `own` is its number.
fn judge_one(pages: &Pages, own: Option<&str>, text: &str, found: &Captures) -> Vec<String> {
    let name = |name| found.name(name).map(|part| part.as_str());
    if let Some(list) = name("pages") {
        return numbers(list)
            .filter_map(|page| pages.missing_page(page))
            .collect();
    }
    if let Some(page) = name("short_page") {
        return match name("short") {
            Some(section) => pages.missing_section(page, section),
            None => pages.missing_page(page),
        }
        .into_iter()
        .collect();
    }
    if let Some(page) = name("page") {
        if found.name("more").is_some() {
            return vec![format!("several sections in another form: {FORMS}")];
        }
        return missing(pages, page, name("one").or(name("many")).unwrap_or(""));
    }
    if let Some(list) = name("own") {
        return match own {
            Some(page) => missing(pages, page, list),
            None => vec![format!("of which page? {FORMS}")],
        };
    }
    match found.name("odd") {
        Some(odd) if !is_other_number(text, odd.range()) => {
            vec![format!("not understood as a citation: {FORMS}")]
        }
        _ => Vec::new(),
    }
}

/// The sections of `list` that `page` does not have.
fn missing(pages: &Pages, page: &str, list: &str) -> Vec<String> {
    if let Some(why) = pages.missing_page(page) {
        return vec![why];
    }
    numbers(list)
        .filter_map(|section| pages.missing_section(page, section))
        .collect()
}

/// The numbers in `3, 4.4 and 9 to 11`.
fn numbers(list: &str) -> impl Iterator<Item = &str> {
    list.split([' ', ','])
        .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether the two digits at `range` are no citation: a string of their own, or part of a fraction,
/// a date, a time, or a file's name.
fn is_other_number(text: &str, range: std::ops::Range<usize>) -> bool {
    const JOINTS: [char; 3] = ['.', ':', '-'];
    let mut before = text[..range.start].chars().rev();
    let mut after = text[range.end..].chars();
    let before = (before.next(), before.next());
    let after = (after.next(), after.next());
    let joined = |neighbours| match neighbours {
        (Some(joint), Some(next)) => JOINTS.contains(&joint) && char::is_ascii_alphanumeric(&next),
        _ => false,
    };
    let quoted = before.0 == Some('"') && after.0 == Some('"');
    quoted || joined(before) || joined(after)
}

/// A text with its lines joined by spaces, without indentation and the signs that lines of comments
/// begin with: citations go on across ends of lines.
struct Flat {
    text: String,
    /// Where each line begins.
    starts: Vec<usize>,
}

impl Flat {
    fn new(text: &str) -> Self {
        let mut flat = Self {
            text: String::with_capacity(text.len()),
            starts: Vec::new(),
        };
        for line in text.lines() {
            flat.starts.push(flat.text.len());
            let line = line.trim().trim_end_matches('\\').trim_end();
            let line = ["//!", "///", "//", "/*", "* ", "#", ">"]
                .iter()
                .find_map(|sign| line.strip_prefix(sign))
                .unwrap_or(line);
            flat.text.push_str(line.trim_start());
            flat.text.push(' ');
        }
        flat
    }

    /// The 1-based line of what stands at `offset`.
    fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset)
    }

    /// What stands in `range`; if `wide`, with some words before and behind it.
    fn around(&self, range: std::ops::Range<usize>, wide: bool) -> &str {
        if !wide {
            return &self.text[range];
        }
        let start = self.text[..range.start]
            .char_indices()
            .rev()
            .nth(15)
            .map_or(0, |(at, _)| at);
        let end = self.text[range.end..]
            .char_indices()
            .nth(15)
            .map_or(self.text.len(), |(at, _)| range.end + at);
        self.text[start..end].trim()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge_in(path: &str, text: &str) -> Vec<String> {
        let mut pages = Pages::default();
        let sections = "## 1. One\n## 3. Three\n### 3.1 A\n### 3.10 B\n## 8. Eight\n### 8.2 C\n";
        pages.add("03", sections).unwrap();
        pages.add("04", sections).unwrap();
        Citations::new().judge(&pages, Path::new(path), text)
    }

    fn judge(text: &str) -> Vec<String> {
        judge_in("a.rs", text)
    }

    #[test]
    fn what_exists_is_right_in_every_form() {
        for right in [
            "/// Moves it (04, section 8.2).",
            "/// ABI 04, section 8.2 step 3: and checks 1 to 12",
            "(03, sections 1, 3.10 and 8; 04, sections 1 to 3, and 04, section 8)",
            "\"04/8.2/a-property\" and \"03/*\", --skip '04/8/some-*'",
            "ABI page 04; pages 03 and 04; Page 03: Objects",
            "        /// as it says (04,\n        /// sections 3.1\n        /// and 8).",
            " * In C (03,\n * section 3).",
            "# In TOML (03,\n# section 3).",
            "\"in a string (03, \\\n    section 3)\"",
        ] {
            assert_eq!(judge(right), Vec::<String>::new(), "{right}");
        }
    }

    #[test]
    fn a_wrong_section_is_found_with_its_place_and_the_nearest() {
        let findings = judge("//! First.\n\n    /// It does (04,\n    /// section 8.3).\n");
        let finding = "a.rs:3: `04, section 8.3`: page 04 has no section 8.3; the nearest: 8.2 (C)";
        assert_eq!(findings, [finding]);
        let findings = judge("03, sections 1, 3.2 and 9");
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].ends_with("no section 3.2; the nearest: 3.1 (A), 3.10 (B)"));
        for wrong in [
            "04/8.3/a-property",
            "04, sections 3 to 9",
            "ABI 04, section 2",
        ] {
            assert_eq!(judge(wrong).len(), 1, "{wrong}");
        }
    }

    #[test]
    fn a_wrong_page_is_found() {
        for wrong in [
            "05, section 1",
            "(05, sections 1 and 3)",
            "12, section 1",
            "00, section 1",
            "05/1",
            "page 05",
            "pages 03 and 05",
            "\"05/*\"",
        ] {
            let findings = judge(wrong);
            assert_eq!(findings.len(), 1, "{wrong}: {findings:?}");
            assert!(findings[0].contains("there is no page"), "{findings:?}");
        }
    }

    #[test]
    fn a_form_that_is_not_understood_is_found() {
        for wrong in [
            "(04 §8.2)",
            "(§8.2)",
            "(04 section 8.2)",
            "(04, 8.2)",
            "(04)",
            "ABI 04",
            "ABI 4, section 8",
            "ABI page 4",
            "04: 8.2",
            "(4, section 8.2)",
            "section 8.2",
            "Sections 3 and 8",
            "04, section 3 and 8",
            "04, section 3–8",
            "04, sections 3–8",
            "04, section 3/8",
            "04/a-property",
        ] {
            assert_eq!(judge(wrong).len(), 1, "{wrong}: {:?}", judge(wrong));
        }
    }

    #[test]
    fn in_a_page_sections_without_a_page_are_its_own() {
        let page = "docs/src/abi/04-scheduling.md";
        assert_eq!(judge_in(page, "as section 8.2 says"), Vec::<String>::new());
        assert_eq!(judge_in(page, "as section 8.3 says").len(), 1);
        assert_eq!(judge_in("docs/src/abi/README.md", "section 8.2").len(), 1);
    }

    #[test]
    fn other_sources_and_other_numbers_are_let_be() {
        for other in [
            "thesis, section 5.3",
            "(thesis, sections 5.2.7 and 6)",
            "of the Multiboot2 specification, section 3.1.3",
            "on 2026-11-04 at 04:05, 1.04 of 03.5, in 04-scheduling.md, \\x1b[01;02H",
            "0x04, a section of the file, page 3, 104, b01, and \"04\" in code",
        ] {
            assert_eq!(judge(other), Vec::<String>::new(), "{other}");
        }
    }
}
