//! What is read of a machine of aarch64, and the table of it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{ensure, Context, Result};

use super::state::{Facts, State};
use super::stream::{number, Fields, Stream};
use super::table::Expected::{Any, Bits, Is, Of, OneOf};
use super::table::{row, Group};
use crate::arch::Arch;
use crate::bounds::names::Symbols;
use crate::qemu::session::Session;

/// What stands before the table in the page.
pub const INTRODUCTION: &str = "
## aarch64

The kernels for one core and for several, on QEMU's `virt` with a GICv2 and a GICv3, which start at the kernel's level.
";

/// What the state of the processor cannot show.
pub const CONCLUSION: &str = "
### What the second table does not show

- **What users may do**: read CTR_EL0, maintain caches by address, zero lines, wait for interrupts and events, as the ABI
  says (07, section 2), and change flags, FPCR and FPSR, which are the thread's. Every other system register is refused: the
  root task `systems/base-profile` shows it of the counters and timers in the ABI's profile, and
  [the storm](../how-to/storm.md#on-aarch64) of any encoding.
- **System errors.** One that arrives while user code runs is a user exception of whose thread it meets
  ([difference 17](abi.md#deliberate-differences)); release kernels mask them in user code (07, section 1.3), so that they
  wait, as they do while the kernel executes, which never opens its mask. In QEMU 7.2 an access to memory that nothing
  answers is reported at its instruction, and only code at EL2 can raise a system error, a virtual one: a loader of tests
  does so (`loader::a_system_error_is_an_exception_of_whom_it_meets`). At a vector that must not be taken, such as that of
  system errors in the kernel, the debug kernel says what came and stops the machine with status 4, or 2 for an exception in
  the kernel; the release kernel stops. The same loader enters them (`loader::exceptions_that_must_not_be_end_in_words`).
- **Registers of higher levels.** Where a machine starts at EL2, the kernel sets what of it lower levels feel (`head.rs`:
  `sandglass_to_el1`), and leaves it for good. What firmware does at EL3 is its own.
";

/// TTBR1_EL1.
const KERNEL_ROOT: &str = "sys.3.0.2.0.1";
const PAGE_BITS: u32 = 12;

const HEAD: &str = "`head.rs`: `sandglass_mmu_on`";
const CPU: &str = "`cpu.rs`: `init`";
const EXIT: &str = "`code.rs`: the exit";
const GIC: &str = "`gic.rs`: `init_core`";
const NOTHING: &str = "nothing";

pub const GROUPS: &[Group] = &[
    Group {
        title: "Process state, memory and exceptions",
        per_core: true,
        rows: &[
            row("PSTATE without its condition flags", "pstate", Of("EL0; fast interrupts masked, and by release kernels system errors", |f, _| {
                0x40 | u64::from(f.masks_errors) << 8
            }), "interrupts and debugging are on; 64 bits; no single step, no illegal state", EXIT),
            row("SCTLR_EL1", "sys.3.0.1.0.0", Is(0x34d5_d805), "MMU and caches on; no alignment checks; UCI, UCT, DZE, nTWI, nTWE; not UMA: masks are the kernel's", HEAD),
            row("TCR_EL1 without IPS", "tcr", Of("0x1085190510; walks are shared on several cores", |f, _| {
                0x10_8519_0510 | if f.is_smp { 3 << 12 | 3 << 28 } else { 0 }
            }), "48 bits of address for users; identifiers of 16 bits; no top byte is ignored; physical addresses of as many bits as the processor has", HEAD),
            row("TTBR0_EL1", "sys.3.0.2.0.0", Bits { mask: 0xfff, value: 0 }, "the thread's root, and the identifier of its address space", "`core_data.rs`: `switch_space`"),
            row("TTBR1_EL1", KERNEL_ROOT, Bits { mask: 0xfff, value: 0 }, "the kernel's root, which users cannot reach: its entries say so", HEAD),
            row("MAIR_EL1", "sys.3.0.10.2.0", Is(0xff00), "type 0 is a device's memory, type 1 normal memory; nobody uses others", HEAD),
            row("VBAR_EL1", "sys.3.0.12.0.0", Of("the kernel's vectors", |f, _| f.vectors), "", "`start.rs`: `start_core`"),
            row("CPACR_EL1", "sys.3.0.1.0.2", OneOf(&[1 << 20, 3 << 20]), "the FPU is the kernel's, or also the thread's; no SVE, no SME, no trace registers", CPU),
            row("CONTEXTIDR_EL1", "sys.3.0.13.0.1", Any("as found"), "not felt: debuggers use it", NOTHING),
            row("CSSELR_EL1", "sys.3.2.0.0.0", Any("as found"), "not felt: users cannot read CCSIDR_EL1", NOTHING),
        ],
    },
    Group {
        title: "Thread pointers",
        per_core: true,
        rows: &[
            row("TPIDR_EL0", "sys.3.3.13.0.2", Any("the thread's (ABI 07, section 3)"), "each exit loads it", EXIT),
            row("TPIDRRO_EL0", "sys.3.3.13.0.3", Is(0), "the thread's, which has none here: one left by another thread would tell its addresses", EXIT),
            row("TPIDR_EL1", "sys.3.0.13.0.4", Of("the end of the core's stack, and its number in the lowest byte", |f, core| f.first_stack_end + core * (f.second_stack_end - f.first_stack_end) + core), "users cannot read it", CPU),
            row("SP_EL0", "env.sp_el[0]", Any("the thread's"), "each exit loads it", EXIT),
        ],
    },
    Group {
        title: "Counters and timers",
        per_core: true,
        rows: &[
            row("CNTKCTL_EL1", "sys.3.0.14.1.0", Of("0; with the option for the clock and the timer, EL0PCTEN, EL0VCTEN, EL0PTEN", |f, _| {
                if f.has_user_timer { 0x203 } else { 0 }
            }), "in the ABI's profile CNTVCT, CNTPCT, CNTFRQ, CNTP_* and CNTV_* are exceptions of who names them; no event stream wakes who waits for events", CPU),
            row("CNTV_CTL_EL0", "sys.3.3.14.3.1", OneOf(&[1, 5]), "the kernel's timer is on, not masked, and has fired or not; users cannot read it", "`cpu.rs`: `start_timer`"),
            row("CNTV_CVAL_EL0", "sys.3.3.14.3.2", Any("when the kernel is to look at the time"), "users cannot read it", "`cpu.rs`: `set_timer`"),
            row("CNTP_CTL_EL0", "sys.3.3.14.2.1", Is(0), "as found: off after a reset, and its interrupt is masked; with the option, users'", NOTHING),
            row("CNTP_CVAL_EL0", "sys.3.3.14.2.2", Any("as found"), "not felt: the timer is off; with the option, users'", NOTHING),
            row("CNTFRQ_EL0", "sys.3.3.14.0.0", Any("as found"), "firmware's, read once; with the option, users read it", NOTHING),
        ],
    },
    Group {
        title: "Performance counters and debugging",
        per_core: true,
        rows: &[
            row("PMUSERENR_EL0", "sys.pmuserenr", Is(0), "no performance counter is the user's", CPU),
            row("PMCNTENSET_EL0", "sys.3.3.9.12.1", Is(0), "as found: none counts after a reset", NOTHING),
            row("PMINTENSET_EL1", "sys.3.0.9.14.1", Is(0), "as found: none interrupts", NOTHING),
            row("MDSCR_EL1", "sys.2.0.0.2.2", Is(0), "no breakpoint, watchpoint or single step counts; the debug channel is not the user's to use", CPU),
            row("DBGBCR0_EL1", "sys.2.0.0.0.5", Any("as found"), "not felt: MDSCR_EL1 has breakpoints off", NOTHING),
            row("DBGBCR1_EL1", "sys.2.0.0.1.5", Any("as found"), "likewise", NOTHING),
            row("DBGBCR2_EL1", "sys.2.0.0.2.5", Any("as found"), "likewise", NOTHING),
            row("DBGBCR3_EL1", "sys.2.0.0.3.5", Any("as found"), "likewise", NOTHING),
            row("DBGBCR4_EL1", "sys.2.0.0.4.5", Any("as found"), "likewise", NOTHING),
            row("DBGBCR5_EL1", "sys.2.0.0.5.5", Any("as found"), "likewise", NOTHING),
            row("DBGWCR0_EL1", "sys.2.0.0.0.7", Any("as found"), "not felt: MDSCR_EL1 has watchpoints off", NOTHING),
            row("DBGWCR1_EL1", "sys.2.0.0.1.7", Any("as found"), "likewise", NOTHING),
            row("DBGWCR2_EL1", "sys.2.0.0.2.7", Any("as found"), "likewise", NOTHING),
            row("DBGWCR3_EL1", "sys.2.0.0.3.7", Any("as found"), "likewise", NOTHING),
        ],
    },
    Group {
        title: "The FPU",
        per_core: true,
        rows: &[
            row("FPCR and FPSR", "fpscr", Bits { mask: 0x07f7_9f00, value: 0 }, "the thread's, which has not changed it", "`core_data.rs`: `switch_fpu`"),
        ],
    },
    Group {
        title: "The interrupt controller",
        per_core: true,
        rows: &[
            row("priority mask", "gic.mask", Is(0xf0), "no interrupt is held back", GIC),
            row("interrupts in service", "gic.active", Is(0), "one that is not ended keeps out all others", "`handlers.rs`: `act`"),
            row("private interrupts that are open, without software's", "gic.private", Is(1 << 27), "the kernel's timer; none without a handler", GIC),
        ],
    },
    Group {
        title: "The machine's part of it",
        per_core: false,
        rows: &[
            row("shared interrupts that are open", "gic.open", Is(0), "none without a handler", "`gic.rs`: `start_distributor`"),
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

/// Reads a machine that is stopped. Afterwards it does not go on. The kernel's file is `kernel`.
///
/// # Errors
/// It cannot be read, or QEMU tells less of it than it should.
pub fn read(session: &mut Session, kernel: &Path, facts: Facts) -> Result<(State, Facts)> {
    let symbols = Symbols::read(kernel)?;
    let boot_code = symbols.need("init_text_start")?..symbols.need("init_text_end")?;
    let facts = Facts {
        arch: Arch::Aarch64,
        vectors: symbols.need("sandglass_vectors")?,
        first_stack_end: symbols.need("sandglass_first_stack_end")?,
        second_stack_end: symbols.need("sandglass_second_stack_end")?,
        ..facts
    };
    let bytes = session.migrate()?;
    let stream = Stream::parse(&bytes)?;
    let mut state = State::default();
    for instance in stream.instances("cpu") {
        let raw = stream.device("cpu", instance)?;
        if number(&raw, "power_state")? != 0 {
            // Never started.
            continue;
        }
        state.cores.push(core(&raw)?);
    }
    ensure!(!state.cores.is_empty(), "no processor runs");
    let controller = if stream.instances("arm_gic").next().is_some() {
        gic2(&stream.device("arm_gic", 0)?, state.cores.len())?
    } else {
        gic3(&stream.device("arm_gicv3", 0)?, state.cores.len())?
    };
    for (core, part) in state.cores.iter_mut().zip(controller.cores) {
        core.insert("gic.mask".to_owned(), part.mask);
        core.insert("gic.active".to_owned(), part.active);
        core.insert("gic.private".to_owned(), part.open);
    }
    state.machine.insert("gic.open".to_owned(), controller.open);
    let root = number(&state.cores[0], KERNEL_ROOT)?;
    let mut mapped = 0;
    for page in boot_code.step_by(1 << PAGE_BITS) {
        mapped += u64::from(is_mapped(session, root, page)?);
    }
    let name = "boot_code.mapped".to_owned();
    state.machine.insert(name, mapped);
    Ok((state, facts))
}

/// Whether the kernel's tables, which begin at the physical address `root`, map `page`.
fn is_mapped(session: &mut Session, root: u64, page: u64) -> Result<bool> {
    // 39 bits of address, as TCR_EL1 says: three levels of 9 bits.
    const LEVELS: [u32; 3] = [PAGE_BITS + 18, PAGE_BITS + 9, PAGE_BITS];
    const ADDRESS: u64 = 0xffff_ffff_f000;
    let mut table = root & ADDRESS;
    for shift in LEVELS {
        let entry = session.physical(table + (page >> shift & 0x1ff) * 8, 8)?;
        let entry = u64::from_le_bytes(entry.try_into().ok().context("an entry has 8 bytes")?);
        match entry & 3 {
            3 => table = entry & ADDRESS,
            // A block.
            1 => return Ok(true),
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// What is read of a core: QEMU's fields, and system registers by the numbers of their encoding.
fn core(raw: &Fields) -> Result<Fields> {
    /// What QEMU calls a register by: a system register of 64 bits, and of those of 32 bits that which lets users have
    /// performance counters.
    const SYSTEM: u64 = 0x6030_0000_0013_0000;
    const PMUSERENR: u64 = 0x4020_0000_200f_4f00;
    const FLAGS: u64 = 0xf000_0000;
    let mut fields: Fields = BTreeMap::new();
    for name in ["env.sp_el[0]", "fpscr"] {
        fields.insert(name.to_owned(), number(raw, name)?);
    }
    fields.insert("pstate".to_owned(), number(raw, "cpsr")? & !FLAGS);
    for index in 0..number(raw, "cpreg_vmstate_array_len")? {
        let id = number(raw, &format!("cpreg_vmstate_indexes[{index}]"))?;
        let value = number(raw, &format!("cpreg_vmstate_values[{index}]"))?;
        let field = |at: u32, bits: u32| id >> at & ((1 << bits) - 1);
        if id & !0xffff == SYSTEM {
            let [op0, op1, crn, crm, op2] =
                [(14, 2), (11, 3), (7, 4), (3, 4), (0, 3)].map(|(at, bits)| field(at, bits));
            fields.insert(format!("sys.{op0}.{op1}.{crn}.{crm}.{op2}"), value);
        } else if id == PMUSERENR {
            fields.insert("sys.pmuserenr".to_owned(), value);
        }
    }
    // As many bits of physical addresses as the processor has.
    const ADDRESSES: u64 = 7 << 32;
    fields.insert(
        "tcr".to_owned(),
        number(&fields, "sys.3.0.2.0.2")? & !ADDRESSES,
    );
    Ok(fields)
}

/// Interrupts that a core has for itself, and those that software raises among them.
const PRIVATE: u64 = 32;
const SOFTWARE: u64 = 16;

/// What is read of an interrupt controller.
struct Controller {
    cores: Vec<Part>,
    /// Shared interrupts that are open.
    open: u64,
}

/// Of a core.
struct Part {
    mask: u64,
    /// Interrupts in service.
    active: u64,
    /// A bit for each private interrupt that is open.
    open: u64,
}

fn gic2(raw: &Fields, cores: usize) -> Result<Controller> {
    let of = |interrupt: u64, what: &str| number(raw, &format!("irq_state[{interrupt}].{what}"));
    let mut controller = Controller {
        cores: Vec::new(),
        open: 0,
    };
    let mut shared_active = 0;
    for interrupt in PRIVATE..1020 {
        controller.open += u64::from(of(interrupt, "enabled")? != 0);
        shared_active += u64::from(of(interrupt, "active")? != 0);
    }
    for core in 0..cores {
        let mut part = Part {
            mask: number(raw, &format!("priority_mask[{core}]"))?,
            active: shared_active,
            open: 0,
        };
        for interrupt in 0..PRIVATE {
            let is = |what| Ok::<_, anyhow::Error>(of(interrupt, what)? >> core & 1);
            part.active += is("active")?;
            if interrupt >= SOFTWARE {
                part.open |= is("enabled")? << interrupt;
            }
        }
        controller.cores.push(part);
    }
    Ok(controller)
}

fn gic3(raw: &Fields, cores: usize) -> Result<Controller> {
    let words = |name: &str| {
        let words = raw.iter();
        let words = words.filter(|(field, _)| field.starts_with(&format!("{name}[")));
        words
            .map(|(_, word)| u64::from(word.count_ones()))
            .sum::<u64>()
    };
    let shared_active = words("active");
    let parts = (0..cores).map(|core| {
        // Of a machine with one core, QEMU gives it no number.
        let of = |what: &str| match raw.get(&format!("cpu.{what}")) {
            Some(value) if cores == 1 => Ok(*value),
            _ => number(raw, &format!("cpu[{core}].{what}")),
        };
        Ok(Part {
            mask: of("icc_pmr_el1")?,
            active: shared_active + u64::from(of("gicr_iactiver0")?.count_ones()),
            open: of("gicr_ienabler0")? & !((1 << SOFTWARE) - 1),
        })
    });
    Ok(Controller {
        cores: parts.collect::<Result<_>>()?,
        open: words("enabled"),
    })
}
