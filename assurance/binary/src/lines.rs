//! Lines of the source, from the debugging information of the file.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::rc::Rc;

use addr2line::Loader;

/// A line of the source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// From the directory of the package on, as `kernel/src/syscall.rs`: nothing of the machine it was built on.
    pub file: Rc<str>,
    /// From 1; 0 if the compiler does not say.
    pub number: u32,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.number)
    }
}

/// A function of the source around an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Demangled.
    pub function: Rc<str>,
    pub line: Line,
}

/// The debugging information.
pub struct Lines {
    loader: Loader,
    /// What was asked before: paths lead through the same blocks many times.
    known: RefCell<BTreeMap<u64, Rc<[Frame]>>>,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}

impl Lines {
    /// Of a file; `None` if it has none, or none that can be read: only messages and reports want it.
    pub fn read(path: &Path) -> Option<Self> {
        Some(Self {
            loader: Loader::new(path).ok()?,
            known: RefCell::default(),
        })
    }

    /// The functions around an address, the innermost first.
    pub fn frames(&self, address: u64) -> Rc<[Frame]> {
        self.known
            .borrow_mut()
            .entry(address)
            .or_insert_with(|| self.look_up(address).into())
            .clone()
    }

    fn look_up(&self, address: u64) -> Vec<Frame> {
        let mut found = Vec::new();
        let Ok(mut frames) = self.loader.find_frames(address) else {
            return found;
        };
        while let Ok(Some(frame)) = frames.next() {
            let Some(location) = &frame.location else {
                continue;
            };
            let name = frame
                .function
                .as_ref()
                .and_then(|name| name.raw_name().ok());
            let function = name.map(|name| format!("{:#}", rustc_demangle::demangle(&name)));
            found.push(Frame {
                function: function.unwrap_or_default().into(),
                line: Line {
                    file: within_package(location.file.unwrap_or("?")).into(),
                    number: location.line.unwrap_or(0),
                },
            });
        }
        found
    }
}

/// A path from the directory that has `src` on; else the file's name alone.
fn within_package(path: &str) -> &str {
    let begin = match path.rfind("/src/") {
        Some(src) => path[..src].rfind('/').map_or(0, |slash| slash + 1),
        None => path.rfind('/').map_or(0, |slash| slash + 1),
    };
    &path[begin..]
}

#[cfg(test)]
mod tests {
    use super::within_package;

    #[test]
    fn paths_say_nothing_of_the_machine() {
        for (path, short) in [
            ("/home/x/kernel/src/time/turn.rs", "kernel/src/time/turn.rs"),
            ("kernel/src/lib.rs", "kernel/src/lib.rs"),
            ("/home/x/src/kernel/src/lib.rs", "kernel/src/lib.rs"),
            ("/elsewhere/loops.s", "loops.s"),
            ("loops.s", "loops.s"),
        ] {
            assert_eq!(within_package(path), short);
        }
    }
}
