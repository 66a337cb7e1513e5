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
        Ok(self.difference(&self.shown()?, table))
    }

    /// What is wrong with the page, if it shows something else in the columns that `table` has.
    ///
    /// # Errors
    /// The page cannot be read, or has no place for it.
    pub fn finding_in_columns(&self, table: &str) -> Result<Option<String>> {
        let shown = columns_of(&self.shown()?, table);
        Ok(self.difference(&shown, table))
    }

    fn difference(&self, shown: &str, table: &str) -> Option<String> {
        let (path, command) = (self.path, self.command);
        (shown != table).then(|| format!("{path} shows other figures: run `{command}`\n{table}"))
    }
}

/// What `shown` has in the columns whose titles `table` has, too.
fn columns_of(shown: &str, table: &str) -> String {
    fn cells(line: &str) -> impl Iterator<Item = &str> {
        line.trim_matches('|').split('|')
    }
    let [titles, wanted] = [shown, table].map(|it| it.lines().next().unwrap_or_default());
    let wanted: Vec<&str> = cells(wanted).collect();
    let is_wanted: Vec<bool> = cells(titles).map(|title| wanted.contains(&title)).collect();
    let mut text = String::new();
    for line in shown.lines() {
        let cells = cells(line).zip(&is_wanted);
        let wanted: Vec<&str> = cells.filter(|it| *it.1).map(|it| it.0).collect();
        text += &format!("|{}|\n", wanted.join("|"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::{boot, calls_only, speculation, touches};
    use super::columns_of;

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

    #[test]
    fn columns_are_found_by_their_titles() {
        let shown = "| a | b | c |\n| --- | ---: | ---: |\n| x | 1 | 2 |\n";
        let table = "| a | c |\n| --- | ---: |\n| x | 2 |\n";
        assert_eq!(columns_of(shown, table), table);
        assert_eq!(columns_of(shown, shown), shown);
        assert_ne!(
            columns_of(shown, &table.replace('2', "1")),
            table.replace('2', "1")
        );
        assert_ne!(columns_of(shown, "| a | d |\n"), "| a | d |\n");
    }
}
