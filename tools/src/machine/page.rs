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
Three of the starts are odd (`tools/src/machine/inherited.rs`), by PVH and by Multiboot2: before the first instruction of the
kernel, whose boot protocols promise little of the processor's state, code of the test sets 37 entries of the first core's to
values that must not stay, has an interrupt in service that is never ended, and another one wait, and opens all lines of all
interrupt controllers. The same code is executed on each further core where that is in protected mode, which is more than a
reset by INIT lets it inherit. The test also reads each core at that moment, and each of these entries is wrong then.
`./sandglass machine spoiled` has a kernel set pieces wrong, one at a time, each of which must be noticed
([named mutants](../assurance/how-we-know.md#named-mutants)).

`./sandglass machine table` has made this page from `tools/src/machine/table.rs`; a test fails when it is out of date.
";

/// What the state of the processor cannot show, and what becomes of events that no table has.
const CONCLUSION: &str = "
## What the first table does not show

- **Page tables.** In slot 511 of every user root only the trampoline is mapped, for the kernel. In the kernel's own
  address space, only code is executable, and only the rest is writable. In user space everything that
  can be read can be executed, as the ABI says (07, section 6).
- **Other cores.** One hardware thread of each core is started; the others stay as a reset leaves them. The time-stamp
  counters of the cores agree to 1 µs, or the kernel does not start.
- **What controls speculation** (IA32_SPEC_CTRL): as found. A kernel that was built to [use
  it](speculation.md#options) sets the whole register at each core's start, and EFER's bit 21 where AMD's processors have it.
- **What users may do**: RDTSC, RDTSCP, CPUID, SSE, RDRAND and the like, if the processor has them, as the ABI says (07,
  section 2).

## When the machine says that something is wrong

A **non-maskable interrupt** (NMI: of the chipset, a button, a watchdog) and a **machine check** (a defect that a processor has
found) are nobody's exception: nobody can say what can still be relied on. Whatever the core executes, in user code, in the
kernel, with the user's address space or stack still in use, or idling, the machine ends, with status 5 and one line on the
console, of release kernels, too:

```text
NMI on core 0, user code at 0x2013d4
machine check on core 1, kernel at 0xffffffff8010cf3f: bank 3, status 0xbe00000000000135, address 0x1234000
```

The bank is the first one that has an error; the processor's manual explains its status. At the start, each core forgets the
errors of before, and has every bank report. The core that comes first interrupts all others, which stop (`machine_events::no_core_runs_on_when_one_has_ended_the_machine`);
if all come at once, one of them speaks. A second machine check before the first one is dealt with resets the machine: that is the processor's
rule. So does one that comes before the kernel's gates are loaded. The time until the end is that of the line, 87 µs for each
character on a real port; no thread runs on that core meanwhile, and on the others none after the interrupt.

QEMU's monitor raises both in tests (`nmi`, `mce`), in user code, at instructions of all ways in and out, and on a core that
idles: `machine_events::what_comes_in_the_kernel_ends_the_machine_in_words` and those beside it.

## Interrupts that nobody asked for

A device raises whatever vector it was told to, and controllers raise some by mistake. Who runs is not disturbed, and nothing
that is awaited is lost.

| what comes | what happens | tested by |
| --- | --- | --- |
| the spurious vector of the local APIC, 255, also by `int 255` | nothing, and no end of interrupt, unless a device has sent it | `stray::the_spurious_vector_does_nothing`, `stray::a_devices_wrong_vector_disturbs_nobody` |
| a message with the vector of an exception, 16 to 31 | the local APIC has it in service, so it is no exception: it is ended | the second of these |
| a message with vector 18 | likewise: the processor says whether a machine check is in progress | likewise |
| a line 7 or 15 of the legacy controllers that is none, vectors 39 and 47 | it cannot arrive: LINT0 is masked. A message with that vector is ended if it is in service | likewise (39) |
| an interrupt of a device that has no handler | it is ended, and its pin masked | likewise (vector 80); `devices::a_pin_obeys_its_last_handler_alone` |
| a message with the vector of the kernel's timer, 157 | the kernel looks at its clock: nothing is due | likewise |
| a message with a vector of those between cores, 158 and 159 | on the kernel for several cores, the core looks for requests, of which there are none; on that for one, it is ended | likewise |
| a message with a vector of software, from 158 (SMP: 160) on | it is ended | likewise (160, 200) |
| a message with a vector below 16 | the processor does not take it; the error entry is masked | not tested |
| a level-triggered line that stays asserted | it is masked until its driver acknowledges it, and comes again then, in the driver's time: it takes the driver's budget and nobody else's | `devices::a_line_that_stays_asserted_takes_its_drivers_budget_alone` |
| an interrupt that firmware has left in service, or waiting | the first is ended at the start; the second is taken by the first core that idles or runs, and ended | the odd starts |
| a non-maskable interrupt as a message | the machine ends, in words | as from the chipset |
| an INIT, a start-up or an SMI as a message | a core is reset, or runs firmware: nothing is done about it | not tested |

Each costs who runs then the time of one interrupt, within [what is computed](../assurance/wcet.md) of vectors. How often they
come is up to the device: whoever programs one that can write to memory is trusted with that, as with more.
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
