//! A table of the book that a command makes.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use anyhow::{bail, Context, Result};

use crate::workspace;

/// The line behind the table.
const END: &str = "\n<!-- The end of the table. -->\n";

/// A page with a table, in the repository.
pub struct Page {
    pub path: &'static str,
    /// The command that makes it.
    pub command: &'static str,
}

impl Page {
    fn file(&self) -> PathBuf {
        workspace::root().join(self.path)
    }

    fn read(&self) -> Result<String> {
        let file = self.file();
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
    }

    /// Where the table stands in the `text` of the page.
    ///
    /// # Errors
    /// It has no place there.
    fn place(&self, text: &str) -> Result<Range<usize>> {
        let line = format!("<!-- `{}` makes this table. -->\n\n", self.command);
        let begin = text.find(&line).map(|at| at + line.len());
        match begin.and_then(|begin| Some(begin..begin + text[begin..].find(END)?)) {
            Some(place) => Ok(place),
            None => bail!(
                "{} has no place for the table: the lines\n{line}{END}",
                self.path
            ),
        }
    }

    /// The table that the page shows.
    ///
    /// # Errors
    /// The page cannot be read, or has no place for it.
    pub fn shown(&self) -> Result<String> {
        let text = self.read()?;
        let place = self.place(&text)?;
        Ok(text[place].to_owned())
    }

    /// Writes `table` into the page, and returns where that is.
    ///
    /// # Errors
    /// The page cannot be read or written, or has no place for it.
    pub fn write(&self, table: &str) -> Result<PathBuf> {
        let mut text = self.read()?;
        text.replace_range(self.place(&text)?, table);
        let file = self.file();
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(file)
    }

    /// What is wrong with the page, if it shows another table.
    ///
    /// # Errors
    /// The page cannot be read, or has no place for it.
    pub fn finding(&self, table: &str) -> Result<Option<String>> {
        let is_right = self.shown()? == table;
        let (path, command) = (self.path, self.command);
        Ok((!is_right).then(|| format!("{path} shows other figures: run `{command}`\n{table}")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{boot, calls_only, speculation, touches};

    #[test]
    fn pages_have_places_and_other_figures_are_found() {
        let pages = [
            &calls_only::PAGE,
            &touches::PAGE,
            &boot::PAGE_OF_BOOK,
            &speculation::PAGE,
        ];
        for page in pages {
            let text = page.read().unwrap();
            assert!(text[page.place(&text).unwrap()].starts_with("| "));
            assert!(page.place("nothing").is_err());
            let finding = page.finding("| other |\n").unwrap().unwrap();
            assert!(finding.contains(page.command), "{finding}");
        }
    }
}
