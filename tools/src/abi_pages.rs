//! The sections of the ABI pages, as `docs/src/abi/` has them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use anyhow::{bail, Context, Result};

use crate::workspace;

/// Where the pages are, in the repository.
pub const FOLDER: &str = "docs/src/abi";

/// The number of a section: `8.2`. In the order of a page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number(Vec<u32>);

impl FromStr for Number {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.split('.')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&parts.join("."))
    }
}

/// The numbered headings of a page, by number.
type Page = BTreeMap<Number, String>;

/// All pages, by number: `04`.
#[derive(Debug, Default)]
pub struct Pages(BTreeMap<String, Page>);

impl Pages {
    /// Reads the repository's pages.
    ///
    /// # Errors
    /// There are none, or one cannot be read, or two sections of a page have one number.
    pub fn read() -> Result<Self> {
        Self::read_from(&workspace::root().join(FOLDER))
    }

    fn read_from(folder: &Path) -> Result<Self> {
        let mut pages = Self::default();
        let reading = || format!("cannot read {}", folder.display());
        for entry in fs::read_dir(folder).with_context(reading)? {
            let path = entry.with_context(reading)?.path();
            let Some(number) = page_of(&path) else {
                continue;
            };
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            pages
                .add(number, &text)
                .with_context(|| format!("in {}", path.display()))?;
        }
        if pages.0.is_empty() {
            bail!("{} holds no ABI page", folder.display());
        }
        Ok(pages)
    }

    /// Adds page `number`, whose Markdown is `text`.
    ///
    /// # Errors
    /// Two sections have one number.
    pub fn add(&mut self, number: &str, text: &str) -> Result<()> {
        let mut page = Page::new();
        for (number, title) in text.lines().filter_map(heading) {
            if page.contains_key(&number) {
                bail!("there are two sections {number}");
            }
            page.insert(number, title);
        }
        self.0.insert(number.to_owned(), page);
        Ok(())
    }

    /// All sections of all pages, in their order: page, number, title.
    pub fn sections(&self) -> impl Iterator<Item = (&str, &Number, &str)> {
        self.0.iter().flat_map(|(name, page)| {
            page.iter()
                .map(move |(number, title)| (name.as_str(), number, title.as_str()))
        })
    }

    /// Why there is no page `page`, if so.
    pub fn missing_page(&self, page: &str) -> Option<String> {
        if self.0.contains_key(page) {
            return None;
        }
        let pages: Vec<&str> = self.0.keys().map(String::as_str).collect();
        Some(format!(
            "there is no page {page}; the pages are {}",
            pages.join(", ")
        ))
    }

    /// Why page `page` has no section `number`, if so: with the nearest that it has.
    pub fn missing_section(&self, page: &str, number: &str) -> Option<String> {
        let Some(sections) = self.0.get(page) else {
            return self.missing_page(page);
        };
        let Ok(wanted) = number.parse::<Number>() else {
            return Some(format!("{number} is no number of a section"));
        };
        if sections.contains_key(&wanted) {
            return None;
        }
        let before = sections.range(..&wanted).next_back();
        let after = sections.range(&wanted..).next();
        let nearest: Vec<String> = before
            .into_iter()
            .chain(after)
            .map(|(number, title)| format!("{number} ({title})"))
            .collect();
        Some(format!(
            "page {page} has no section {number}; the nearest: {}",
            nearest.join(", ")
        ))
    }
}

/// The number of the page that the file at `path` is: its name begins with it.
pub fn page_of(path: &Path) -> Option<&str> {
    let (number, _) = path.file_name()?.to_str()?.split_once('-')?;
    let is_page = number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit());
    is_page.then_some(number)
}

/// Number and title of a numbered heading: `## 8. Queues`, `### 8.2 Scheduler action`.
fn heading(line: &str) -> Option<(Number, String)> {
    let text = line.trim_start_matches('#');
    if text.len() == line.len() {
        return None;
    }
    let (number, title) = text.trim_start().split_once(' ')?;
    let number = number.strip_suffix('.').unwrap_or(number).parse().ok()?;
    Some((number, title.trim().replace('`', "").replace("**", "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(text: &str) -> Result<Pages> {
        let mut pages = Pages::default();
        pages.add("04", text)?;
        Ok(pages)
    }

    #[test]
    fn sections_are_numbered_headings() {
        let text = "# Page 04: Time\n\n1. item\n\n## 8. Queues `q`\n\n### 8.10 Ten\n\n### 8.2 Two\n\n## More\n";
        let pages = pages(text).unwrap();
        let found: Vec<String> = pages
            .sections()
            .map(|(page, number, title)| format!("{page}/{number} {title}"))
            .collect();
        assert_eq!(found, ["04/8 Queues q", "04/8.2 Two", "04/8.10 Ten"]);
    }

    #[test]
    fn two_sections_of_one_number_are_refused() {
        assert!(pages("## 8. A\n## 8. B\n").is_err());
    }

    #[test]
    fn what_is_missing_is_told_with_the_nearest() {
        let pages = pages("## 1. A\n### 1.9 B\n## 2. C\n").unwrap();
        assert_eq!(pages.missing_section("04", "1.9"), None);
        let why = pages.missing_section("04", "1.10").unwrap();
        assert_eq!(
            why,
            "page 04 has no section 1.10; the nearest: 1.9 (B), 2 (C)"
        );
        let why = pages.missing_section("05", "1").unwrap();
        assert_eq!(why, "there is no page 05; the pages are 04");
    }

    #[test]
    fn the_repository_has_nine_pages() {
        let pages = Pages::read().unwrap();
        for page in 1..=9 {
            assert_eq!(pages.missing_section(&format!("{page:02}"), "1"), None);
        }
    }
}
