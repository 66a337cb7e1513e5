//! What the rules about the book read: Markdown, as pages and as doc comments, and drawings. Each
//! piece of text is told with its line and with what it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, Context as _, Result};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::source::{collect, is_rust};
use crate::workspace;

/// The folder of the book, and pages beside it.
pub const BOOK: &str = "docs/src";
const BESIDE: [&str; 3] = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"];
/// The folder of the book's drawings.
const DRAWINGS: &str = "docs/src/img";

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Prose,
    /// Between backticks, or in a drawing.
    Code,
    /// In a block of code: commands, programs, output.
    Block,
}

/// A piece of text, with its 1-based line.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    pub line: usize,
    pub kind: Kind,
    pub text: String,
}

/// A file with text that is read by people.
#[derive(Default)]
pub struct Page {
    /// Relative to the repository.
    pub path: PathBuf,
    pub pieces: Vec<Piece>,
    /// Destinations of links and images, with their lines.
    pub links: Vec<(usize, String)>,
    /// The anchors of headings, as mdBook and GitHub name them.
    pub anchors: Vec<String>,
}

impl Page {
    /// The Markdown `text`, the file at `path`.
    pub fn markdown(path: impl Into<PathBuf>, text: &str) -> Self {
        let mut page = Self {
            path: path.into(),
            ..Self::default()
        };
        page.add(text, 1);
        page
    }

    /// The doc comments of the Rust program `text`, the file at `path`: those in macros, too, of which a parser knows
    /// nothing. Nothing is parsed, which would take most of the time.
    ///
    /// # Errors
    /// It is not made of Rust's tokens.
    pub fn doc_comments(path: impl Into<PathBuf>, text: &str) -> Result<Self> {
        let path = path.into();
        let tokens: TokenStream = text
            .parse()
            .map_err(|error| anyhow!("{error}"))
            .with_context(|| format!("cannot read {}", path.display()))?;
        let mut comments = Comments::default();
        comments.collect(tokens);
        let mut page = Self {
            path,
            ..Self::default()
        };
        for (line, text) in comments.blocks() {
            page.add(&text, line);
        }
        Ok(page)
    }

    /// The texts of the drawing `text`, the file at `path`.
    pub fn drawing(path: impl Into<PathBuf>, text: &str) -> Self {
        let mut line = 1;
        let mut pieces = Vec::new();
        for part in text.split('<') {
            // What stands behind a tag; the drawings have no `>` within one.
            if let Some((tag, text)) = part.split_once('>') {
                if !text.trim().is_empty() {
                    pieces.push(Piece {
                        line: line + lines(tag),
                        kind: Kind::Code,
                        text: text.to_owned(),
                    });
                }
            }
            line += lines(part);
        }
        Self {
            path: path.into(),
            pieces,
            ..Self::default()
        }
    }

    /// Adds the Markdown `text`, which begins in `first` of the file.
    fn add(&mut self, text: &str, first: usize) {
        let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES;
        let mut heading: Option<String> = None;
        let mut in_block = false;
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            let line = first + lines(&text[..range.start]);
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    self.links.push((line, dest_url.into_string()));
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let slug = slug(&heading.take().unwrap_or_default());
                    self.anchors.push(unused(slug, &self.anchors));
                }
                Event::Start(Tag::CodeBlock(_)) => in_block = true,
                Event::End(TagEnd::CodeBlock) => in_block = false,
                Event::Text(piece) | Event::Code(piece) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&piece);
                    }
                    let is_code = text[range].starts_with('`');
                    let kind = match (in_block, is_code) {
                        (true, _) => Kind::Block,
                        (false, true) => Kind::Code,
                        (false, false) => Kind::Prose,
                    };
                    self.pieces.push(Piece {
                        line,
                        kind,
                        text: piece.into_string(),
                    });
                }
                _ => {}
            }
        }
    }

    /// A finding at the 1-based `line`.
    pub fn at(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path.display())
    }
}

/// Ends of lines in `text`.
fn lines(text: &str) -> usize {
    text.matches('\n').count()
}

/// The anchor of a heading: small letters, hyphens for spaces, no punctuation.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ => c.is_alphanumeric().then_some(c),
    });
    kept.collect::<String>().to_lowercase()
}

/// `slug`, with a number if it is among `used`.
fn unused(slug: String, used: &[String]) -> String {
    let numbered = (1..).map(|number| format!("{slug}-{number}"));
    std::iter::once(slug.clone())
        .chain(numbered)
        .find(|anchor| !used.contains(anchor))
        .unwrap_or(slug)
}

/// The lines of doc comments, by their numbers.
#[derive(Default)]
struct Comments(BTreeMap<usize, String>);

impl Comments {
    /// Adds those among `tokens`, where a doc comment is the attribute that it means.
    fn collect(&mut self, tokens: TokenStream) {
        for tree in tokens {
            if let TokenTree::Group(group) = tree {
                match documentation(&group) {
                    Some((line, text)) => {
                        let text = text.strip_prefix(' ').unwrap_or(&text).to_owned();
                        self.0.insert(line, text);
                    }
                    None => self.collect(group.stream()),
                }
            }
        }
    }

    /// Lines that follow one another as one text, with the number of the first.
    fn blocks(self) -> Vec<(usize, String)> {
        let mut blocks: Vec<(usize, String)> = Vec::new();
        let mut next = 0;
        for (line, text) in self.0 {
            match blocks.last_mut().filter(|_| line == next) {
                Some((_, block)) => {
                    block.push('\n');
                    block.push_str(&text);
                }
                None => blocks.push((line, text)),
            }
            next = line + 1;
        }
        blocks
    }
}

/// The text of `[doc = "..."]`, with its line.
fn documentation(group: &Group) -> Option<(usize, String)> {
    if group.delimiter() != Delimiter::Bracket {
        return None;
    }
    let mut tokens = group.stream().into_iter();
    match (
        tokens.next()?,
        tokens.next()?,
        tokens.next()?,
        tokens.next(),
    ) {
        (TokenTree::Ident(name), TokenTree::Punct(sign), TokenTree::Literal(literal), None)
            if name == "doc" && sign.as_char() == '=' =>
        {
            let line = literal.span().start().line;
            match syn::Lit::new(literal) {
                syn::Lit::Str(text) => Some((line, text.value())),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The pages of the book, and those beside it.
///
/// # Errors
/// One cannot be read.
pub fn pages() -> Result<Vec<Page>> {
    let mut paths = files_below(BOOK, "md")?;
    paths.extend(BESIDE.map(PathBuf::from));
    each(paths, |path, text| Ok(Page::markdown(path, &text)))
}

/// The drawings of the book.
///
/// # Errors
/// One cannot be read.
pub fn drawings() -> Result<Vec<Page>> {
    each(files_below(DRAWINGS, "svg")?, |path, text| {
        Ok(Page::drawing(path, &text))
    })
}

/// The doc comments of all packages, by file.
///
/// # Errors
/// A file cannot be read, or is not made of Rust's tokens.
pub fn comments() -> Result<Vec<Page>> {
    each(files_below("", "rs")?, |path, text| {
        Page::doc_comments(path, &text)
    })
}

/// The files below `folder` of the repository that end in `ending`.
fn files_below(folder: &str, ending: &str) -> Result<Vec<PathBuf>> {
    let root = workspace::root();
    let wanted = |path: &Path| match ending {
        "rs" => is_rust(path),
        _ => path.extension().is_some_and(|found| found == ending),
    };
    let mut paths = Vec::new();
    collect(&root.join(folder), &wanted, &mut paths)?;
    paths.sort();
    let relative = |path: PathBuf| path.strip_prefix(&root).unwrap_or(&path).to_owned();
    Ok(paths.into_iter().map(relative).collect())
}

/// What `read` makes of each file.
fn each(paths: Vec<PathBuf>, read: impl Fn(PathBuf, String) -> Result<Page>) -> Result<Vec<Page>> {
    let page = |path: PathBuf| {
        let text = fs::read_to_string(workspace::root().join(&path))
            .with_context(|| format!("cannot read {}", path.display()))?;
        read(path, text)
    };
    paths.into_iter().map(page).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(line: usize, kind: Kind, text: &str) -> Piece {
        let text = text.to_owned();
        Piece { line, kind, text }
    }

    #[test]
    fn a_page_has_pieces_links_and_anchors() {
        let text =
            "# The `page`, 1/2\n\nText\n`a/b.rs` [link](x.md#y).\n\n```sh\nls\n```\n\n## A\n## A\n";
        let page = Page::markdown("a.md", text);
        assert_eq!(page.links, [(4, "x.md#y".to_owned())]);
        assert_eq!(page.anchors, ["the-page-12", "a", "a-1"]);
        assert!(page.pieces.contains(&piece(3, Kind::Prose, "Text")));
        assert!(page.pieces.contains(&piece(4, Kind::Code, "a/b.rs")));
        assert!(page.pieces.contains(&piece(7, Kind::Block, "ls\n")));
    }

    #[test]
    fn doc_comments_are_read_wherever_they_stand() {
        let text = "//! One `a\n//! b`.\n\n// no\nstruct S {\n    /// `c`\n    x: u8,\n}\n\
                    list! {\n    /// `d`\n    e,\n}\n#[doc(hidden)]\nfn f() {}\n";
        let page = Page::doc_comments("a.rs", text).unwrap();
        let code: Vec<&Piece> = page
            .pieces
            .iter()
            .filter(|p| p.kind == Kind::Code)
            .collect();
        assert_eq!(
            code,
            [
                &piece(1, Kind::Code, "a b"),
                &piece(6, Kind::Code, "c"),
                &piece(10, Kind::Code, "d")
            ]
        );
    }

    #[test]
    fn a_drawing_is_its_texts() {
        let page = Page::drawing("a.svg", "<svg>\n<text x=\"1\">mem/</text>\n</svg>");
        assert_eq!(page.pieces, [piece(2, Kind::Code, "mem/")]);
    }
}
