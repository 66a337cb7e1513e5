//! What is shown of a console, and kept of it: the text as it comes, and behind each line what there is to be said of it.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};

/// Says something of lines of a console.
pub trait Annotate: Send + Sync {
    /// Lines to be shown behind `line`, which has no end.
    fn annotate(&self, line: &str) -> Vec<String>;
}

/// Whoever annotates a run's console, if anybody does.
#[derive(Clone, Default)]
pub struct Annotator(pub Option<Arc<dyn Annotate>>);

impl fmt::Debug for Annotator {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "annotated"
        } else {
            "plain"
        })
    }
}

/// Shows a console on standard output, and writes it to a file, as it is told to.
pub struct Printer {
    echo: bool,
    file: Option<(PathBuf, File)>,
    annotator: Annotator,
    /// The line that has not ended.
    line: Vec<u8>,
}

impl Printer {
    /// # Errors
    /// The file cannot be written.
    pub fn new(echo: bool, log: Option<&PathBuf>, annotator: &Annotator) -> Result<Self> {
        let open = |path: &PathBuf| {
            let file = File::create(path);
            let file = file.with_context(|| format!("cannot write {}", path.display()))?;
            anyhow::Ok((path.clone(), file))
        };
        Ok(Self {
            echo,
            file: log.map(open).transpose()?,
            annotator: annotator.clone(),
            line: Vec::new(),
        })
    }

    /// Shows more of the console.
    ///
    /// # Errors
    /// Standard output or the file cannot be written.
    pub fn print(&mut self, chunk: &[u8]) -> Result<()> {
        if !self.echo && self.file.is_none() {
            return Ok(());
        }
        for part in chunk.split_inclusive(|&byte| byte == b'\n') {
            self.put(part)?;
            self.line.extend_from_slice(part);
            if !part.ends_with(b"\n") {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            if let Some(annotator) = self.annotator.0.clone() {
                for more in annotator.annotate(String::from_utf8_lossy(&line).trim_end()) {
                    self.put(format!("{more}\n").as_bytes())?;
                }
            }
        }
        self.flush()
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        if self.echo {
            let written = io::stdout().lock().write_all(bytes);
            written.context("cannot show the console")?;
        }
        if let Some((path, file)) = &mut self.file {
            // The console's lines end as a terminal's; a file's do not.
            let text: Vec<u8> = bytes.iter().copied().filter(|&b| b != b'\r').collect();
            let written = file.write_all(&text);
            written.with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        match self.echo {
            true => io::stdout().flush().context("cannot show the console"),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Length;

    impl Annotate for Length {
        fn annotate(&self, line: &str) -> Vec<String> {
            let len = line.len();
            (len > 3).then(|| format!("  {len}")).into_iter().collect()
        }
    }

    #[test]
    fn what_is_said_of_a_line_stands_behind_it_however_it_comes() {
        let folder = std::env::temp_dir().join(format!("printer-{}", std::process::id()));
        let path = folder.with_extension("log");
        let annotator = Annotator(Some(Arc::new(Length)));
        let mut printer = Printer::new(false, Some(&path), &annotator).unwrap();
        for chunk in ["one\r\nth", "ree", "\r\nfo", "ur"] {
            printer.print(chunk.as_bytes()).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text, "one\nthree\n  5\nfour");
    }
}
