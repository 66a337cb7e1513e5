//! The sections of the ABI pages, as `systems/conformance/sections.toml` lists them: which of them can
//! be observed.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::arch::Arch;

/// A numbered heading of an ABI page.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// Page and number: `03/4.5`.
    pub id: String,
    pub title: String,
    /// Why a root task can observe nothing of it, if so.
    pub unobservable: Option<String>,
    /// The one architecture that it is about; `None` if it is about all.
    #[serde(default, deserialize_with = "architecture")]
    pub arch: Option<Arch>,
}

/// An architecture by its name.
fn architecture<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Arch>, D::Error> {
    let name = String::deserialize(source)?;
    let arch = Arch::ALL.into_iter().find(|arch| arch.name() == name);
    let unknown = || D::Error::custom(format!("`{name}` is no architecture: x86_64 or aarch64"));
    arch.ok_or_else(unknown).map(Some)
}

impl Section {
    /// Whether it is about `arch`.
    pub fn is_of(&self, arch: Arch) -> bool {
        self.arch.is_none_or(|own| own == arch)
    }

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
