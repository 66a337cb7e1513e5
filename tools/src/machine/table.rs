//! The table: every piece of the processor's state that user code can reach or feel, the value that it
//! must have while user code runs, what another value would mean, and what sets it.
//!
//! The page in the book is made of it, and machines are compared with it.

use super::aarch64;
use super::state::{Facts, State, TASK_STATE_BYTES};
use crate::arch::Arch;

/// The value that an entry must have.
pub enum Expected {
    Is(u64),
    /// Of these bits; the others are the user's, or the processor's own.
    Bits {
        mask: u64,
        value: u64,
    },
    OneOf(&'static [u64]),
    /// Of these bits; what it is, in words, and by the machine.
    BitsOf {
        mask: u64,
        says: &'static str,
        value: fn(&Facts) -> u64,
    },
    /// What the kernel's image or the processor says, of the core of this number.
    Of(&'static str, fn(&Facts, u64) -> u64),
    /// Nothing is asked of it: user code changes it as it likes, or does not feel it.
    Any(&'static str),
}

/// An entry.
pub struct Row {
    /// What it is called.
    pub title: &'static str,
    /// The numbers that it is made of, as they were read.
    pub name: &'static str,
    pub expected: Expected,
    /// What another value would mean to user code, or why it has this one.
    pub why: &'static str,
    /// File and function that set it, below the architecture's part of `kernel/src/arch/`.
    pub set_by: &'static str,
}

/// Entries that belong together.
pub struct Group {
    pub title: &'static str,
    /// Whether each core has its own.
    pub per_core: bool,
    pub rows: &'static [Row],
}

pub const fn row(
    title: &'static str,
    name: &'static str,
    expected: Expected,
    why: &'static str,
    set_by: &'static str,
) -> Row {
    Row {
        title,
        name,
        expected,
        why,
        set_by,
    }
}

use Expected::{Any, Bits, BitsOf, Is, Of, OneOf};

const DESCRIPTORS: &str = "`descriptors.rs`: `init`";
const CPU: &str = "`cpu.rs`: `init`";
const MACHINE_CHECK: &str = "`machine_check.rs`: `init`";
const APIC: &str = "`apic.rs`: `LocalApic::enable`";
const ENTRY: &str = "`code.rs`: the exit";

/// A null selector, or the one data segment of users, as often as they like to load it.
const DATA_SELECTORS: &[u64] = &[0, 1, 2, 3, 0x33, 0x3b, 0x43];

const X86_64: &[Group] = &[
    Group {
        title: "Segments",
        per_core: true,
        rows: &[
            row("CS", "env.segs[1].selector", OneOf(&[0x2b, 0x3b]), "user code; 0x3b after SYSRET", ENTRY),
            row("CS, base", "env.segs[1].base", Is(0), "none in 64-bit code", ENTRY),
            row("CS, attributes", "env.segs[1].flags", Bits { mask: 0x60_f800, value: 0x20_f800 }, "64-bit code, level 3, present: no segment of 32 bits exists", ENTRY),
            row("SS", "env.segs[2].selector", Is(0x33), "user data", ENTRY),
            row("SS, attributes", "env.segs[2].flags", Bits { mask: 0xf000, value: 0xf000 }, "level 3: that is the privilege level", ENTRY),
            row("DS", "env.segs[3].selector", OneOf(DATA_SELECTORS), "users may load data segments, whose bases are 0", DESCRIPTORS),
            row("ES", "env.segs[0].selector", OneOf(DATA_SELECTORS), "likewise", DESCRIPTORS),
            row("FS", "env.segs[4].selector", OneOf(DATA_SELECTORS), "likewise", DESCRIPTORS),
            row("GS", "env.segs[5].selector", OneOf(DATA_SELECTORS), "likewise", DESCRIPTORS),
            row("DS, base", "env.segs[3].base", Is(0), "", DESCRIPTORS),
            row("ES, base", "env.segs[0].base", Is(0), "", DESCRIPTORS),
            row("FS base", "env.segs[4].base", Any("the thread's (ABI 07, section 3)"), "each exit loads it", ENTRY),
            row("GS base", "env.segs[5].base", Is(0), "the thread's, which has none here: one left by another thread would tell its addresses", ENTRY),
            row("other GS base", "env.kernelgsbase", Is(0), "no SWAPGS anywhere", CPU),
        ],
    },
    Group {
        title: "Descriptor tables",
        per_core: true,
        rows: &[
            row("LDTR", "env.ldt.selector", Is(0), "with a local table, selectors with bit 2 lead to descriptors and call gates", DESCRIPTORS),
            row("LDTR, base", "env.ldt.base", Is(0), "", DESCRIPTORS),
            row("LDTR, limit", "env.ldt.limit", Is(0), "a reset leaves 0xffff, at address 0: the user's memory", DESCRIPTORS),
            row("TR", "env.tr.selector", Is(0x18), "", DESCRIPTORS),
            row("TR, base", "env.tr.base", Of("the core's task state", |f, core| f.layout.task_state(core)), "stacks of the entries", DESCRIPTORS),
            row("TR, limit", "env.tr.limit", Is(TASK_STATE_BYTES - 1), "a longer one would hold a map of I/O ports", DESCRIPTORS),
            row("TR, attributes", "env.tr.flags", Bits { mask: 0xfd00, value: 0x8900 }, "a present task state of 64 bits", DESCRIPTORS),
            row("offset of the I/O map", "tss.io_map", Is(TASK_STATE_BYTES), "beyond the limit: every IN and OUT of user code faults", DESCRIPTORS),
            row("RSP0", "tss.rsp0", Of("the core's entry stack", |f, core| f.layout.stack(core, 0)), "", DESCRIPTORS),
            row("RSP1", "tss.rsp1", Is(0), "no level 1", DESCRIPTORS),
            row("RSP2", "tss.rsp2", Is(0), "no level 2", DESCRIPTORS),
            row("IST1", "tss.ist1", Of("the core's stack of debug exceptions", |f, core| f.layout.stack(core, 1)), "", DESCRIPTORS),
            row("IST2", "tss.ist2", Of("of non-maskable interrupts", |f, core| f.layout.stack(core, 2)), "", DESCRIPTORS),
            row("IST3", "tss.ist3", Of("of double faults", |f, core| f.layout.stack(core, 3)), "", DESCRIPTORS),
            row("IST4", "tss.ist4", Of("of machine checks", |f, core| f.layout.stack(core, 4)), "", DESCRIPTORS),
            row("IST5", "tss.ist5", Is(0), "", DESCRIPTORS),
            row("IST6", "tss.ist6", Is(0), "", DESCRIPTORS),
            row("IST7", "tss.ist7", Is(0), "", DESCRIPTORS),
            row("GDTR, base", "env.gdt.base", Of("the core's segments", |f, core| f.layout.segments(core)), "", DESCRIPTORS),
            row("GDTR, limit", "env.gdt.limit", Is(9 * 8 - 1), "behind it lies the task state", DESCRIPTORS),
            row("segment 0", "gdt[0]", Is(0), "null", DESCRIPTORS),
            row("segment 1", "gdt[1]", Is(0x00af_9b00_0000_ffff), "kernel code", DESCRIPTORS),
            row("segment 2", "gdt[2]", Is(0x00cf_9300_0000_ffff), "kernel data", DESCRIPTORS),
            row("segment 3", "gdt[3]", Of("the task state's, busy", |f, core| f.layout.task_descriptor(core)[0]), "", DESCRIPTORS),
            row("segment 4", "gdt[4]", Of("its second half", |f, core| f.layout.task_descriptor(core)[1]), "", DESCRIPTORS),
            row("segment 5", "gdt[5]", Bits { mask: !(1 << 40), value: 0x00af_fa00_0000_ffff }, "user code; the processor sets bit 40", DESCRIPTORS),
            row("segment 6", "gdt[6]", Bits { mask: !(1 << 40), value: 0x00cf_f200_0000_ffff }, "user data", DESCRIPTORS),
            row("segment 7", "gdt[7]", Bits { mask: !(1 << 40), value: 0x00cf_f200_0000_ffff }, "user data, for FS", DESCRIPTORS),
            row("segment 8", "gdt[8]", Bits { mask: !(1 << 40), value: 0x00cf_f200_0000_ffff }, "user data, for GS", DESCRIPTORS),
            row("IDTR, base", "env.idt.base", Of("the core's gates", |f, core| f.layout.gates(core)), "", DESCRIPTORS),
            row("IDTR, limit", "env.idt.limit", Is(256 * 16 - 1), "", DESCRIPTORS),
            row("gates that are wrong", "idt.wrong", Is(0), "each is an interrupt gate to its own entry point, with its own stack for vectors 1, 2, 8 and 18; level 3 for 3 and from 158 (SMP: 160) on", DESCRIPTORS),
        ],
    },
    Group {
        title: "Control registers and flags",
        per_core: true,
        rows: &[
            row("CR0", "env.cr[0]", Bits { mask: !(1 << 3), value: 0x8001_0033 }, "paging, write protection, native FPU errors, no alignment checks, caches on; TS while the thread has no FPU", CPU),
            row("CR3", "env.cr[3]", Bits { mask: 0xfff, value: 0 }, "the thread's root; tables are cached", ENTRY),
            row("CR4", "env.cr[4]", Of("PAE, OSFXSR; MCE, SMEP, SMAP, UMIP if the processor has them", |f, _| {
                let bit = |has: bool, bit: u32| u64::from(has) << bit;
                1 << 5 | 1 << 9 | bit(f.features.machine_checks, 6) | bit(f.features.umip, 11) | bit(f.features.smep, 20) | bit(f.features.smap, 21)
            }), "a machine check ends the machine in words, not by a reset; no global pages, RDPMC, FSGSBASE, OSXSAVE, PCID, keys, or SSE exceptions of their own", CPU),
            row("CR8", "apic.tpr", Is(0), "no interrupt is held back", APIC),
            row("EFER", "env.efer", Of("SCE, LME, LMA; NXE if the processor has it", |f, _| {
                0x501 | u64::from(f.features.no_execute) << 11
            }), "no SVM, no other extension", CPU),
            row("RFLAGS", "env.eflags", Bits { mask: 0x1b_7302, value: 0x202 }, "interrupts on; no I/O privilege, nested task, virtual mode, single step", ENTRY),
            row("XCR0", "env.xcr0", Any("as found"), "not felt: CR4.OSXSAVE is off, so XGETBV is undefined", "nothing"),
            row("DR0", "env.dr[0]", Is(0), "not felt: DR7 watches nothing", CPU),
            row("DR1", "env.dr[1]", Is(0), "likewise", CPU),
            row("DR2", "env.dr[2]", Is(0), "likewise", CPU),
            row("DR3", "env.dr[3]", Is(0), "likewise", CPU),
            row("DR7", "env.dr[7]", Is(0x400), "no breakpoints", CPU),
        ],
    },
    Group {
        title: "Model-specific registers",
        per_core: true,
        rows: &[
            row("STAR", "env.star", Is(0x002b_0008_0000_0000), "SYSCALL to 0x08, SYSRET to 0x3b and 0x33", DESCRIPTORS),
            row("LSTAR", "env.lstar", Of("the core's entry of system calls", |f, core| f.layout.system_call(core)), "", DESCRIPTORS),
            row("CSTAR", "env.cstar", Of("the same", |f, core| f.layout.system_call(core)), "where SYSCALL from code of 32 bits leads on some processors", DESCRIPTORS),
            row("FMASK", "env.fmask", Is(0x4_4700), "TF, IF, DF, NT, AC are clear in the entry code", DESCRIPTORS),
            row("SYSENTER_CS", "env.sysenter_cs", Is(0), "SYSENTER is a protection fault", CPU),
            row("SYSENTER_ESP", "env.sysenter_esp", Is(0), "", CPU),
            row("SYSENTER_EIP", "env.sysenter_eip", Is(0), "", CPU),
            row("PAT", "env.pat", Is(0x0007_0401_0007_0406), "ABI 07, section 6; nothing makes use of PA5 to PA7", CPU),
            row("MISC_ENABLE", "env.msr_ia32_misc_enable", Bits {
 mask: 0x4_0040_0001,
 value: 1 }, "as found: fast strings, CPUID in full, and no ban of pages without execution; firmware sees to it", "nothing"),
            row("TSC_AUX", "env.tsc_aux", Is(0), "what RDTSCP tells, where there is one", CPU),
            row("machine checks, status", "env.mcg_status", Is(0), "while one is said to be dealt with, the next resets the machine", MACHINE_CHECK),
            row("machine-check banks that are wrong", "mce.wrong", Is(0), "each reports all of its errors, and has none of before the kernel", MACHINE_CHECK),
            row("APIC_BASE", "apic.apicbase", BitsOf { mask: 0xffff_fc00, says: "0xfee00800; 0xfee00c00 where firmware has left x2APIC mode on", value: |f| if f.is_x2apic { 0xfee0_0c00 } else { 0xfee0_0800 } }, "on, in the mode in which the kernel takes all of them", APIC),
        ],
    },
    Group {
        title: "The FPU",
        per_core: true,
        rows: &[
            row("control word", "env.fpuc", Is(0x37f), "the thread's, which has not changed it", "`core_data.rs`: `switch_fpu`"),
            row("MXCSR", "env.mxcsr", Bits { mask: 0xffc0, value: 0x1f80 }, "likewise", "`core_data.rs`: `switch_fpu`"),
        ],
    },
    Group {
        title: "The local APIC",
        per_core: true,
        rows: &[
            row("spurious-interrupt register", "apic.spurious_vec", Is(0x1ff), "on, vector 255", APIC),
            row("timer entry", "apic.lvt[0]", OneOf(&[157, 157 | 2 << 17]), "vector 157, one shot or a deadline", "`apic.rs`: `LocalApic::start_timer`"),
            row("thermal entry", "apic.lvt[1]", Bits { mask: 1 << 16, value: 1 << 16 }, "masked by a reset; firmware may have it tell itself (SMI)", "nothing"),
            row("performance entry", "apic.lvt[2]", Bits { mask: 1 << 16, value: 1 << 16 }, "masked", APIC),
            row("LINT0 entry", "apic.lvt[3]", Is(1 << 16), "masked: the legacy controllers", APIC),
            row("LINT1 entry", "apic.lvt[4]", Is(4 << 8), "a non-maskable interrupt, which ends the machine in words", APIC),
            row("error entry", "apic.lvt[5]", Is(1 << 16), "masked", APIC),
            row("timer divider", "apic.divide_conf", Is(0xb), "1", APIC),
            row("destination format", "apic.dest_mode", Is(0xf), "flat", APIC),
            row("logical destination", "apic.log_dest", Of("a bit for the core", |_, core| 1 << core), "nothing is sent by it; in x2APIC mode it is made of the number", APIC),
            row("in service, from 0", "apic.isr[0]", Is(0), "an interrupt that is not ended keeps out those below it: those of before the kernel are ended by `LocalApic::enable`", "`handlers.rs`: `act`"),
            row("in service, from 32", "apic.isr[1]", Is(0), "likewise", "`handlers.rs`: `act`"),
            row("in service, from 64", "apic.isr[2]", Is(0), "likewise", "`handlers.rs`: `act`"),
            row("in service, from 96", "apic.isr[3]", Is(0), "likewise", "`handlers.rs`: `act`"),
            row("in service, from 128", "apic.isr[4]", Is(0), "likewise", "`handlers.rs`: `act`"),
            row("in service, from 160", "apic.isr[5]", Is(0), "likewise", "`handlers.rs`: `act`"),
            row("in service, from 192", "apic.isr[6]", Is(0), "likewise", "`handlers.rs`: `act`"),
            row("in service, from 224", "apic.isr[7]", Is(0), "likewise", "`handlers.rs`: `act`"),
        ],
    },
    Group {
        title: "The machine's interrupt controllers",
        per_core: false,
        rows: &[
            row("first legacy controller, mask", "pic0.imr", Is(0xff), "no line is open", "`legacy.rs`: `disable_pic`"),
            row("second legacy controller, mask", "pic1.imr", Is(0xff), "likewise", "`legacy.rs`: `disable_pic`"),
            row("open pins of the I/O APIC", "ioapic.open", Is(0), "none without a handler", "`apic.rs`: `IoApics::add`"),
        ],
    },
    Group {
        title: "The kernel's address space",
        per_core: false,
        rows: &[
            row("pages of code that runs once", "boot_code.mapped", Is(0), "their memory is the root task's: none is code of the kernel's any more", "`paging.rs`: `unmap_init_text`"),
        ],
    },
];

/// All entries of an architecture.
pub const fn groups(arch: Arch) -> &'static [Group] {
    match arch {
        Arch::X86_64 => X86_64,
        Arch::Aarch64 => aarch64::GROUPS,
    }
}

/// All entries of an architecture, with whether each core has its own.
pub fn rows(arch: Arch) -> impl Iterator<Item = (&'static Row, bool)> {
    groups(arch)
        .iter()
        .flat_map(|group| group.rows.iter().map(|row| (row, group.per_core)))
}

impl Expected {
    /// The value that is right of the bits that count, and those.
    pub fn value(&self, facts: &Facts, core: u64, found: u64) -> Option<(u64, u64)> {
        match *self {
            Is(value) => Some((value, !0)),
            Bits { mask, value } => Some((value, mask)),
            OneOf(values) => {
                let near = values.iter().find(|&&value| value == found);
                Some((*near.or(values.first())?, !0))
            }
            BitsOf { mask, value, .. } => Some((value(facts), mask)),
            Of(_, value) => Some((value(facts, core), !0)),
            Any(_) => None,
        }
    }

    /// In words, for the page.
    pub fn text(&self) -> String {
        match self {
            Is(value) => format!("{value:#x}"),
            Bits { mask, value } => format!("{value:#x} of the bits {mask:#x}"),
            OneOf(values) => {
                let values: Vec<String> = values.iter().map(|v| format!("{v:#x}")).collect();
                values.join(", ")
            }
            BitsOf { mask, says, .. } => format!("{says} of the bits {mask:#x}"),
            Of(text, _) | Any(text) => (*text).to_owned(),
        }
    }
}

/// What is not as it must be, a line each.
pub fn compare(state: &State, facts: &Facts) -> Vec<String> {
    let mut findings = Vec::new();
    for (row, per_core) in rows(facts.arch) {
        let places: Vec<_> = match per_core {
            true => (0u64..).zip(&state.cores).collect(),
            false => vec![(0, &state.machine)],
        };
        for (core, fields) in places {
            let place = match per_core {
                true => format!("core {core}: "),
                false => String::new(),
            };
            let Some(&found) = fields.get(row.name) else {
                findings.push(format!("{place}{}: was not read ({})", row.title, row.name));
                continue;
            };
            let Some((right, mask)) = row.expected.value(facts, core, found) else {
                continue;
            };
            if found & mask != right {
                findings.push(format!(
                    "{place}{} is {found:#x}, but must be {} (set by {})",
                    row.title,
                    match &row.expected {
                        Of(text, _) => format!("{right:#x}: {text}"),
                        other => other.text(),
                    },
                    row.set_by
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::stream::Fields;

    /// A machine of two cores in which everything is right.
    fn right(arch: Arch) -> (State, Facts) {
        let facts = Facts {
            arch,
            ..Facts::default()
        };
        let fields = |wanted: bool, core: u64| -> Fields {
            rows(arch)
                .filter(|&(_, per_core)| per_core == wanted)
                .map(|(row, _)| {
                    let value = row.expected.value(&facts, core, 0);
                    (
                        row.name.to_owned(),
                        value.map_or(0x1234, |(value, _)| value),
                    )
                })
                .collect()
        };
        let state = State {
            cores: vec![fields(true, 0), fields(true, 1)],
            machine: fields(false, 0),
        };
        (state, facts)
    }

    #[test]
    fn what_is_right_is_accepted() {
        for arch in Arch::ALL {
            let (state, facts) = right(arch);
            assert_eq!(compare(&state, &facts), [""; 0]);
        }
    }

    #[test]
    fn names_are_used_once() {
        for arch in Arch::ALL {
            let mut names: Vec<_> = rows(arch).map(|(row, _)| row.name).collect();
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count);
        }
    }

    /// Each entry of each core, with each bit that counts.
    #[test]
    fn any_single_wrong_bit_is_told_of_its_entry_alone() {
        for (arch, entries, least) in [(Arch::X86_64, 150, 5_000), (Arch::Aarch64, 40, 2_000)] {
            let (tried, bits) = try_all_bits(arch);
            assert!(
                tried > entries && bits > least,
                "{tried} entries, {bits} bits"
            );
        }
    }

    /// How many entries, and bits, were tried.
    fn try_all_bits(arch: Arch) -> (usize, usize) {
        let (mut tried, mut bits) = (0, 0);
        for (row, per_core) in rows(arch) {
            for core in 0..if per_core { 2 } else { 1 } {
                let (state, facts) = right(arch);
                let Some((_, mask)) = row.expected.value(&facts, core, 0) else {
                    continue;
                };
                tried += 1;
                for bit in (0..64).filter(|bit| mask & 1 << bit != 0) {
                    let mut state = state.clone();
                    let fields = match per_core {
                        true => &mut state.cores[core as usize],
                        false => &mut state.machine,
                    };
                    let value = fields.get_mut(row.name).expect("an entry");
                    *value ^= 1 << bit;
                    if matches!(row.expected, OneOf(values) if values.contains(value)) {
                        continue;
                    }
                    bits += 1;
                    let findings = compare(&state, &facts);
                    assert_eq!(findings.len(), 1, "{}, bit {bit}: {findings:?}", row.name);
                    assert!(findings[0].contains(row.title), "{findings:?}");
                }
            }
        }
        (tried, bits)
    }

    #[test]
    fn what_was_not_read_is_told() {
        for arch in Arch::ALL {
            let (state, facts) = right(arch);
            for (row, per_core) in rows(arch) {
                let mut state = state.clone();
                let fields = match per_core {
                    true => &mut state.cores[1],
                    false => &mut state.machine,
                };
                fields.remove(row.name);
                assert_eq!(compare(&state, &facts).len(), 1, "{}", row.name);
            }
        }
    }
}
