//! What is wrong with a description, and where.

use std::error::Error;
use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::source::Source;
use super::warning::Warning;

/// Bytes of the description's text.
pub type Span = Range<usize>;

/// Findings of which the text is shown; more are only counted.
const MOST_SHOWN: usize = 50;

/// One thing that is wrong.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Of a system that can be built nevertheless; `None`: it cannot.
    pub warning: Option<Warning>,
    /// The component or thread that it is about, as `of` of an accepted warning names it.
    pub about: Option<String>,
    /// What is wrong.
    pub message: String,
    pub span: Span,
    /// Beside the place.
    pub label: String,
    /// What would be right.
    pub help: String,
    /// Another place that belongs to it.
    pub related: Option<(Span, String)>,
}

impl Finding {
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Self {
            warning: None,
            about: None,
            message: message.into(),
            span,
            label: String::new(),
            help: String::new(),
            related: None,
        }
    }

    pub fn warning(self, warning: Warning) -> Self {
        Self {
            warning: Some(warning),
            ..self
        }
    }

    pub fn about(self, name: impl Into<String>) -> Self {
        Self {
            about: Some(name.into()),
            ..self
        }
    }

    pub fn label(self, label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            ..self
        }
    }

    pub fn help(self, help: impl Into<String>) -> Self {
        Self {
            help: help.into(),
            ..self
        }
    }

    pub fn related(self, span: Span, label: impl Into<String>) -> Self {
        Self {
            related: Some((span, label.into())),
            ..self
        }
    }

    fn render(&self, source: &Source) -> String {
        let shown = Shown::of(&source.text, self);
        let mut snippet = Snippet::source(shown.text)
            .line_start(shown.line)
            .path(&source.name)
            .annotation(
                AnnotationKind::Primary
                    .span(shown.place(&self.span))
                    .label(&self.label),
            );
        if let Some((span, label)) = &self.related {
            let place = shown.place(span);
            snippet = snippet.annotation(AnnotationKind::Context.span(place).label(label));
        }
        let level = match self.warning {
            None => Level::ERROR,
            Some(_) => Level::WARNING,
        };
        let mut title = level.primary_title(&self.message);
        if let Some(warning) = self.warning {
            title = title.id(warning.name());
        }
        let mut group = title.element(snippet);
        if !self.help.is_empty() {
            group = group.element(Level::HELP.message(&self.help));
        }
        Renderer::plain().render(&[group])
    }
}

/// The lines that a finding is about: the renderer goes through all that it gets.
struct Shown<'s> {
    text: &'s str,
    /// Number of the first, from 1.
    line: usize,
    /// Where it begins.
    begin: usize,
}

impl<'s> Shown<'s> {
    fn of(text: &'s str, finding: &Finding) -> Self {
        let other = finding.related.as_ref().map(|(span, _)| span);
        let places = std::iter::once(&finding.span).chain(other);
        let (mut first, mut last) = (text.len(), 0);
        for place in places {
            first = first.min(place.start);
            last = last.max(place.end.max(place.start)).min(text.len());
        }
        let before = text.get(..first).unwrap_or(text);
        let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        let rest = text.get(last..).unwrap_or_default();
        let end = rest.find('\n').map_or(text.len(), |newline| last + newline);
        Self {
            text: text.get(begin..end).unwrap_or_default(),
            line: before.matches('\n').count() + 1,
            begin,
        }
    }

    /// A place, within the lines.
    fn place(&self, span: &Span) -> Span {
        let within = |at: usize| at.saturating_sub(self.begin).min(self.text.len());
        within(span.start)..within(span.end)
    }
}

/// What was found in a description, for people: each finding with file, line, column and what would be
/// right.
#[derive(Debug, Clone)]
pub struct Report {
    pub findings: Vec<Finding>,
    text: String,
}

impl Report {
    pub fn new(source: &Source, findings: Vec<Finding>) -> Self {
        let shown = findings.iter().take(MOST_SHOWN);
        let mut texts: Vec<String> = shown.map(|finding| finding.render(source)).collect();
        if let Some(more @ 1..) = findings.len().checked_sub(MOST_SHOWN) {
            texts.push(format!("and {more} more"));
        }
        Self {
            findings,
            text: texts.join("\n\n"),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Report {}

/// Line and column of a byte of `text`, both from 1; columns are characters.
pub fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before[begin..].chars().count() + 1)
}
