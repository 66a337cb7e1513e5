//! A machine as no firmware should leave it: before the first instruction of the kernel, a piece of code sets what it can
//! of the processor's state to values that the kernel must not keep. The boot protocols let a loader do so: they say little
//! more than that the processor is in protected mode, without paging, with interrupts off. A further core comes from a reset
//! of its own (INIT), which leaves less than the code sets.
//!
//! The code is written into memory by QEMU's stub for GDB, which stops the machine at the kernel's entry, or where a further
//! core is in protected mode.

use std::path::Path;

use anyhow::{ensure, Context, Result};
use object::{Object, ObjectSymbol};

use super::state::State;
use super::stream::{Fields, Stream};
use super::table::{self, Expected};
use crate::arch::Arch;
use crate::qemu::gdb::Gdb;
use crate::qemu::session::Session;

/// Where the code is: in low memory, in which QEMU and its firmware have nothing then.
const CODE: u32 = 0x5_0000;
const STACK: u32 = CODE;
const GDT: u32 = CODE + 0x1000;
const HANDLER: u32 = CODE + 0x1100;
const NUMBERS: u32 = CODE + 0x1200;
const IDT: u32 = CODE + 0x2000;

/// Null, code and data of 32 bits, code of 64 bits, where a further core expects it, and a local table of 64 KiB at address 0.
const SEGMENTS: [u64; 5] = [
    0,
    0x00cf_9b00_0000_ffff,
    0x00cf_9300_0000_ffff,
    0x00af_9b00_0000_ffff,
    0x0000_8200_0000_ffff,
];
const CODE_SEGMENT: u16 = 8;
const LOCAL_TABLE: u16 = 32;
/// What the kernel's image adds to its physical addresses.
const KERNEL_BASE: u64 = 0xffff_ffff_8000_0000;

/// Where a processor comes to a kernel, in protected mode without paging.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The first one, by PVH.
    Pvh,
    /// The first one, by Multiboot2.
    Multiboot,
    /// A further one.
    FurtherCore,
}

impl Place {
    const fn symbol(self) -> &'static str {
        match self {
            Place::Pvh => "pvh_entry",
            Place::Multiboot => "multiboot2_entry",
            Place::FurtherCore => "sandglass_core_start",
        }
    }

    /// What EAX must have there.
    const fn eax(self) -> u32 {
        match self {
            Place::Multiboot => 0x36d7_6289,
            Place::Pvh | Place::FurtherCore => 0,
        }
    }

    /// The physical address.
    fn address(self, kernel: &Path) -> Result<u32> {
        let bytes = std::fs::read(kernel)
            .with_context(|| format!("cannot read the kernel `{}`", kernel.display()))?;
        let file = object::File::parse(&*bytes).context("the kernel is no ELF file")?;
        let name = self.symbol();
        let mut symbols = file.symbols();
        let symbol = symbols.find(|symbol| symbol.name() == Ok(name));
        let symbol = symbol.with_context(|| format!("the kernel has no `{name}`"))?;
        Ok(u32::try_from(symbol.address().wrapping_sub(KERNEL_BASE))?)
    }
}

const LOCAL_APIC: u32 = 0xfee0_0000;
const IO_APIC: u32 = 0xfec0_0000;
/// An interrupt that is taken and not ended, and one that waits.
const IN_SERVICE: u8 = 0xf0;
const WAITING: u8 = 0x77;

/// The entries of the table that the code sets wrong, on a processor with everything that QEMU emulates.
const WRONG: &[&str] = &[
    "LDTR",
    "LDTR, limit",
    "CR8",
    "EFER",
    "DR0",
    "DR1",
    "DR2",
    "DR3",
    "DR7",
    "STAR",
    "LSTAR",
    "CSTAR",
    "FMASK",
    "SYSENTER_CS",
    "SYSENTER_ESP",
    "SYSENTER_EIP",
    "PAT",
    "TSC_AUX",
    "GS base",
    "other GS base",
    "control word",
    "MXCSR",
    "spurious-interrupt register",
    "timer entry",
    "performance entry",
    "LINT0 entry",
    "LINT1 entry",
    "error entry",
    "timer divider",
    "destination format",
    "logical destination",
    "in service, from 224",
    "machine checks, status",
    "machine-check banks that are wrong",
    "CR0",
    "CR4",
    "RFLAGS",
];

/// Machine code of 32 bits.
#[derive(Default)]
struct Code(Vec<u8>);

impl Code {
    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn number(&mut self, number: u32) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    /// `mov eax, value`
    fn eax(&mut self, value: u32) -> &mut Self {
        self.bytes(&[0xb8]).number(value)
    }

    /// `wrmsr`
    fn msr(&mut self, register: u32, value: u64) -> &mut Self {
        self.bytes(&[0xb9]).number(register).eax(value as u32);
        self.bytes(&[0xba]).number((value >> 32) as u32);
        self.bytes(&[0x0f, 0x30])
    }

    /// `mov crN, eax`
    fn control(&mut self, register: u8, value: u32) -> &mut Self {
        self.eax(value).bytes(&[0x0f, 0x22, 0xc0 | register << 3])
    }

    /// `mov drN, eax`
    fn debug(&mut self, register: u8, value: u32) -> &mut Self {
        self.eax(value).bytes(&[0x0f, 0x23, 0xc0 | register << 3])
    }

    /// `mov dword ptr [address], value`
    fn store(&mut self, address: u32, value: u32) -> &mut Self {
        self.bytes(&[0xc7, 0x05]).number(address).number(value)
    }

    fn local_apic(&mut self, register: u32, value: u32) -> &mut Self {
        self.store(LOCAL_APIC + register, value)
    }

    /// `out port, al`
    fn port(&mut self, port: u8, value: u8) -> &mut Self {
        self.bytes(&[0xb0, value, 0xe6, port])
    }
}

/// The code, which ends by a jump to `entry`, which is that of `place`. It keeps EBX, in which the kernel is told where the
/// loader's structure is.
fn code(place: Place, entry: u32) -> Vec<u8> {
    let mut code = Code::default();
    // mov esp, STACK; lgdt; far jump to what follows; lidt; lldt.
    code.bytes(&[0xbc]).number(STACK);
    if place == Place::FurtherCore {
        // mov ax, 16; mov ds, ax; mov ss, ax.
        code.bytes(&[0x66, 0xb8, 16, 0, 0x8e, 0xd8, 0x8e, 0xd0]);
    }
    code.bytes(&[0x0f, 0x01, 0x15]).number(NUMBERS);
    let next = CODE + code.0.len() as u32 + 7;
    code.bytes(&[0xea]).number(next);
    code.bytes(&CODE_SEGMENT.to_le_bytes());
    code.bytes(&[0x0f, 0x01, 0x1d]).number(NUMBERS + 8);
    code.eax(LOCAL_TABLE.into()).bytes(&[0x0f, 0x00, 0xd0]);
    registers(&mut code);
    // Between interrupts of the timer, in its counts. A further core waits long for its turn: shorter ones would keep the
    // emulator busy.
    let period = if place == Place::FurtherCore {
        1_000_000
    } else {
        1000
    };
    local_interrupts(&mut code, period);
    if place != Place::FurtherCore {
        // Those of the machine are the kernel's then.
        open_lines(&mut code);
    }
    // Flags that IRET and others heed: alignment checks, nested task, I/O privilege; not interrupts. push; popfd; push; ret.
    code.bytes(&[0x68]).number(0x0024_7002).bytes(&[0x9d]);
    code.eax(place.eax());
    code.bytes(&[0x68]).number(entry).bytes(&[0xc3]);
    code.0
}

/// Code that writes these model-specific registers, and then jumps to `entry`, which is that of `place`. It has no stack.
fn writes(place: Place, entry: u32, registers: &[(u32, u64)]) -> Vec<u8> {
    let mut code = Code::default();
    for &(register, value) in registers {
        code.msr(register, value);
    }
    code.eax(place.eax());
    // jmp, relative to what follows.
    let next = CODE + code.0.len() as u32 + 5;
    code.bytes(&[0xe9]).number(entry.wrapping_sub(next));
    code.0
}

fn registers(code: &mut Code) {
    // DE, PGE, MCE, PCE, OSFXSR, OSXMMEXCPT, FSGSBASE, OSXSAVE.
    code.control(4, 0x5_07c8);
    // XCR0: x87, SSE, AVX. xor ecx, ecx; xor edx, edx; mov eax, 7; xsetbv.
    code.bytes(&[0x31, 0xc9, 0x31, 0xd2]).eax(7);
    code.bytes(&[0x0f, 0x01, 0xd1]);
    // fninit; fldcw; ldmxcsr.
    code.bytes(&[0xdb, 0xe3, 0xd9, 0x2d]).number(NUMBERS + 16);
    code.bytes(&[0x0f, 0xae, 0x15]).number(NUMBERS + 20);
    // Without caches, with alignment checks, TS and EM; protected mode.
    code.control(0, 0x4004_001d);
    // SCE, NXE, SVME, FFXSR.
    code.msr(0xc000_0080, 0x5801);
    for (register, value) in [
        (0x174, 0x1234),
        (0x175, 0xffff_8000_0000_1000),
        (0x176, 0xffff_8000_0000_2000),
        (0x277, 0x0001_0405_0607_0501),
        (0xc000_0081, 0x1234_5678_0000_0000),
        (0xc000_0082, 0x1000),
        (0xc000_0083, 0x2000),
        (0xc000_0084, 0x100),
        (0xc000_0100, 0x3000),
        (0xc000_0101, 0x4000),
        (0xc000_0102, 0x5000),
        (0xc000_0103, 0x1234),
        // A machine check is being dealt with; bank 0 reports nothing, and has an error.
        (0x17a, 4),
        (0x400, 0),
        (0x401, u64::MAX),
    ] {
        code.msr(register, value);
    }
    // Four bytes are watched, wherever they are written: nobody does.
    for register in 0..4 {
        code.debug(register, 0xffff_fff0);
    }
    code.debug(7, 0xdddd_04aa);
}

fn local_interrupts(code: &mut Code, period: u32) {
    // The local APIC is on; an interrupt is taken. sti; nop; cli.
    code.local_apic(0x80, 0).local_apic(0xf0, 0x1ab);
    code.local_apic(0x300, 0x4_4000 | u32::from(IN_SERVICE));
    code.bytes(&[0xfb, 0x90, 0xfa]);
    // Another one waits: the timer's, again and again.
    code.local_apic(0x3e0, 3);
    code.local_apic(0x320, 0x2_0000 | u32::from(WAITING));
    code.local_apic(0x380, period);
    code.local_apic(0xd0, 0xff00_0000)
        .local_apic(0xe0, 0x0fff_ffff);
    // The legacy controllers' lines, a fixed vector in place of NMI, and others.
    code.local_apic(0x340, 0xe1)
        .local_apic(0x350, 0x700)
        .local_apic(0x360, 0xe2)
        .local_apic(0x370, 0xe3);
    code.local_apic(0x80, 0xff);
}

fn open_lines(code: &mut Code) {
    // Each line of the I/O APIC is open, and asserted is high.
    for pin in 0..24 {
        code.store(IO_APIC, 0x10 + 2 * pin);
        code.store(IO_APIC + 0x10, 0x8000 | (0x40 + pin));
    }
    // Each line of the legacy controllers is open.
    code.port(0x21, 0).port(0xa1, 0);
}

/// A machine that is being started, with a debugger's socket, and is stopped before the first instruction.
///
/// # Errors
/// QEMU does not answer.
pub fn stopped(socket: &Path) -> Result<Gdb> {
    Gdb::connect(socket)
}

/// Lets a machine go on until a processor comes to the kernel there, and execute code that leaves everything odd; it is stopped
/// at that place again. Returns which processor, from 0.
///
/// # Errors
/// The machine does not come there.
pub fn spoil(gdb: &mut Gdb, kernel: &Path, place: Place) -> Result<u32> {
    execute(gdb, kernel, place, |entry| memory(place, entry))
}

/// The same, with code that writes these model-specific registers.
///
/// # Errors
/// As above.
pub fn write(gdb: &mut Gdb, kernel: &Path, place: Place, registers: &[(u32, u64)]) -> Result<u32> {
    execute(gdb, kernel, place, |entry| {
        Ok(vec![(CODE, writes(place, entry, registers))])
    })
}

fn execute(
    gdb: &mut Gdb,
    kernel: &Path,
    place: Place,
    memory: impl FnOnce(u32) -> Result<Vec<(u32, Vec<u8>)>>,
) -> Result<u32> {
    let entry = place.address(kernel)?;
    gdb.run_to(entry.into())?;
    for (address, bytes) in memory(entry)? {
        gdb.write(address.into(), &bytes)?;
    }
    gdb.jump(CODE.into())?;
    gdb.run_to(entry.into())
}

/// What is written into memory, by address: the code, which ends by a jump to `entry`, and what it needs.
fn memory(place: Place, entry: u32) -> Result<Vec<(u32, Vec<u8>)>> {
    let pointer = |bytes: u16, base: u32| {
        let mut pointer = bytes.to_le_bytes().to_vec();
        pointer.extend(base.to_le_bytes());
        pointer.resize(8, 0);
        pointer
    };
    let mut numbers = pointer(39, GDT);
    numbers.extend(pointer(0x7ff, IDT));
    // For the FPU: rounds down, and raises all exceptions.
    numbers.extend(0x0440_u32.to_le_bytes());
    numbers.extend(0x2000_u32.to_le_bytes());
    let gate = u64::from(HANDLER & 0xffff)
        | u64::from(CODE_SEGMENT) << 16
        | 0x8e00 << 32
        | u64::from(HANDLER >> 16) << 48;
    let segments: Vec<u8> = SEGMENTS
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let code = code(place, entry);
    ensure!(code.len() < 0x1000, "the code is too long");
    Ok(vec![
        (CODE, code),
        (GDT, segments),
        // iretd
        (HANDLER, vec![0xcf]),
        (NUMBERS, numbers),
        (IDT, gate.to_le_bytes().repeat(256)),
    ])
}

/// What the code did not set wrong although it is to, on `processor` of a machine that is stopped behind it and does not go on.
///
/// # Errors
/// The machine cannot be read.
pub fn still_right(session: &mut Session, processor: u32) -> Result<Vec<String>> {
    let bytes = session.migrate()?;
    let stream = Stream::parse(&bytes)?;
    let mut fields: Fields = stream.device("cpu", processor)?;
    for (name, value) in stream.device("apic", processor)? {
        fields.insert(format!("apic.{name}"), value);
    }
    super::state::add_machine_checks(&mut fields)?;
    let state = State {
        cores: vec![fields],
        ..State::default()
    };
    let mut findings = Vec::new();
    for title in WRONG {
        let (row, _) = table::rows(Arch::X86_64)
            .find(|(row, _)| row.title == *title)
            .with_context(|| format!("the table has no entry `{title}`"))?;
        let found = state.cores[0].get(row.name).copied();
        let found = found.with_context(|| format!("QEMU does not tell {}", row.name))?;
        let is_wrong = match &row.expected {
            Expected::Any(_) => found != 0,
            expected => {
                let value = expected.value(&super::Facts::default(), 0, found);
                value.is_some_and(|(right, mask)| found & mask != right)
            }
        };
        if !is_wrong {
            findings.push(format!(
                "processor {processor}: {title} is {found:#x} before the kernel has it: that is right"
            ));
        }
    }
    Ok(findings)
}
