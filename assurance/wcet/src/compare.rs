//! What of a path grew or shrank between two kernels.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::rc::Rc;

use crate::flow::Longest;
use crate::image::Image;
use crate::record::growth;
use crate::results::Results;
use crate::tree::tree;

/// A kernel and its bounds.
#[derive(Clone, Copy)]
pub struct Side<'s> {
    pub image: &'s Image,
    pub results: &'s [Results],
}

/// A table for each bound that differs: the bound, and the functions on its worst path whose own instructions differ.
/// Both sides were asked the same.
pub fn table(base: Side, new: Side) -> String {
    let mut text = String::new();
    for (before, after) in base.results.iter().zip(new.results) {
        let case = format!("{}.{}", after.case.system.name(), after.case.levels);
        let known: BTreeMap<&str, i64> = before.figures().into_iter().collect();
        for (name, cost) in after.figures() {
            let was = known.get(name).copied().unwrap_or(0);
            line(&mut text, &format!("{case} {name}"), was, cost);
            let longest = |results: &Results| -> Option<Longest> {
                let mut entries = results.entries.iter();
                let found = entries.find(|(entry, _)| entry.name() == name);
                found.map(|(_, longest)| longest.clone())
            };
            let (Some(old_path), Some(new_path)) = (longest(before), longest(after)) else {
                continue;
            };
            functions(
                &mut text,
                &own(base.image, &old_path),
                &own(new.image, &new_path),
            );
        }
    }
    text
}

/// Own instructions of the functions on a path.
fn own(image: &Image, longest: &Longest) -> BTreeMap<Rc<str>, i64> {
    let mut functions = BTreeMap::new();
    tree(image, longest).add_own(&mut functions);
    functions
}

/// Those that differ, what changes most first.
fn functions(text: &mut String, before: &BTreeMap<Rc<str>, i64>, after: &BTreeMap<Rc<str>, i64>) {
    let names: BTreeSet<&Rc<str>> = before.keys().chain(after.keys()).collect();
    let cost = |functions: &BTreeMap<Rc<str>, i64>, name| functions.get(name).copied().unwrap_or(0);
    let mut changed: Vec<(&str, i64, i64)> = names
        .into_iter()
        .map(|name| (&**name, cost(before, name), cost(after, name)))
        .filter(|(_, before, after)| before != after)
        .collect();
    changed.sort_by_key(|(_, before, after)| -(after - before).abs());
    for (name, before, after) in changed {
        line(text, &format!("    {name}"), before, after);
    }
}

fn line(text: &mut String, what: &str, before: i64, after: i64) {
    let more = after - before;
    let growth = match more {
        0 => "=".to_string(),
        _ => format!("{more:+} ({})", growth(before, after)),
    };
    let _ = writeln!(text, "{what:<72} {before:>7} {after:>7}  {growth}");
}
