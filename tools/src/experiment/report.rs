//! What an experiment found: text for the console, a page that needs nothing else, data as CSV.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use maud::{html, Markup, PreEscaped, DOCTYPE};

use super::{Experiment, NO_PAPER};
use crate::beside::figures::Figure;

const STYLE: &str = "
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 940px; margin: 2em auto; padding: 0 1em; }
h1 { margin-bottom: 0.2em; } h2 { margin-top: 2em; } h3 { margin-bottom: 0.3em; }
svg { max-width: 100%; height: auto; display: block; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; margin: 0.8em 0; }
th, td { padding: 2px 9px; text-align: right; border-bottom: 1px solid #ddd; vertical-align: top; }
th { font-weight: 600; border-bottom: 1px solid #888; } td.name, th.name { text-align: left; }
.verdict { padding: 0.7em 1em; border-radius: 6px; white-space: pre-line; }
.good { background: #e7f4e8; } .bad { background: #fbe9e7; }
blockquote { color: #555; border-left: 3px solid #ccc; margin-left: 0; padding-left: 1em; }
.about { color: #555; }
";

/// What an experiment found.
pub struct Report {
    pub title: &'static str,
    /// What was claimed and holds, in a sentence; shown if nothing fails.
    pub claim: String,
    /// Claims that do not hold, a line each.
    pub failures: Vec<String>,
    /// The figures as a table, for the console.
    pub table: String,
    /// What was done, and why.
    pub introduction: Markup,
    pub sections: Vec<Section>,
    pub comparison: Vec<Comparison>,
    /// How it was measured, and what that leaves out.
    pub method: Markup,
    pub data: Vec<Data>,
    /// What is compared with another run.
    pub figures: Vec<Figure>,
}

/// A part of the page: text, tables, and charts as SVG.
pub struct Section {
    pub title: String,
    pub content: Markup,
}

/// A statement of the paper beside ours.
pub struct Comparison {
    pub what: String,
    pub paper: String,
    pub measured: String,
    pub verdict: Agreement,
    /// Why they differ; empty where they agree and nothing is to be said.
    pub why: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agreement {
    Agrees,
    Differs,
}

impl Agreement {
    pub const fn of(agrees: bool) -> Self {
        if agrees {
            Self::Agrees
        } else {
            Self::Differs
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
        }
    }
}

/// A file of data.
pub struct Data {
    /// With its ending.
    pub name: &'static str,
    pub content: String,
}

impl Report {
    /// For the console: the table, and the comparison.
    pub fn text(&self) -> String {
        let mut text = self.table.clone();
        if !self.comparison.is_empty() {
            text += "\n";
        }
        for line in &self.comparison {
            text += &format!(
                "{}: {}: paper {}; here {}",
                line.verdict.word(),
                line.what,
                line.paper,
                line.measured
            );
            if !line.why.is_empty() {
                text += &format!(" ({})", line.why);
            }
            text += "\n";
        }
        if self.failures.is_empty() {
            text += &format!("\n{}\n", self.claim);
        }
        text
    }

    /// What fails, and what the report itself lacks.
    pub fn findings(&self, experiment: &Experiment) -> Vec<String> {
        let mut findings = self.failures.clone();
        let charts: usize = self
            .sections
            .iter()
            .map(|section| section.content.0.matches("<svg").count())
            .sum();
        if charts == 0 {
            findings.push("the report has no plot".to_owned());
        }
        if self.comparison.is_empty() && experiment.reproduces != NO_PAPER {
            findings.push("the report compares nothing with the paper".to_owned());
        }
        // A header and at least one line of data.
        if self.data.is_empty()
            || self
                .data
                .iter()
                .any(|data| data.content.lines().count() < 2)
        {
            findings.push("the report lacks data".to_owned());
        }
        findings
    }

    /// Writes page and data into `folder`, which exists, over older ones.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, folder: &Path, experiment: &Experiment) -> Result<()> {
        let put = |name: &str, content: &str| {
            fs::write(folder.join(name), content).with_context(|| format!("cannot write `{name}`"))
        };
        put("index.html", &self.page(experiment))?;
        self.data
            .iter()
            .try_for_each(|data| put(data.name, &data.content))
    }

    fn page(&self, experiment: &Experiment) -> String {
        page(
            self.title,
            &html! {
                h1 { (self.title) }
                p.about { (experiment.reproduces) "; " (experiment.time()) ". Every run gives the same figures." }
                (self.introduction)
                @if self.failures.is_empty() {
                    p.verdict.good { (self.claim) }
                } @else {
                    p.verdict.bad { @for failure in &self.failures { (failure) "\n" } }
                }
                @for section in &self.sections {
                    h2 { (section.title) }
                    (section.content)
                }
                @if !self.comparison.is_empty() {
                    h2 { "Comparison with the paper" }
                    (self.comparisons())
                }
                h2 { "What is measured, and what is not" }
                (self.method)
                @if !self.data.is_empty() {
                    p {
                        "The data:"
                        @for data in &self.data { " " a href=(data.name) { (data.name) } }
                    }
                }
            },
        )
    }

    fn comparisons(&self) -> Markup {
        html! {
            table {
                tr {
                    th.name { "" } th.name { "paper" } th.name { "here" } th.name { "" } th.name { "why" }
                }
                @for line in &self.comparison {
                    tr {
                        td.name { (line.what) } td.name { (line.paper) } td.name { (line.measured) }
                        td.name { (line.verdict.word()) } td.name { (line.why) }
                    }
                }
            }
        }
    }
}

/// Writes a page that leads to the reports of `experiments`, each in a folder of its name.
///
/// # Errors
/// It cannot be written.
pub fn write_index(folder: &Path, experiments: &[&Experiment]) -> Result<()> {
    let content = page(
        "Sandglass: experiments",
        &html! {
            h1 { "Experiments" }
            table {
                tr { th.name { "experiment" } th.name { "reproduces" } th.name { "" } }
                @for experiment in experiments {
                    tr {
                        td.name {
                            a href=(format!("{}/index.html", experiment.name)) { (experiment.name) }
                        }
                        td.name { (experiment.reproduces) } td.name { (experiment.about) }
                    }
                }
            }
        },
    );
    fs::write(folder.join("index.html"), content).context("cannot write `index.html`")
}

/// A whole page.
fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Sandglass: " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    page.into_string()
}
