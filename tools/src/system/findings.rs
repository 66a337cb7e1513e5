//! What is wrong with a description, and where.

use std::error::Error;
use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::Source;

/// Bytes of the description's text.
pub type Span = Range<usize>;

/// One thing that is wrong.
#[derive(Debug, Clone)]
pub struct Finding {
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
            message: message.into(),
            span,
            label: String::new(),
            help: String::new(),
            related: None,
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
        let end = source.text.len();
        let clamp = |span: &Span| span.start.min(end)..span.end.min(end);
        let mut snippet = Snippet::source(&source.text).path(&source.name).annotation(
            AnnotationKind::Primary
                .span(clamp(&self.span))
                .label(&self.label),
        );
        if let Some((span, label)) = &self.related {
            snippet = snippet.annotation(AnnotationKind::Context.span(clamp(span)).label(label));
        }
        let mut group = Level::ERROR.primary_title(&self.message).element(snippet);
        if !self.help.is_empty() {
            group = group.element(Level::HELP.message(&self.help));
        }
        Renderer::plain().render(&[group])
    }
}

/// Everything that is wrong with a description, for people: each finding with file, line, column
/// and what would be right.
#[derive(Debug)]
pub struct Report {
    pub findings: Vec<Finding>,
    text: String,
}

impl Report {
    pub fn new(source: &Source, findings: Vec<Finding>) -> Self {
        let text = findings
            .iter()
            .map(|finding| finding.render(source))
            .collect::<Vec<_>>()
            .join("\n\n");
        Self { findings, text }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Report {}
