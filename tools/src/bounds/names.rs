//! Symbols: from names to addresses and back.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result};
use object::{Object, ObjectSymbol};

/// The symbols of an ELF file.
#[derive(Debug, Default)]
pub struct Symbols {
    /// By address, one for each; without the hash that the compiler adds.
    names: BTreeMap<u64, String>,
    /// By name; of equals, the lowest.
    addresses: BTreeMap<String, u64>,
}

impl Symbols {
    /// Reads those of `path`.
    ///
    /// # Errors
    /// It is not an ELF file.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = object::File::parse(bytes.as_slice())
            .with_context(|| format!("{} is not an ELF file", path.display()))?;
        let mut symbols = Self::default();
        for symbol in file.symbols().filter(|symbol| symbol.is_definition()) {
            let name = symbol.name().context("a symbol has no name")?;
            let name = format!("{:#}", rustc_demangle::demangle(name));
            // Labels within a function have no name of their own.
            if !name.is_empty() {
                let address = symbol.address();
                let lowest = symbols.addresses.entry(name.clone()).or_insert(address);
                *lowest = address.min(*lowest);
                symbols.names.entry(address).or_insert(name);
            }
        }
        Ok(symbols)
    }

    /// Address of the symbol `name`.
    pub fn address(&self, name: &str) -> Option<u64> {
        self.addresses.get(name).copied()
    }

    /// The same of a symbol that a kernel must have.
    ///
    /// # Errors
    /// It has none.
    pub fn need(&self, name: &str) -> Result<u64> {
        self.address(name)
            .with_context(|| format!("the kernel has no `{name}`"))
    }

    /// The code of the function `name`: up to the next symbol.
    pub fn code(&self, name: &str) -> Option<Range<u64>> {
        let start = self.address(name)?;
        let (&end, _) = self.names.range(start + 1..).next()?;
        Some(start..end)
    }

    /// Addresses of the symbols whose names begin with `prefix`.
    pub fn with_prefix<'s>(&'s self, prefix: &'s str) -> impl Iterator<Item = u64> + 's {
        let matching = self
            .names
            .iter()
            .filter(move |(_, name)| name.starts_with(prefix));
        matching.map(|(&address, _)| address)
    }

    /// The function that `address` lies in, as short as it can be told.
    pub fn function(&self, address: u64) -> String {
        let before = self.names.range(..=address).next_back();
        before.map_or_else(|| format!("{address:#x}"), |(_, name)| short(name))
    }
}

/// The last two parts of a path, without generic arguments and angle brackets.
fn short(name: &str) -> String {
    let mut plain = String::new();
    let mut depth = 0;
    // A method's path begins with its type in brackets, whose own path is kept.
    let name = name.strip_prefix('<').unwrap_or(name);
    for c in name.chars() {
        match c {
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            '>' => {}
            _ if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    let plain = plain.split(" as ").next().unwrap_or_default().to_owned()
        + match plain.rsplit_once(" as ") {
            Some((_, rest)) => rest.rfind("::").map_or("", |at| &rest[at..]),
            None => "",
        };
    let parts: Vec<&str> = plain.split("::").filter(|part| !part.is_empty()).collect();
    parts[parts.len().saturating_sub(2)..].join("::")
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn names_are_told_by_their_last_two_parts() {
        assert_eq!(
            short("sandglass_kernel::ipc::caps::transfer"),
            "caps::transfer"
        );
        assert_eq!(
            short("<sandglass_kernel::object::queue::Queue>::detach"),
            "Queue::detach"
        );
        assert_eq!(
            short("<sandglass_kernel::arch::machine::Machine as sandglass_kernel::arch::Platform>::route"),
            "Machine::route"
        );
        assert_eq!(
            short("<core::option::Option<a::B>>::and_then::<c::D, <a::B>::slots>"),
            "Option::and_then"
        );
        assert_eq!(short("memset"), "memset");
    }
}
