//! Figures in a page of the book: an experiment writes them, and finds that they are others.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use anyhow::{bail, Context, Result};

use crate::workspace;

/// What stands behind the figures.
const END: &str = "\n<!-- The end of the figures. -->\n";

/// A page with figures of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// In the repository.
    pub path: &'static str,
    /// The experiment that makes them.
    pub experiment: &'static str,
}

impl Page {
    fn command(self) -> String {
        format!("`./sandglass experiment {} --page`", self.experiment)
    }

    fn begin(self) -> String {
        format!("<!-- {} makes these figures. -->\n\n", self.command())
    }

    fn absolute(self) -> PathBuf {
        workspace::root().join(self.path)
    }

    /// The text of the page.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(self) -> Result<String> {
        let path = self.absolute();
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Where the figures stand in the text of the page.
    ///
    /// # Errors
    /// They have no place there.
    pub fn place(self, text: &str) -> Result<Range<usize>> {
        let begin = self.begin();
        let start = text.find(&begin).map(|at| at + begin.len());
        let place = start.and_then(|start| Some(start..start + text[start..].find(END)?));
        match place {
            Some(place) => Ok(place),
            None => bail!(
                "{} has no place for the figures: the lines\n{begin}{END}",
                self.path
            ),
        }
    }

    /// Writes them into the page.
    ///
    /// # Errors
    /// It cannot be read or written, or has no place for them.
    pub fn write(self, figures: &str) -> Result<()> {
        let mut text = self.read()?;
        text.replace_range(self.place(&text)?, figures);
        let path = self.absolute();
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// What is wrong with the page, if it shows something else.
    ///
    /// # Errors
    /// It cannot be read, or has no place for figures.
    pub fn finding(self, figures: &str) -> Result<Option<String>> {
        let text = self.read()?;
        let is_right = text[self.place(&text)?] == *figures;
        Ok((!is_right).then(|| {
            format!(
                "{} shows other figures: run {}\n{figures}",
                self.path,
                self.command()
            )
        }))
    }

    /// Writes the figures if that is asked for, and else says what is wrong with those in the page.
    ///
    /// # Errors
    /// It cannot be read or written, or has no place for them.
    pub fn hold(self, figures: &str, write: bool) -> Result<Option<String>> {
        if write {
            self.write(figures)?;
            return Ok(None);
        }
        self.finding(figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page = Page {
        path: "docs/src/reference/temporal-capabilities.md",
        experiment: "temporal-capabilities",
    };

    #[test]
    fn a_page_has_a_place_and_other_figures_are_found() {
        let text = PAGE.read().unwrap();
        let place = PAGE.place(&text).unwrap();
        assert!(text[place.clone()].starts_with('|'));
        assert!(PAGE.place("nothing").is_err());
        assert!(PAGE.finding(&text[place]).unwrap().is_none());
        let finding = PAGE.finding("others").unwrap().unwrap();
        assert!(finding.contains("--page"), "{finding}");
    }
}
