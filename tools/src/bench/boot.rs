//! `sandglass bench --boot`: instructions from the kernel's first one to the root task's first one, by what the root task's image
//! and its CNode come to.
//!
//! The root tasks are generated: a program of two instructions, and as many bytes behind it as its image is to have, all of
//! them in its file. The emulator's plugin counts what is executed between marks: the kernel's entry, the function with which
//! the root task begins to be made, and the root task's entry.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use object::elf::{FileFlags, OsAbi, EM_X86_64, ET_EXEC, PF_R, PF_W, PF_X, PT_LOAD};
use object::write::elf::{FileHeader, ProgramHeader, Writer};
use object::Endianness;
use sandglass_abi::profile::{Profile, BASE, MICROKIT_RELEASE};
use serde::Serialize;

use super::page::Page;
use crate::bounds::names::Symbols;
use crate::bounds::plugin;
use crate::kernel::{self, KernelOptions, Variant};
use crate::qemu::{self, Boot, End, Ending, Machine};
use crate::workspace;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const PAGE: u64 = 4 * KIB;

/// Where the image of a root task begins, at which its entry is; the kernel executes nothing at such addresses.
const IMAGE: u64 = 0x1000_0000;
/// NOP, which is executed once, and a jump to itself.
const CODE: [u8; 3] = [0x90, 0xeb, 0xfe];

/// The symbol of the address at which QEMU enters the kernel.
const KERNEL_ENTRY: &str = "pvh_entry_physical";
/// The function that makes the root task once it is known what the machine has.
const ROOT_TASK_BEGINS: &str = "sandglass_kernel::boot::start";

/// Limit of a run on the host's clock; the longest takes some tens of seconds.
const TIMEOUT: Duration = Duration::from_secs(300);
/// How often it is asked whether the plugin has written.
const POLL: Duration = Duration::from_millis(50);

/// What may be added to the figures of the book, in percent: code that is compiled anew takes a few instructions more or less.
const TOLERANCE: f64 = 2.0;

/// Most instructions for the root task: as the page argues, of each page of the image, of each slot of its CNode, and of the rest.
const MOST_PER_PAGE: u64 = 1_300;
const MOST_PER_SLOT: u64 = 5;
const MOST_ELSE: u64 = 100_000;

/// Where the table is.
pub const PAGE_OF_BOOK: Page = Page {
    path: "docs/src/reference/benchmarks.md",
    command: "./sandglass bench --boot --page",
};

/// A boot that is measured.
#[derive(Debug, Clone, Copy)]
struct Case {
    profile: &'static Profile,
    /// Bytes of the root task's image, whole pages.
    image: u64,
    /// Takes seconds only.
    is_short: bool,
}

/// The small image is a page, the middle one what base has slots for.
const CASES: [Case; 5] = [
    case(&BASE, PAGE, true),
    case(&BASE, 16 * MIB, true),
    case(&MICROKIT_RELEASE, PAGE, true),
    case(&MICROKIT_RELEASE, 16 * MIB, true),
    case(&MICROKIT_RELEASE, 100 * MIB, false),
];

const fn case(profile: &'static Profile, image: u64, is_short: bool) -> Case {
    Case {
        profile,
        image,
        is_short,
    }
}

/// What a boot took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    profile: &'static str,
    root_cnode_bits: u32,
    image_bytes: u64,
    /// From the kernel's entry until the root task begins to be made: finding out what there is, and how fast the clock goes.
    machine: u64,
    /// From then on to the root task's entry.
    root_task: u64,
}

impl Row {
    fn sum(&self) -> u64 {
        self.machine + self.root_task
    }

    /// Most instructions that making the root task may take.
    fn bound(&self) -> u64 {
        let (pages, slots) = (self.image_bytes / PAGE, 1 << self.root_cnode_bits);
        MOST_PER_PAGE * pages + MOST_PER_SLOT * slots + MOST_ELSE
    }

    /// What is wrong, if it took more.
    fn excess(&self) -> Option<String> {
        (self.root_task > self.bound()).then(|| {
            format!(
                "a boot of `{}` with an image of {} takes {} instructions for the root task, and at most {} are allowed",
                self.profile,
                size(self.image_bytes),
                self.root_task,
                self.bound()
            )
        })
    }
}

/// Measures all boots, or those that take seconds only.
///
/// # Errors
/// Something does not build, a boot does not come to its root task, or the plugin counts no instructions.
pub fn measure(all: bool) -> Result<Vec<Row>> {
    let plugin = plugin::build()?;
    let cases = CASES.iter().filter(|case| all || case.is_short);
    cases.map(|case| measure_case(case, &plugin)).collect()
}

fn measure_case(case: &Case, plugin: &Path) -> Result<Row> {
    let Case { profile, image, .. } = *case;
    let kernel = KernelOptions::new(Variant::Release).of_profile(profile);
    let name = format!("boot-{}-{image}-{}", profile.name, process::id());
    let file = |ending: &str| workspace::target_dir().join(format!("{name}.{ending}"));
    let (root_task, counts) = (file("elf"), file("counts"));
    fs::write(&root_task, root_task_of(image)?)
        .with_context(|| format!("cannot write {}", root_task.display()))?;
    eprintln!("measuring {}, {} KiB", profile.name, image / KIB);
    let measured = run(&kernel, &root_task, plugin, &counts);
    for file in [root_task, counts] {
        // Nobody else reads them; a file that stays behind is no failure.
        let _ = fs::remove_file(file);
    }
    let [machine, sum] = measured.with_context(|| format!("booting {name}"))?;
    Ok(Row {
        profile: profile.name,
        root_cnode_bits: profile.root_cnode_bits,
        image_bytes: image,
        machine,
        root_task: sum.saturating_sub(machine),
    })
}

/// Instructions until the root task begins to be made, and until it is entered.
fn run(
    options: &KernelOptions,
    root_task: &Path,
    plugin: &Path,
    counts: &Path,
) -> Result<[u64; 2]> {
    let kernel = kernel::build(options)?;
    let symbols = Symbols::read(&kernel)?;
    let address = |name: &str| {
        let address = symbols.address(name);
        address.with_context(|| format!("the kernel has no symbol `{name}`"))
    };
    let measures = format!(
        "{},cores=on,begin={:x},end={:x},end={IMAGE:x},out={}",
        plugin.display(),
        address(KERNEL_ENTRY)?,
        address(ROOT_TASK_BEGINS)?,
        counts.display(),
    );
    let mut machine = Machine {
        icount: Some(0),
        ..Machine::default()
    };
    machine.suit(options);
    // A release kernel has no console, and this root task no way to end the machine.
    let written = counts.to_owned();
    let is_over = move || read(&written).is_ok_and(|windows| windows.len() >= 2);
    let boot = Boot {
        machine,
        ending: Some(Ending::new(POLL, is_over)),
        timeout: Some(TIMEOUT),
        extra_args: ["-plugin", &measures].map(Into::into).into(),
        ..Boot::new(kernel, root_task)
    };
    let outcome = qemu::run(&boot)?;
    ensure!(
        outcome.end == End::Until,
        "the root task was not entered: {:?}; the console:\n{}",
        outcome.end,
        outcome.console
    );
    match read(counts)?[..] {
        [machine, sum, ..] => Ok([machine, sum]),
        _ => bail!("the plugin counted too few windows"),
    }
}

/// The windows that the plugin has written whole: instructions of the one core, below the kernel's addresses and in them.
fn read(path: &Path) -> Result<Vec<u64>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    windows(&text)
}

/// The same from its text.
fn windows(text: &str) -> Result<Vec<u64>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("core "));
    lines
        .map(|line| {
            let counts: Result<Vec<u64>, _> = line.split(' ').map(str::parse).collect();
            let counts = counts.with_context(|| format!("`{line}` is not of the plugin"))?;
            Ok(counts.iter().sum())
        })
        .collect()
}

/// A root task of which `image` bytes are loaded, all from its file.
fn root_task_of(image: u64) -> Result<Vec<u8>> {
    let length = usize::try_from(image)?;
    let mut file = Vec::new();
    let mut writer = Writer::new(Endianness::Little, true, &mut file);
    writer.reserve_file_header();
    writer.reserve_program_headers(1);
    let offset = writer.reserve(image, PAGE);
    writer.write_file_header(&FileHeader {
        os_abi: OsAbi(0),
        abi_version: 0,
        e_type: ET_EXEC,
        e_machine: EM_X86_64,
        e_entry: IMAGE,
        e_flags: FileFlags(0),
    })?;
    writer.write_align_program_headers();
    writer.write_program_header(&ProgramHeader {
        p_type: PT_LOAD,
        p_flags: PF_R | PF_W | PF_X,
        p_offset: offset,
        p_vaddr: IMAGE,
        p_paddr: IMAGE,
        p_filesz: image,
        p_memsz: image,
        p_align: PAGE,
    });
    writer.pad_until(offset);
    let mut bytes = CODE.to_vec();
    bytes.resize(length, 0);
    writer.write(&bytes);
    Ok(file)
}

/// Bytes in the largest unit that makes them whole.
fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(MIB) => format!("{} MiB", bytes / MIB),
        _ => format!("{} KiB", bytes / KIB),
    }
}

/// Thousands of instructions.
fn thousands(instructions: u64) -> u64 {
    instructions.div_ceil(1000)
}

/// The rows as the table of the book.
pub fn table(rows: &[Row]) -> String {
    let mut text =
        "| thousands of instructions | root CNode | image | machine, clock | root task | sum |\n\
                    | --- | ---: | ---: | ---: | ---: | ---: |\n"
            .to_owned();
    for row in rows {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| `{}` | 2^{} | {} | {} | {} | {} |",
            row.profile,
            row.root_cnode_bits,
            size(row.image_bytes),
            thousands(row.machine),
            thousands(row.root_task),
            thousands(row.sum()),
        );
    }
    text
}

/// What is wrong with the page, or with what was measured: each row must be in the page, with about its figures.
///
/// # Errors
/// The page cannot be read, or has no place for a table.
pub fn findings(rows: &[Row]) -> Result<Vec<String>> {
    let shown = PAGE_OF_BOOK.shown()?;
    let differing = rows.iter().filter_map(|row| finding(row, &shown));
    Ok(differing
        .chain(rows.iter().filter_map(Row::excess))
        .collect())
}

/// What of `row` is not as `shown` has it.
fn finding(row: &Row, shown: &str) -> Option<String> {
    let head = format!("| `{}` | 2^{} | ", row.profile, row.root_cnode_bits);
    let head = head + &format!("{} | ", size(row.image_bytes));
    let line = shown.lines().find_map(|line| line.strip_prefix(&head));
    let figures = line.map(|line| line.trim_end_matches(" |").split(" | "));
    let figures: Vec<f64> = figures.map_or(Vec::new(), |it| it.flat_map(str::parse).collect());
    let measured = [row.machine, row.root_task, row.sum()].map(|it| thousands(it) as f64);
    let is_near = |(&shown, measured): (&f64, f64)| {
        100.0 * (shown - measured).abs() <= TOLERANCE * shown.max(measured)
    };
    let is_shown = figures.len() == measured.len() && figures.iter().zip(measured).all(is_near);
    (!is_shown).then(|| {
        format!(
            "a boot of `{}` with an image of {} takes {measured:?} thousand instructions, and {} shows {figures:?}: \
             where the new figures are right, run `{}`",
            row.profile,
            size(row.image_bytes),
            PAGE_OF_BOOK.path,
            PAGE_OF_BOOK.command
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(root_task: u64) -> Row {
        Row {
            profile: "base",
            root_cnode_bits: 13,
            image_bytes: 16 * MIB,
            machine: 1_000_000,
            root_task,
        }
    }

    #[test]
    fn windows_are_sums_of_what_the_core_executes() {
        let text = "window\ncore 3 40 0\nwindow\ncore 4 50 600\n";
        assert_eq!(windows(text).unwrap(), [43, 654]);
        assert!(windows("core 3 x 0\n").is_err());
        assert!(windows("").unwrap().is_empty());
    }

    #[test]
    fn figures_may_differ_a_little_from_the_pages() {
        let shown = table(&[row(5_000_000)]);
        assert!(shown.contains("| `base` | 2^13 | 16 MiB | 1000 | 5000 | 6000 |"));
        assert_eq!(finding(&row(5_000_000), &shown), None);
        assert_eq!(finding(&row(5_090_000), &shown), None);
        assert!(finding(&row(5_200_000), &shown).is_some());
        assert!(finding(&row(4_800_000), &shown).is_some());
        assert!(finding(&row(5_000_000), "").is_some());
    }

    #[test]
    fn a_boot_is_bounded_by_pages_and_slots() {
        let bound = MOST_PER_PAGE * 4096 + MOST_PER_SLOT * 8192 + MOST_ELSE;
        assert_eq!(row(bound).excess(), None);
        assert!(row(bound + 1).excess().unwrap().contains("16 MiB"));
    }

    #[test]
    fn a_root_task_has_its_whole_image_in_its_file() {
        use object::read::elf::{FileHeader as _, ProgramHeader as _};
        let file = root_task_of(3 * PAGE).unwrap();
        let header = object::elf::FileHeader64::<Endianness>::parse(file.as_slice()).unwrap();
        let segments = header.program_headers(Endianness::Little, &*file).unwrap();
        let data = segments[0].data(Endianness::Little, &*file).unwrap();
        assert_eq!(data.len() as u64, 3 * PAGE);
        assert!(data.starts_with(&CODE));
    }
}
