//! The oracle for time, over a storm: the emulator's plugin is its witness.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{bail, ensure, Context, Result};

use crate::arch::Arch;
use crate::bounds::plugin;
use crate::workspace;

/// What the kernel's symbols begin with that say where things are in it.
const PREFIX: &str = "sandglass_watch_";

/// Watches machines, one after the other.
#[derive(Debug, Clone)]
pub struct Oracle {
    /// The plugin, and its arguments except for where it writes.
    plugin: OsString,
    places: String,
    /// What it writes.
    out: PathBuf,
    memory_mib: u32,
}

impl Oracle {
    /// For machines of this architecture with so much memory that run `kernel`.
    ///
    /// # Errors
    /// The plugin does not build, or the kernel's file does not say where things are in it.
    pub fn new(arch: Arch, kernel: &Path, memory_mib: u32) -> Result<Self> {
        Ok(Self {
            plugin: plugin::build()?.into_os_string(),
            places: places(arch, kernel)?,
            out: fresh_out(),
            memory_mib,
        })
    }

    /// The same for another machine, which may run beside this one.
    pub fn another(&self) -> Self {
        Self {
            out: fresh_out(),
            ..self.clone()
        }
    }

    /// QEMU's options for it.
    pub fn options(&self) -> Vec<OsString> {
        let mut plugin = self.plugin.clone();
        plugin.push(",out=");
        plugin.push(&self.out);
        plugin.push(&self.places);
        plugin::that_reads_memory(plugin, self.memory_mib)
    }

    /// What was seen of the machine that has ended.
    ///
    /// # Errors
    /// The oracle has found something; or the plugin did not come to its end.
    pub fn answer(&self) -> Result<Seen> {
        let text = fs::read_to_string(&self.out)
            .with_context(|| format!("cannot read {}", self.out.display()))?;
        // Only we have read it; a file that stays behind is no failure.
        let _ = fs::remove_file(&self.out);
        Seen::read(&text)
    }
}

/// A file that no other machine's plugin writes.
fn fresh_out() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("storm-{}-{number}.txt", std::process::id());
    workspace::target_dir().join(name)
}

/// How far the image of a kernel that QEMU loads is from the physical addresses that its own numbers mean: on aarch64 it is
/// loaded anywhere, by QEMU 2 MiB behind the beginning of memory.
const fn moved(arch: Arch) -> u64 {
    match arch {
        Arch::X86_64 => 0,
        Arch::Aarch64 => arch.memory_start() + (2 << 20),
    }
}

/// Arguments of the plugin: where things are in `kernel`, and where memory is.
fn places(arch: Arch, kernel: &Path) -> Result<String> {
    use object::{Object, ObjectSymbol};

    let bytes = fs::read(kernel).with_context(|| format!("cannot read {}", kernel.display()))?;
    let file = object::File::parse(bytes.as_slice())
        .with_context(|| format!("{} is not an ELF file", kernel.display()))?;
    let mut arguments = String::new();
    for symbol in file.symbols() {
        if let Some(name) = symbol.name().ok().and_then(|it| it.strip_prefix(PREFIX)) {
            let number = match name {
                "image_base" => symbol.address().wrapping_sub(moved(arch)),
                _ => symbol.address(),
            };
            arguments += &format!(",watch_{name}={number:x}");
        }
    }
    ensure!(
        !arguments.is_empty(),
        "{} has no symbols `{PREFIX}...` that say where the oracle finds what it asks",
        kernel.display()
    );
    Ok(format!("{arguments},ram={:x}", arch.memory_start()))
}

/// How much the oracle was told and has asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    stretches: u64,
    windows: u64,
    /// Of sporadic contexts.
    sporadic: u64,
    payments: u64,
    contexts: u64,
    begun: u64,
    changed: u64,
}

impl Seen {
    /// Reads what the plugin wrote.
    ///
    /// # Errors
    /// The oracle has found something, or the text has no end.
    fn read(text: &str) -> Result<Self> {
        let told: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("finding "))
            .collect();
        let seen = text.lines().find_map(|line| line.strip_prefix("seen "));
        let numbers: Option<Vec<u64>> =
            seen.and_then(|seen| seen.split(' ').map(|it| it.parse().ok()).collect());
        let findings = match numbers.as_deref() {
            Some(&[stretches, windows, sporadic, payments, contexts, begun, changed, 0])
                if told.is_empty() && windows > 0 =>
            {
                return Ok(Self {
                    stretches,
                    windows,
                    sporadic,
                    payments,
                    contexts,
                    begun,
                    changed,
                });
            }
            Some(&[.., findings]) => findings,
            _ => told.len() as u64,
        };
        if told.is_empty() {
            bail!("the oracle for time has checked no window, or the machine's end was not reported to it");
        }
        bail!(
            "the oracle for time has {findings} findings:\n{}",
            told.join("\n")
        )
    }

    pub fn add(&mut self, other: &Self) {
        self.stretches += other.stretches;
        self.windows += other.windows;
        self.sporadic += other.sporadic;
        self.payments += other.payments;
        self.contexts += other.contexts;
        self.begun += other.begun;
        self.changed += other.changed;
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            stretches,
            windows,
            sporadic,
            payments,
            contexts,
            begun,
            changed,
        } = self;
        write!(
            f,
            "oracle: {stretches} stretches, {windows} windows and {sporadic} of sporadic contexts, {payments} payments of {contexts} contexts, {begun} \
             histories begun, {changed} changed; no finding"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_an_end_and_no_findings() {
        let seen = Seen::read("seen 1 2 3 4 5 6 7 0\n").unwrap();
        assert_eq!((seen.stretches, seen.changed), (1, 7));
        let silent = Seen::read("").unwrap_err().to_string();
        assert!(silent.contains("end"), "{silent}");
        for text in [
            "finding windows: x\n",
            "finding windows: x\nseen 1 2 3 4 5 6 7 1\n",
        ] {
            let found = Seen::read(text).unwrap_err().to_string();
            assert!(found.contains("1 findings:\nwindows: x"), "{found}");
        }
        assert!(Seen::read("seen 1 2 3 4 5 6 7 1\n").is_err());
    }
}
