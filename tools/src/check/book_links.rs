//! Links of the book and of the pages beside it: each leads to a file that exists, and to a heading
//! that it has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use anyhow::Result;

use super::pages::{self, Page, BOOK};
use super::Verdict;
use crate::workspace;

/// The book's list of its pages.
const SUMMARY: &str = "docs/src/SUMMARY.md";

/// The rule, for all pages.
pub fn rule() -> Verdict {
    match findings() {
        Ok(findings) => Verdict::of(findings),
        Err(error) => Verdict::Broken(vec![format!("{error:#}")]),
    }
}

fn findings() -> Result<Vec<String>> {
    let root = workspace::root();
    Ok(judge(&pages::pages()?, &|path| root.join(path).exists()))
}

/// What is wrong with the links of `pages`, in a repository with the files that `exists` tells.
fn judge(pages: &[Page], exists: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let anchors: BTreeMap<&Path, &[String]> = pages
        .iter()
        .map(|page| (page.path.as_path(), page.anchors.as_slice()))
        .collect();
    let mut findings = Vec::new();
    for page in pages {
        for (line, link) in page.links.iter().filter(|(_, link)| is_inner(link)) {
            if let Some(wrong) = judge_one(&page.path, link, &anchors, exists) {
                findings.push(page.at(*line, &format!("`{link}`: {wrong}")));
            }
        }
    }
    findings.extend(unlisted(pages));
    findings
}

/// Whether `link` stays in the repository.
fn is_inner(link: &str) -> bool {
    !link.contains("://") && !link.starts_with("mailto:")
}

/// What is wrong with `link` in the page `from`.
fn judge_one(
    from: &Path,
    link: &str,
    anchors: &BTreeMap<&Path, &[String]>,
    exists: &dyn Fn(&Path) -> bool,
) -> Option<String> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => from.to_owned(),
        _ => normal(&from.parent().unwrap_or(Path::new("")).join(path))?,
    };
    if !exists(&target) {
        return Some(format!("there is no {}", target.display()));
    }
    let headings = match (anchor, anchors.get(target.as_path())) {
        ("", _) => return None,
        (_, Some(headings)) => *headings,
        (_, None) => {
            return Some(format!("{} is no page with headings", target.display()));
        }
    };
    if headings.iter().any(|heading| heading == anchor) {
        return None;
    }
    let near = headings
        .iter()
        .max_by(|a, b| strsim::jaro(a, anchor).total_cmp(&strsim::jaro(b, anchor)));
    let near = near.map_or(String::new(), |near| format!("; the nearest is #{near}"));
    Some(format!("{} has no such heading{near}", target.display()))
}

/// `path` without `.` and `..`, unless it leads out of the repository.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if !normal.pop() => return None,
            Component::ParentDir | Component::CurDir => {}
            part => normal.push(part),
        }
    }
    Some(normal)
}

/// Pages of the book that its list lacks, so that no reader of the book finds them.
fn unlisted(pages: &[Page]) -> Vec<String> {
    let Some(summary) = pages.iter().find(|page| page.path == Path::new(SUMMARY)) else {
        return Vec::new();
    };
    let listed: BTreeSet<PathBuf> = summary
        .links
        .iter()
        .filter_map(|(_, link)| normal(&Path::new(BOOK).join(link)))
        .collect();
    let paths = pages.iter().map(|page| &page.path);
    paths
        .filter(|path| path.starts_with(BOOK) && *path != Path::new(SUMMARY))
        .filter(|path| !listed.contains(*path))
        .map(|path| format!("{}: add it to {SUMMARY}", path.display()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the rule says of a page in a folder of the book with `text`.
    fn findings(text: &str) -> Vec<String> {
        let pages = [
            Page::markdown("docs/src/a/page.md", text),
            Page::markdown("docs/src/other.md", "# Title\n## Some `code`, twice\n"),
            Page::markdown(SUMMARY, "[A](a/page.md) [B](other.md)"),
        ];
        let exists = |path: &Path| {
            pages.iter().any(|page| page.path == path) || path == Path::new("kernel/rooms.toml")
        };
        judge(&pages, &exists)
    }

    #[test]
    fn what_exists_is_right() {
        for right in [
            "# Here\n[x](#here)",
            "[x](../other.md) [x](../other.md#some-code-twice)",
            "[x](../../../kernel/rooms.toml)",
            "[x](https://example.org/none.md#no) ![x](../other.md)",
            "`[x](none.md)`",
            "[x][y]\n\n[y]: ../other.md#title",
        ] {
            assert_eq!(findings(right), Vec::<String>::new(), "{right}");
        }
    }

    #[test]
    fn a_link_to_nothing_is_found_with_its_place() {
        let finding = "docs/src/a/page.md:3: `none.md`: there is no docs/src/a/none.md";
        assert_eq!(findings("One\n\n[x](none.md)"), [finding]);
        for wrong in [
            "[x](other.md)",
            "![x](../img/none.svg)",
            "[x][y]\n\n[y]: none.md",
            "| a |\n| --- |\n| [x](none.md) |",
        ] {
            assert_eq!(findings(wrong).len(), 1, "{wrong}");
        }
    }

    #[test]
    fn a_heading_that_is_not_there_is_found_with_the_nearest() {
        let found = findings("[x](../other.md#some-code)");
        assert_eq!(found.len(), 1);
        assert!(
            found[0].ends_with("the nearest is #some-code-twice"),
            "{found:?}"
        );
        assert_eq!(findings("[x](#here)").len(), 1);
        assert_eq!(findings("[x](../../../kernel/rooms.toml#room)").len(), 1);
    }

    #[test]
    fn a_page_that_the_book_does_not_list_is_found() {
        let pages = [
            Page::markdown("docs/src/lost.md", ""),
            Page::markdown(SUMMARY, ""),
        ];
        assert_eq!(
            judge(&pages, &|_| true),
            ["docs/src/lost.md: add it to docs/src/SUMMARY.md"]
        );
    }
}
