//! What names mean.

use std::collections::{HashMap, HashSet};

use super::super::document::{Component, Document, Text};
use super::super::findings::{Finding, Span};
use super::{text, Checker};

/// Longest name of a component: its environment has room for this many bytes.
const MAX_COMPONENT_NAME: usize = 32;
/// Longest other name, so that what is derived from it (`NAME.signal`) fits an environment too.
const MAX_NAME: usize = 31;

/// Names that are listed where one is unknown.
const MOST_LISTED: usize = 24;
/// Findings after which the search for similar names ends: it takes time, and that many are not read.
const MOST_HELPED: usize = 100;

/// A thread of the description, by indices in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadIndex {
    pub component: usize,
    /// 0 is the main thread.
    pub thread: usize,
}

/// The components by name.
#[derive(Debug)]
pub struct Names<'a> {
    components: HashMap<&'a str, usize>,
    /// Where names stand that are used a second time for the same kind of thing.
    repeated: HashSet<usize>,
    /// Two components have one name, so a third may be missing: that follows from it.
    ambiguous: bool,
}

impl<'a> Names<'a> {
    pub fn collect(document: &'a Document, findings: &mut Vec<Finding>) -> Self {
        well_formed("system", &document.name, true, MAX_COMPONENT_NAME, findings);
        let mut components = HashMap::new();
        unique(
            "component",
            document.components.iter().map(|c| &c.name),
            findings,
        );
        for (index, component) in document.components.iter().enumerate() {
            well_formed(
                "component",
                &component.name,
                true,
                MAX_COMPONENT_NAME,
                findings,
            );
            components.entry(text(&component.name)).or_insert(index);
            unique(
                "thread",
                component.threads.iter().map(|t| &t.name),
                findings,
            );
            for thread in &component.threads {
                well_formed("thread", &thread.name, true, MAX_NAME, findings);
            }
        }
        // Those of different components may have the same name.
        for timer in &document.timers {
            well_formed("timer", &timer.name, false, MAX_NAME, findings);
        }
        let mut others: Vec<(&str, Vec<&Text>)> = vec![
            ("endpoint", Vec::new()),
            ("notification", Vec::new()),
            ("memory region", Vec::new()),
            ("file", Vec::new()),
        ];
        others[0]
            .1
            .extend(document.endpoints.iter().map(|e| &e.name));
        others[1]
            .1
            .extend(document.notifications.iter().map(|n| &n.name));
        others[2].1.extend(document.memory.iter().map(|m| &m.name));
        others[3].1.extend(document.files.iter().map(|f| &f.name));
        let mut repeated = HashSet::new();
        for (what, names) in others {
            repeated.extend(unique(what, names.iter().copied(), findings));
            for name in names {
                well_formed(what, name, false, MAX_NAME, findings);
            }
        }
        let ambiguous = components.len() < document.components.len();
        Self {
            components,
            repeated,
            ambiguous,
        }
    }

    /// Whether a thing has the name of one before it: what follows from that is not worth reporting.
    pub fn is_repeated(&self, name: &Text) -> bool {
        self.repeated.contains(&name.span().start)
    }

    /// The index of a component.
    pub fn component(&self, name: &str) -> Option<usize> {
        self.components.get(name).copied()
    }
}

/// A name is made of letters, digits, `-`, `_`, and, where nothing else is derived from it, `.`.
fn well_formed(what: &str, name: &Text, strict: bool, most: usize, findings: &mut Vec<Finding>) {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c) || (!strict && c == '.');
    let value = text(name);
    if value.is_empty() || value.len() > most || !value.chars().all(allowed) {
        let dots = if strict { "" } else { ", `.`" };
        findings.push(
            Finding::new(
                name.span(),
                format!("`{value}` is not a valid name for a {what}"),
            )
            .label(format!(
                "a name has 1 to {most} letters, digits, `-`, `_`{dots}"
            )),
        );
    }
}

/// Reports names that are used twice; returns where they stand the second time.
fn unique<'t>(
    what: &str,
    names: impl Iterator<Item = &'t Text>,
    findings: &mut Vec<Finding>,
) -> Vec<usize> {
    let mut repeated = Vec::new();
    let mut first: HashMap<&str, Span> = HashMap::new();
    for name in names {
        match first.get(text(name)) {
            Some(span) => {
                repeated.push(name.span().start);
                findings.push(
                    Finding::new(
                        name.span(),
                        format!("two {what}s are called `{}`", name.get_ref()),
                    )
                    .label("the second")
                    .related(span.clone(), "the first")
                    .help("rename one of them"),
                );
            }
            None => {
                first.insert(text(name), name.span());
            }
        }
    }
    repeated
}

/// Of `known`, what was probably meant.
pub fn similar<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    known
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= 2.max(name.len() / 3))
        .min()
        .map(|(_, candidate)| candidate)
}

/// What to do about an unknown name.
pub fn help_with<'n>(what: &str, name: &str, known: impl Iterator<Item = &'n str>) -> String {
    let known: Vec<&str> = known.collect();
    match similar(name, known.iter().copied()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None if known.is_empty() => format!("there is no {what} at all"),
        None => {
            let shown = known.len().min(MOST_LISTED);
            let more = match known.len() - shown {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            format!("the {what}s are: {}{more}", known[..shown].join(", "))
        }
    }
}

impl<'a> Checker<'a> {
    /// The component called `name`.
    pub(super) fn find_component(&mut self, name: &Text) -> Option<usize> {
        let found = self.names.component(text(name));
        if found.is_none() {
            if self.names.ambiguous {
                return None;
            }
            let known = self.document.components.iter().map(|c| text(&c.name));
            let help = match self.findings.len() {
                0..MOST_HELPED => help_with("component", text(name), known),
                _ => String::new(),
            };
            self.found(
                Finding::new(
                    name.span(),
                    format!("no component is called `{}`", name.get_ref()),
                )
                .label("unknown component")
                .help(help),
            );
        }
        found
    }

    /// The thread at `path`: a component (its main thread), or `component/thread`.
    pub(super) fn find_thread(&mut self, path: &Text) -> Option<ThreadIndex> {
        let value = text(path);
        let Some((component_name, thread_name)) = value.split_once('/') else {
            return self.find_component(path).map(|component| ThreadIndex {
                component,
                thread: 0,
            });
        };
        let document = self.document;
        let thread = self.further_thread(component_name, thread_name);
        if thread.is_none() {
            if self.names.ambiguous {
                return None;
            }
            let known: Vec<String> = document.components.iter().flat_map(paths).collect();
            let help = match self.findings.len() {
                0..MOST_HELPED => help_with("thread", value, known.iter().map(String::as_str)),
                _ => String::new(),
            };
            self.found(
                Finding::new(path.span(), format!("there is no thread `{value}`"))
                    .label("unknown thread")
                    .help(help),
            );
        }
        thread
    }

    /// As [`Self::find_thread`]; nothing is said if there is none.
    pub(super) fn thread_at(&self, path: &Text) -> Option<ThreadIndex> {
        match text(path).split_once('/') {
            None => Some(ThreadIndex {
                component: self.names.component(text(path))?,
                thread: 0,
            }),
            Some((component, thread)) => self.further_thread(component, thread),
        }
    }

    fn further_thread(&self, component: &str, thread: &str) -> Option<ThreadIndex> {
        let component = self.names.component(component)?;
        let threads = &self.document.components[component].threads;
        let index = threads.iter().position(|t| text(&t.name) == thread)?;
        Some(ThreadIndex {
            component,
            thread: index + 1,
        })
    }
}

/// The paths of a component's threads.
fn paths(component: &Component) -> impl Iterator<Item = String> + '_ {
    let name = text(&component.name);
    let others = component
        .threads
        .iter()
        .map(move |thread| format!("{name}/{}", thread.name.get_ref()));
    std::iter::once(name.to_owned()).chain(others)
}
