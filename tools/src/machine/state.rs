//! What was read of a machine: numbers by name, of each core and of the machine, and what the expected
//! values depend on.

use std::path::Path;

use anyhow::{ensure, Result};

use super::stream::{number, Fields, Stream};
use crate::arch::Arch;
use crate::bounds::names::Symbols;
use crate::qemu::session::Session;

/// Bytes of what the processor reads of one core's descriptors, in the order of
/// `kernel/src/arch/x86_64/entry/descriptors.rs`: gates, segments, task state, stacks.
const CORE_TABLES: u64 = 8192;
pub const GATES: u64 = 256;
const GATE_BYTES: u64 = 16;
pub const SEGMENTS: u64 = 9;
pub const TASK_STATE_BYTES: u64 = 104;
const FIRST_STACK: u64 = GATES * GATE_BYTES + SEGMENTS * 8 + TASK_STATE_BYTES;
const STACK_BYTES: u64 = 256;
/// Bytes between the entry points of two vectors.
const ENTRY_STRIDE: u64 = 8;

/// Virtual address of physical address 0 in the kernel's image.
const IMAGE_START: u64 = 0xffff_ffff_8000_0000;
const PAGE_BYTES: u64 = 4096;
/// The kernel's page table of its image (`kernel/src/arch/x86_64/machine/paging.rs`).
const PAGE_TABLE: &str = "sandglass_kernel::arch::x86_64::machine::paging::IMAGE_TABLE";

/// What was read.
#[derive(Clone, Default)]
pub struct State {
    /// Of each core that the kernel runs on, in the kernel's order.
    pub cores: Vec<Fields>,
    pub machine: Fields,
}

/// What expected values depend on.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    pub machine_checks: bool,
    pub smep: bool,
    pub smap: bool,
    pub umip: bool,
    pub no_execute: bool,
}

/// Where the kernel's image has things.
#[derive(Clone, Copy, Default)]
pub struct Layout {
    tables: u64,
    first_vector: u64,
    first_system_call: u64,
    /// Bytes from the entry code of one core to that of the next; 0 on a kernel for one core.
    block: u64,
    /// The entries of the kernel's page table for its code that runs once: physical address of the first, and bytes.
    boot_code: (u64, u64),
}

/// All that an expected value may depend on.
#[derive(Clone, Copy, Default)]
pub struct Facts {
    pub arch: Arch,
    /// On x86_64, whether firmware leaves local APICs in x2APIC mode.
    pub is_x2apic: bool,
    /// On aarch64, whether programs are let have the clock and the physical timer.
    pub has_user_timer: bool,
    /// On aarch64, whether it is the kernel for several cores.
    pub is_smp: bool,
    /// On aarch64, where the stacks of the first two cores end, or would.
    pub first_stack_end: u64,
    pub second_stack_end: u64,
    /// On aarch64, where the vectors are; and whether system errors are masked while user code runs.
    pub vectors: u64,
    pub masks_errors: bool,
    pub features: Features,
    pub layout: Layout,
}

impl Layout {
    /// # Errors
    /// The file is no kernel with symbols.
    pub fn of_kernel(path: &Path) -> Result<Self> {
        let symbols = Symbols::read(path)?;
        let first_vector = symbols.need("sandglass_vectors_0")?;
        let second = symbols.address("sandglass_vectors_1");
        let entry = |address: u64| (address - IMAGE_START) / PAGE_BYTES * 8;
        let (start, end) = (
            symbols.need("init_text_start")?,
            symbols.need("init_text_end")?,
        );
        let boot_code = symbols.need(PAGE_TABLE)? - IMAGE_START + entry(start);
        Ok(Self {
            tables: symbols.need("trampoline_data_start")?,
            first_vector,
            first_system_call: symbols.need("sandglass_system_call_0")?,
            block: second.map_or(0, |second| second - first_vector),
            boot_code: (boot_code, entry(end) - entry(start)),
        })
    }

    pub const fn gates(self, core: u64) -> u64 {
        self.tables + core * CORE_TABLES
    }

    pub const fn segments(self, core: u64) -> u64 {
        self.gates(core) + GATES * GATE_BYTES
    }

    pub const fn task_state(self, core: u64) -> u64 {
        self.segments(core) + SEGMENTS * 8
    }

    /// Where stack `stack` begins, which is where it ends in memory: 0 for entries from user code, 1 to
    /// 4 for the exceptions with stacks of their own.
    pub const fn stack(self, core: u64, stack: u64) -> u64 {
        self.gates(core) + FIRST_STACK + (stack + 1) * STACK_BYTES
    }

    pub const fn system_call(self, core: u64) -> u64 {
        self.first_system_call + core * self.block
    }

    /// First vector that users may raise by its number (ABI 05, section 2.2).
    const fn first_software(self) -> u64 {
        if self.block == 0 {
            158
        } else {
            160
        }
    }

    /// The gate of `vector`, as the processor reads it.
    fn gate(self, core: u64, vector: u64) -> [u64; 2] {
        const INTERRUPT_GATE: u64 = 0x8e00 << 32;
        const USER: u64 = 3 << 45;
        const KERNEL_CODE: u64 = 8 << 16;
        let address = self.first_vector + core * self.block + vector * ENTRY_STRIDE;
        let stack = match vector {
            1 => 1,
            2 => 2,
            8 => 3,
            18 => 4,
            _ => 0,
        };
        let user = match vector {
            3 => USER,
            _ if vector >= self.first_software() => USER,
            _ => 0,
        };
        let low = address & 0xffff | (address >> 16 & 0xffff) << 48;
        [
            low | KERNEL_CODE | stack << 32 | INTERRUPT_GATE | user,
            address >> 32,
        ]
    }

    /// The descriptor of the task state, after the processor has marked it as busy.
    pub const fn task_descriptor(self, core: u64) -> [u64; 2] {
        let base = self.task_state(core);
        let limit = TASK_STATE_BYTES - 1;
        [
            limit | (base & 0xff_ffff) << 16 | 0x8b << 40 | (base >> 24 & 0xff) << 56,
            base >> 32,
        ]
    }
}

impl Features {
    /// Of the processor of a machine.
    pub fn of(session: &mut Session) -> Result<Self> {
        let (ebx, ecx) = (session.features(7, "EBX")?, session.features(7, "ECX")?);
        let edx = session.features(0x8000_0001, "EDX")?;
        const MACHINE_CHECKS: u32 = 1 << 7 | 1 << 14;
        let basic = session.features(1, "EDX")?;
        Ok(Self {
            machine_checks: basic & MACHINE_CHECKS == MACHINE_CHECKS,
            smep: ebx & 1 << 7 != 0,
            smap: ebx & 1 << 20 != 0,
            umip: ecx & 1 << 2 != 0,
            no_execute: edx & 1 << 20 != 0,
        })
    }
}

/// Reads a machine that is stopped. Afterwards it does not go on.
pub fn read(session: &mut Session, layout: Layout) -> Result<(State, Facts)> {
    let features = Features::of(session)?;
    let bytes = session.migrate()?;
    let stream = Stream::parse(&bytes)?;
    let mut state = State::default();
    for instance in stream.instances("cpu") {
        let mut core = stream.device("cpu", instance)?;
        const PAGING: u64 = 1 << 31;
        if number(&core, "env.cr[0]")? & PAGING == 0 {
            // Never started.
            continue;
        }
        for (name, value) in stream.device("apic", instance)? {
            core.insert(format!("apic.{name}"), value);
        }
        // Is in the stream only where it differs from the value after a reset.
        core.entry("env.msr_ia32_misc_enable".to_owned())
            .or_insert(1);
        let number_of_core = state.cores.len() as u64;
        add_machine_checks(&mut core)?;
        read_tables(session, &mut core, instance, layout, number_of_core)?;
        core.insert("is.first".to_owned(), u64::from(state.cores.is_empty()));
        state.cores.push(core);
    }
    ensure!(!state.cores.is_empty(), "no processor runs");
    for instance in stream.instances("i8259") {
        let pic = stream.device("i8259", instance)?;
        state
            .machine
            .insert(format!("pic{instance}.imr"), number(&pic, "imr")?);
    }
    let io_apic = stream.device("ioapic", 0)?;
    let open = io_apic
        .iter()
        .filter(|(name, &value)| name.starts_with("ioredtbl") && value & 1 << 16 == 0);
    state
        .machine
        .insert("ioapic.open".to_owned(), open.count() as u64);
    let (start, bytes) = layout.boot_code;
    let entries = session.physical(start, bytes)?;
    let mapped = entries.chunks(8).filter(|entry| entry[0] & 1 != 0);
    state
        .machine
        .insert("boot_code.mapped".to_owned(), mapped.count() as u64);
    let facts = Facts {
        features,
        layout,
        ..Facts::default()
    };
    Ok((state, facts))
}

/// Adds how many of a processor's banks of machine checks do not report all errors, or have one from before.
pub fn add_machine_checks(core: &mut Fields) -> Result<()> {
    const VALID: u64 = 1 << 63;
    let banks = number(core, "env.mcg_cap")? & 0xff;
    let mut wrong = 0;
    for bank in 0..banks {
        let control = number(core, &format!("env.mce_banks[{}]", 4 * bank))?;
        let status = number(core, &format!("env.mce_banks[{}]", 4 * bank + 1))?;
        wrong += u64::from(control != u64::MAX || status & VALID != 0);
    }
    core.insert("mce.wrong".to_owned(), wrong);
    Ok(())
}

/// Adds what lies in the tables that the core's registers lead to.
fn read_tables(
    session: &mut Session,
    core: &mut Fields,
    cpu: u32,
    layout: Layout,
    number_of_core: u64,
) -> Result<()> {
    let word = |bytes: &[u8], i: usize| -> u64 {
        let word = bytes.get(i * 8..i * 8 + 8).unwrap_or_default();
        word.iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | u64::from(byte))
    };
    let base = number(core, "env.gdt.base")?;
    let segments = session.memory(cpu, base, SEGMENTS * 8)?;
    for i in 0..SEGMENTS as usize {
        core.insert(format!("gdt[{i}]"), word(&segments, i));
    }
    let base = number(core, "env.idt.base")?;
    let gates = session.memory(cpu, base, GATES * GATE_BYTES)?;
    let wrong = (0..GATES).filter(|&vector| {
        let i = vector as usize * 2;
        [word(&gates, i), word(&gates, i + 1)] != layout.gate(number_of_core, vector)
    });
    core.insert("idt.wrong".to_owned(), wrong.count() as u64);
    let base = number(core, "env.tr.base")?;
    let task = session.memory(cpu, base, TASK_STATE_BYTES)?;
    // Packed: from byte 4 on, words of 8 bytes.
    for (i, name) in ["rsp0", "rsp1", "rsp2"].iter().enumerate() {
        core.insert(format!("tss.{name}"), word(&task[4..], i));
    }
    for i in 0..7 {
        core.insert(format!("tss.ist{}", i + 1), word(&task[36..], i));
    }
    core.insert("tss.io_map".to_owned(), word(&task[96..], 0) >> 48);
    Ok(())
}
