//! What the analysis found, recorded in the kernel's file itself: the kernel tells its root task (the chunk of boot
//! information about time). Nothing that is executed changes by it, so that the bounds stay what they are.

use anyhow::{ensure, Context, Result};
use object::{Object, ObjectSection, ObjectSymbol};

/// The variable in the kernel (`arch/bounds.rs`).
const SYMBOL: &str = "sandglass_analysed";

/// The bounds of a binary, of open systems on a platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The longest path without a check for interrupts, in instructions.
    pub path: u64,
    /// What an interrupt may have to wait until whoever waits for it runs, in instructions.
    pub latency: u64,
    /// The same on the platform, ns.
    pub path_ns: u64,
    pub latency_ns: u64,
    /// The least budget there, µs; 0 if it is the ABI's.
    pub min_budget_us: u64,
}

/// Words of the kernel's variable.
const WORDS: usize = 5;

impl Stamp {
    /// In the order of the kernel's variable.
    fn words(self) -> [u64; WORDS] {
        [
            self.path,
            self.latency,
            self.path_ns,
            self.latency_ns,
            self.min_budget_us,
        ]
    }

    /// Writes it into the bytes of a kernel's file.
    ///
    /// # Errors
    /// It is no kernel that tells it.
    pub fn write(self, file: &mut [u8]) -> Result<()> {
        let at = place(file)?;
        for (to, word) in file[at].chunks_exact_mut(8).zip(self.words()) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        Ok(())
    }

    /// What a kernel's file tells; `None` if it was never analysed.
    ///
    /// # Errors
    /// It is no kernel that tells it.
    pub fn read(file: &[u8]) -> Result<Option<Self>> {
        let at = place(file)?;
        let mut words = file[at].chunks_exact(8).map(|word| {
            let bytes: [u8; 8] = word.try_into().unwrap_or_default();
            u64::from_le_bytes(bytes)
        });
        let mut next = || words.next().unwrap_or_default();
        let stamp = Self {
            path: next(),
            latency: next(),
            path_ns: next(),
            latency_ns: next(),
            min_budget_us: next(),
        };
        Ok((stamp.path > 0).then_some(stamp))
    }
}

/// Where the variable is in the file.
fn place(bytes: &[u8]) -> Result<std::ops::Range<usize>> {
    let file = object::File::parse(bytes).context("this is no ELF file")?;
    let symbol = file
        .symbols()
        .find(|symbol| symbol.name() == Ok(SYMBOL))
        .with_context(|| {
            format!("it has no variable `{SYMBOL}`: is it a release kernel of this project, with symbols?")
        })?;
    let section = symbol
        .section_index()
        .and_then(|index| file.section_by_index(index).ok())
        .with_context(|| format!("`{SYMBOL}` is in no section"))?;
    let (start, length) = section
        .file_range()
        .with_context(|| format!("`{SYMBOL}` is not in the file: it must not be in .bss"))?;
    let within = symbol.address() - section.address();
    let bytes = 8 * WORDS as u64;
    ensure!(
        symbol.size() == bytes && within + bytes <= length,
        "`{SYMBOL}` has {} bytes, and this analyser writes {bytes}",
        symbol.size()
    );
    let at = (start + within) as usize;
    Ok(at..at + 8 * WORDS)
}
