//! The page of the book that shows the table.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::aarch64;
use super::table;
use crate::arch::Arch;
use crate::workspace;

/// Where it is, in the repository.
const PAGE: &str = "docs/src/reference/machine-state.md";

const INTRODUCTION: &str = "\
# The machine's state

Every piece of a processor's state that user code can access or be affected by: the value that it has while user code
runs, what another value would mean, and what sets it (files below `kernel/src/arch/`, in the architecture's part).
Nothing is left to firmware or boot loader, except what the tables mark *as found*. First for x86_64, then
[for aarch64](#aarch64).

`./sandglass machine` boots a root task that spins on every core, by QEMU's own loader (PVH), through BIOS and
through UEFI, on the kernels for one core and for several. It stops the machine while user code runs on all cores, reads
the state from outside, and compares it with the table. The tests do so for some of the starts. With `--arch aarch64` it
boots that architecture's kernels, those of the ABI's profile and one that lets programs have the clock.
`./sandglass machine spoiled` has a kernel set pieces wrong, one at a time, each of which must be noticed
([named mutants](../assurance/how-we-know.md#named-mutants)).

`./sandglass machine table` has made this page from `tools/src/machine/table.rs`; a test fails when it is out of date.
";

/// What the state of the processor cannot show.
const CONCLUSION: &str = "
## What the first table does not show

- **Page tables.** In slot 511 of every user root only the trampoline is mapped, for the kernel. In the kernel's own
  address space, only code is executable, and only the rest is writable. In user space everything that
  can be read can be executed, as the ABI says (07, section 6).
- **Other cores.** One hardware thread of each core is started; the others stay as a reset leaves them. The time-stamp
  counters of the cores agree to 1 µs, or the kernel does not start.
- **What users may do**: RDTSC, RDTSCP, CPUID, SSE, RDRAND and the like, if the processor has them, as the ABI says (07,
  section 2).
";

/// The page.
pub fn render() -> String {
    let mut text = INTRODUCTION.to_owned();
    add_table(&mut text, Arch::X86_64);
    text += CONCLUSION;
    text += aarch64::INTRODUCTION;
    add_table(&mut text, Arch::Aarch64);
    text + aarch64::CONCLUSION
}

fn add_table(text: &mut String, arch: Arch) {
    // Below the heading of the architecture, if it has one.
    let level = match arch {
        Arch::X86_64 => "##",
        Arch::Aarch64 => "###",
    };
    for group in table::groups(arch) {
        let of = if group.per_core { ", of each core" } else { "" };
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n{level} {}{of}\n\n| | value | why | set by |\n| --- | --- | --- | --- |\n",
            group.title
        );
        for row in group.rows {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} |",
                row.title,
                row.expected.text(),
                row.why,
                row.set_by
            );
        }
    }
}

fn path() -> PathBuf {
    workspace::root().join(PAGE)
}

/// Writes it, and returns where.
pub fn write() -> Result<PathBuf> {
    let path = path();
    fs::write(&path, render()).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_machines_state_is_current() {
        let page = fs::read_to_string(path()).unwrap();
        assert!(page == render(), "run `./sandglass machine table`");
    }
}
