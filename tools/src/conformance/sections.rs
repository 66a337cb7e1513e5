//! The sections of the ABI pages, as `systems/conformance/sections.toml` lists them: which of them can
//! be observed.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// A numbered heading of an ABI page.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// Page and number: `03/4.5`.
    pub id: String,
    pub title: String,
    /// Why a root task on x86_64 can observe nothing of it, if so.
    pub unobservable: Option<String>,
}

impl Section {
    /// The page's number.
    pub fn page(&self) -> &str {
        page_of(&self.id)
    }
}

/// The page of `03/4.5` or `03/4.5/property`.
pub fn page_of(id: &str) -> &str {
    id.split_once('/').map_or(id, |(page, _)| page)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    section: Vec<Section>,
}

/// Reads the list at `path`, in its order.
///
/// # Errors
/// The file is missing or malformed.
pub fn read(path: &Path) -> Result<Vec<Section>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let document: Document =
        toml::from_str(&text).with_context(|| format!("in {}", path.display()))?;
    Ok(document.section)
}
