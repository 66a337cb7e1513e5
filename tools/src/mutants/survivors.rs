//! `assurance/mutants/survivors.toml`: the mutants that no test need catch, each with an argument.

use std::collections::BTreeMap;

use anyhow::{bail, Context, Result};
use serde::Deserialize;

/// In the repository.
pub const PATH: &str = "assurance/mutants/survivors.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    survivor: Vec<Survivor>,
}

/// Mutants that survive for one reason.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Survivor {
    why: String,
    mutants: Vec<String>,
}

/// Reads the document `text`: names of mutants, with the argument for each.
///
/// # Errors
/// It is malformed, an argument is empty, or a mutant is there twice.
pub fn parse(text: &str) -> Result<BTreeMap<String, String>> {
    let document: Document = toml::from_str(text).with_context(|| format!("in {PATH}"))?;
    let mut argued = BTreeMap::new();
    for survivor in document.survivor {
        if survivor.why.trim().is_empty() {
            bail!("{PATH}: {:?} need an argument in `why`", survivor.mutants);
        }
        for name in survivor.mutants {
            if argued.insert(name.clone(), survivor.why.clone()).is_some() {
                bail!("{PATH}: `{name}` is listed twice; once is right");
            }
        }
    }
    Ok(argued)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn each_mutant_has_one_argument() {
        let argued = parse("[[survivor]]\nwhy = 'w'\nmutants = ['a', 'b']").unwrap();
        assert_eq!(argued["b"], "w");
        for wrong in [
            "[[survivor]]\nwhy = ' '\nmutants = ['a']",
            "[[survivor]]\nwhy = 'w'\nmutants = ['a', 'a']",
            "[[survivor]]\nmutants = ['a']",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
