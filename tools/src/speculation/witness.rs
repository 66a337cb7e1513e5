//! Watches what a kernel does against speculation while a machine runs, by the emulator's plugin.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{ensure, Context, Result};
use object::{Object, ObjectSymbol};

use crate::bounds::plugin;
use crate::cores::MOST_CORES;
use crate::workspace;

/// What the kernel's image adds to its physical addresses.
const KERNEL_BASE: u64 = 0xffff_ffff_8000_0000;

/// What watches a machine.
pub struct Witness {
    plugin: OsString,
    out: PathBuf,
    memory_mib: u32,
}

/// How often a measure was taken where it belongs, was not, and was taken where it does not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub done: u64,
    pub missed: u64,
    pub needless: u64,
}

/// What was seen of a core.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Exits to user code, and those to another address space than before.
    pub exits: u64,
    pub switches: u64,
    /// Returns to callers inside the kernel.
    pub returns: u64,
    /// By the names of the options.
    pub measures: BTreeMap<String, Tally>,
}

impl Witness {
    /// For a machine with so much memory that runs `kernel`.
    ///
    /// # Errors
    /// The plugin does not build, or the kernel's file does not say where its ways out are.
    pub fn new(kernel: &Path, memory_mib: u32) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("speculation-{}-{number}.txt", std::process::id());
        let out = workspace::target_dir().join(name);
        let mut plugin = plugin::build()?.into_os_string();
        plugin.push(",out=");
        plugin.push(&out);
        plugin.push(places(kernel)?);
        Ok(Self {
            plugin,
            out,
            memory_mib,
        })
    }

    /// QEMU's options for it.
    pub fn options(&self) -> Vec<OsString> {
        plugin::that_reads_memory(self.plugin.clone(), self.memory_mib)
    }

    /// What was seen of each core of the machine that has ended.
    ///
    /// # Errors
    /// The plugin has not come to its end, or has seen nothing.
    pub fn answer(&self) -> Result<Vec<Seen>> {
        let text = fs::read_to_string(&self.out)
            .with_context(|| format!("cannot read {}", self.out.display()))?;
        // Only we have read it; a file that stays behind is no failure.
        let _ = fs::remove_file(&self.out);
        read(&text)
    }
}

/// Arguments of the plugin: the ways out of `kernel`, and where each core has the root that its own loads.
fn places(kernel: &Path) -> Result<String> {
    let bytes = fs::read(kernel).with_context(|| format!("cannot read {}", kernel.display()))?;
    let file = object::File::parse(bytes.as_slice())
        .with_context(|| format!("{} is not an ELF file", kernel.display()))?;
    let find = |name: &str| file.symbols().find(|symbol| symbol.name() == Ok(name));
    let address = |name: &str| {
        let symbol = find(name).with_context(|| format!("the kernel has no symbol `{name}`"))?;
        anyhow::Ok(symbol.address())
    };
    let root =
        (address("sandglass_core")? + address("sandglass_exit_root_at")?).wrapping_sub(KERNEL_BASE);
    let step = address("sandglass_exit_root_step")?;
    let mut arguments = String::from(",ram=0");
    for core in 0..u64::from(MOST_CORES) {
        let Some(exit) = find(&format!("sandglass_exit_{core}")) else {
            continue;
        };
        let (start, end) = (exit.address(), exit.address() + exit.size());
        let root = root + core * step;
        // Writing to a string does not fail.
        let _ = write!(arguments, ",exit={start:x},exit_end={end:x},root={root:x}");
    }
    Ok(arguments)
}

/// Reads what the plugin wrote.
fn read(text: &str) -> Result<Vec<Seen>> {
    let mut cores: BTreeMap<u64, Seen> = BTreeMap::new();
    for line in text.lines() {
        read_line(&mut cores, line).with_context(|| format!("`{line}` is not from the plugin"))?;
    }
    ensure!(
        !cores.is_empty(),
        "the plugin has seen no exit to user code"
    );
    Ok(cores.into_values().collect())
}

fn read_line(cores: &mut BTreeMap<u64, Seen>, line: &str) -> Option<()> {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |at: usize| words.get(at)?.parse::<u64>().ok();
    let seen = cores.entry(number(1)?).or_default();
    match words[..] {
        ["core", _, "exits", _, "switches", _, "returns", _] => {
            (seen.exits, seen.switches, seen.returns) = (number(3)?, number(5)?, number(7)?);
        }
        ["core", _, name, "done", _, "missed", _, "needless", _] => {
            let tally = Tally {
                done: number(4)?,
                missed: number(6)?,
                needless: number(8)?,
            };
            seen.measures.insert(name.to_owned(), tally);
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_read_by_core() {
        let text = "core 0 exits 9 switches 3 returns 20\ncore 0 ibpb done 2 missed 1 needless 4\n\
                    core 2 exits 1 switches 1 returns 0\n";
        let seen = read(text).unwrap();
        assert_eq!(seen.len(), 2);
        assert_eq!((seen[0].exits, seen[0].switches, seen[1].exits), (9, 3, 1));
        let tally = seen[0].measures["ibpb"];
        assert_eq!((tally.done, tally.missed, tally.needless), (2, 1, 4));
        assert!(read("").is_err());
        assert!(read("core x exits 1 switches 1 returns 0\n").is_err());
        assert!(read("core 0 ibpb done 1\n").is_err());
    }
}
