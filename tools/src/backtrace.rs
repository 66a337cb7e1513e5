//! What is at the addresses of a backtrace: the functions, and, of executables with debug information, files and lines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::Loader;
use rustc_demangle::demangle;

use crate::qemu::{Annotate, Annotator};

/// What the launcher writes between a component's name and the addresses.
const MARK: &str = ": backtrace:";

/// The executables of a system's components.
#[derive(Debug)]
pub struct Executables(BTreeMap<String, PathBuf>);

impl Executables {
    /// Of components, by their names.
    pub fn new(of_components: impl IntoIterator<Item = (String, PathBuf)>) -> Self {
        Self(of_components.into_iter().collect())
    }

    /// Says what the addresses mean behind each backtrace on a console.
    pub fn annotator(self) -> Annotator {
        Annotator(Some(Arc::new(self)))
    }
}

impl Annotate for Executables {
    fn annotate(&self, line: &str) -> Vec<String> {
        let Some((name, addresses)) = backtrace(line) else {
            return Vec::new();
        };
        let Some(path) = self.0.get(name) else {
            return Vec::new();
        };
        calls(path, &addresses)
    }
}

/// The component and the addresses of a line of the launcher with a backtrace.
fn backtrace(line: &str) -> Option<(&str, Vec<u64>)> {
    let (before, addresses) = line.rsplit_once(MARK)?;
    // What others say has another name in front.
    let (_, who) = before.split_once("launcher: `")?;
    let thread = who.strip_suffix('`')?;
    let component = thread.split('/').next()?;
    let addresses = addresses.split_whitespace().map(|word| {
        let digits = word.strip_prefix("0x")?;
        u64::from_str_radix(digits, 16).ok()
    });
    Some((component, addresses.collect::<Option<_>>()?))
}

/// A line for each call, the innermost first. Calls that were inlined have lines of their own.
fn calls(executable: &Path, addresses: &[u64]) -> Vec<String> {
    let Ok(loader) = Loader::new(executable) else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for (number, &address) in addresses.iter().enumerate() {
        // All but the first are where a call returns to: the call is before.
        let place = address - u64::from(number > 0 && address > 0);
        let frames = inlined(&loader, place);
        if frames.is_empty() {
            let symbol = loader.find_symbol(place).map(demangled);
            let symbol = symbol.unwrap_or_else(|| "?".to_owned());
            lines.push(format!("{number:>6}: {address:#x} {symbol}"));
        }
        for (inner, frame) in frames.into_iter().enumerate() {
            let number = match inner {
                0 => format!("{number:>6}: {address:#x}"),
                _ => " ".repeat(format!("{number:>6}: {address:#x}").len()),
            };
            lines.push(format!("{number} {frame}"));
        }
    }
    lines
}

/// The function at a place, and those into which it was inlined, with files and lines.
fn inlined(loader: &Loader, place: u64) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(mut frames) = loader.find_frames(place) else {
        return Vec::new();
    };
    while let Ok(Some(frame)) = frames.next() {
        let name = frame.function.as_ref().and_then(|f| f.raw_name().ok());
        let at = frame.location.and_then(|at| Some((at.file?, at.line?)));
        found.push((name.map(|name| demangled(&name)), at));
    }
    // The outermost is the symbol's, whose name has its path; line tables alone name none.
    if let (Some(last), Some(symbol)) = (found.last_mut(), loader.find_symbol(place)) {
        last.0 = Some(demangled(symbol));
    }
    let lines = found.into_iter().map(|(name, at)| {
        let name = name.unwrap_or_else(|| "?".to_owned());
        match at {
            Some((file, line)) => format!("{name} at {file}:{line}"),
            None => name,
        }
    });
    lines.collect()
}

fn demangled(name: &str) -> String {
    format!("{:#}", demangle(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_launcher_says_is_a_backtrace() {
        let addresses = vec![0x40_1000, 0x40_2000];
        for line in [
            "launcher: `pump`: backtrace: 0x401000 0x402000",
            "[    0.000123] ERROR launcher: `pump/second`: backtrace: 0x401000 0x402000",
        ] {
            assert_eq!(backtrace(line), Some(("pump", addresses.clone())));
        }
        for line in [
            "launcher: `pump` was stopped by a fault: reading address 0x0",
            "launcher: `pump`: backtrace: 401000",
            "launcher: a thread that `pump` made: backtrace: 0x401000",
            "pump: backtrace: 0x401000",
        ] {
            assert_eq!(backtrace(line), None, "{line}");
        }
    }

    /// We are built without lines: a component's are looked at in `tests/recovery.rs`.
    #[test]
    fn an_address_in_this_program_has_the_name_of_its_function() {
        let executable = std::env::current_exe().unwrap();
        let symbol = symbol_address(&executable, "backtrace::demangled");
        let lines = calls(&executable, &[symbol]);
        assert!(lines[0].contains("backtrace::demangled"), "{lines:?}");
    }

    fn symbol_address(executable: &Path, name: &str) -> u64 {
        use object::{Object, ObjectSymbol};
        let bytes = std::fs::read(executable).unwrap();
        let file = object::File::parse(bytes.as_slice()).unwrap();
        let is_it = |symbol: &str| demangled(symbol).ends_with(name);
        let mut symbols = file.symbols();
        let symbol = symbols.find(|symbol| symbol.name().is_ok_and(is_it));
        symbol.unwrap().address()
    }
}
