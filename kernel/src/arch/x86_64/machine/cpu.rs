//! Privileged instructions, each as one function, and the state that the kernel wants the
//! processor in (07, section 2).

use core::arch::asm;
use core::arch::x86_64::{__cpuid, _rdtsc, CpuidResult};

use super::rate::stated_hz;
use super::{barriers, machine_check, paging};
use crate::arch::abi::context::HAS_AVX;
use sandglass_abi::profile::{Fpu, SegmentBases, THIS as PROFILE};

/// A model-specific register.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Msr {
    ApicBase = 0x1b,
    SpecCtrl = 0x48,
    PredCmd = 0x49,
    Capabilities = 0x10a,
    FlushCmd = 0x10b,
    SysenterCs = 0x174,
    SysenterEsp = 0x175,
    SysenterEip = 0x176,
    MachineCheckCapabilities = 0x179,
    MachineCheckStatus = 0x17a,
    MachineCheckControl = 0x17b,
    Pat = 0x277,
    TscDeadline = 0x6e0,
    Efer = 0xc000_0080,
    Star = 0xc000_0081,
    Lstar = 0xc000_0082,
    Cstar = 0xc000_0083,
    Fmask = 0xc000_0084,
    FsBase = 0xc000_0100,
    GsBase = 0xc000_0101,
    KernelGsBase = 0xc000_0102,
    TscAux = 0xc000_0103,
}

const CR0_PE: u64 = 1 << 0;
const CR0_MP: u64 = 1 << 1;
const CR0_TS: u64 = 1 << 3;
const CR0_ET: u64 = 1 << 4;
const CR0_NE: u64 = 1 << 5;
const CR0_WP: u64 = 1 << 16;
const CR0_PG: u64 = 1 << 31;
/// With the FPU off, and nothing else that a loader may have left.
const CR0: u64 = CR0_PE | CR0_MP | CR0_TS | CR0_ET | CR0_NE | CR0_WP | CR0_PG;

const CR4_PAE: u64 = 1 << 5;
const CR4_MCE: u64 = 1 << 6;
const CR4_OSFXSR: u64 = 1 << 9;
const CR4_UMIP: u64 = 1 << 11;
const CR4_FSGSBASE: u64 = 1 << 16;
const CR4_OSXSAVE: u64 = 1 << 18;
const CR4_SMEP: u64 = 1 << 20;
const CR4_SMAP: u64 = 1 << 21;

const EFER_SYSCALL: u64 = 1 << 0;
const EFER_LONG_MODE_ENABLED: u64 = 1 << 8;
const EFER_LONG_MODE_ACTIVE: u64 = 1 << 10;
const EFER_NO_EXECUTE: u64 = 1 << 11;

/// Whether user code has instructions that read and write the FS and GS bases (09, section 2.5).
pub const USERS_SET_BASES: bool = matches!(PROFILE.segment_bases, SegmentBases::Instructions);

/// The components of the processor's state that user code has and the kernel switches, as XCR0 names them; `None` where
/// user code has no XSAVE.
const XSAVE_FEATURES: Option<u64> = match PROFILE.fpu {
    Fpu::Fxsave => None,
    Fpu::Xsave { features, .. } => Some(features),
};

/// Bit of a page fault's code: an instruction was fetched.
const FAULT_FETCH: u32 = 1 << 4;

/// Nothing is watched: what the register reads as after a reset.
const DR7_OFF: u64 = 0x400;
/// No debug exception was raised, for the same reason.
#[cfg(feature = "hardware-debug")]
const DR6_CLEAN: u64 = 0xffff_0ff0;

pub(super) const CPUID_VENDOR: u32 = 0;
pub(super) const CPUID_FEATURES: u32 = 1;
pub(super) const CPUID_STRUCTURED_FEATURES: u32 = 7;
const CPUID_TOPOLOGY: u32 = 0xb;
/// The components that XCR0 may have (Intel SDM 1, 13.2).
const CPUID_COMPONENTS: u32 = 0xd;
const CPUID_THERMAL: u32 = 6;
const CPUID_TSC: u32 = 0x15;
const CPUID_FREQUENCIES: u32 = 0x16;
const CPUID_POWER: u32 = 0x8000_0007;
const CPUID_EXTENDED_FEATURES: u32 = 0x8000_0001;
const ECX_TSC_DEADLINE: u32 = 1 << 24;
const ECX_HYPERVISOR: u32 = 1 << 31;
/// Machine checks, and their registers.
const EDX_MACHINE_CHECKS: u32 = 1 << 7 | 1 << 14;
const EDX_MTRRS: u32 = 1 << 12;
const EDX_INVARIANT_TSC: u32 = 1 << 8;
const EAX_LASTING_TIMER: u32 = 1 << 2;
const ECX_XSAVE: u32 = 1 << 26;
const EBX_FSGSBASE: u32 = 1 << 0;
const EBX_SMEP: u32 = 1 << 7;
const EBX_SMAP: u32 = 1 << 20;
const ECX_UMIP: u32 = 1 << 2;
const EDX_NO_EXECUTE: u32 = 1 << 20;
const EDX_RDTSCP: u32 = 1 << 27;

/// Types of the entries of the page-attribute table: write-back, write-through, uncached unless the MTRRs combine,
/// uncached, write-combining (07, section 6), and, of which nothing makes use, what a reset leaves.
const PAT: u64 = 0x0007_0401_0007_0406;

/// Gives way to whoever this core waits for.
#[inline(always)]
pub fn pause() {
    core::hint::spin_loop();
}

/// Reads a model-specific register.
///
/// # Safety
/// The processor has the register.
pub unsafe fn read_msr(msr: Msr) -> u64 {
    // SAFETY: the caller's.
    unsafe { read_numbered_msr(msr as u32) }
}

/// As [`read_msr`].
///
/// # Safety
/// As [`read_msr`].
pub unsafe fn read_numbered_msr(number: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reading has no effect but the trap that the caller excludes.
    unsafe {
        asm!("rdmsr", in("ecx") number, out("eax") low, out("edx") high,
             options(nomem, nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Writes a model-specific register.
///
/// # Safety
/// The processor has the register, and `value` is one that it accepts and that keeps the kernel
/// running.
#[inline(always)]
pub unsafe fn write_msr(msr: Msr, value: u64) {
    // SAFETY: the caller's.
    unsafe { write_numbered_msr(msr as u32, value) }
}

/// As [`write_msr`].
///
/// # Safety
/// As [`write_msr`].
#[inline(always)]
pub unsafe fn write_numbered_msr(number: u32, value: u64) {
    // SAFETY: the caller vouches for the effect. Not `nomem`: the write orders with memory.
    unsafe {
        asm!("wrmsr", in("ecx") number, in("eax") value as u32, in("edx") (value >> 32) as u32,
             options(nostack, preserves_flags));
    }
}

/// The time-stamp counter, in ticks.
#[inline(always)]
pub fn time_stamp() -> u64 {
    // SAFETY: every processor with long mode has the counter.
    unsafe { _rdtsc() }
}

/// The time-stamp counter, read after everything before and before everything after.
#[inline(always)]
pub fn ordered_time_stamp() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: as above; all processors with long mode have the fence.
    unsafe {
        asm!("lfence", "rdtsc", "lfence", out("eax") low, out("edx") high,
             options(nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// CPUID leaf `leaf`, sub-leaf 0; `None` if the processor does not have the leaf.
pub(super) fn cpuid(leaf: u32) -> Option<CpuidResult> {
    if __cpuid(leaf & 0x8000_0000).eax >= leaf {
        Some(__cpuid(leaf))
    } else {
        None
    }
}

/// Whether the local APIC timer can wait for a value of the time-stamp counter.
pub fn has_tsc_deadline() -> bool {
    cpuid(CPUID_FEATURES).is_some_and(|leaf| leaf.ecx & ECX_TSC_DEADLINE != 0)
}

/// The number of this processor's local APIC, as it was after a reset.
pub fn apic_id() -> u32 {
    match cpuid(CPUID_TOPOLOGY) {
        // There are levels: the leaf is there.
        Some(leaf) if leaf.ebx & 0xffff != 0 => leaf.edx,
        _ => __cpuid(CPUID_FEATURES).ebx >> 24,
    }
}

/// Low bits of a local APIC's number that tell the hardware threads of one core apart.
pub fn thread_bits() -> u32 {
    const THREADS: u32 = 1;
    // Sub-leaf 0 describes the lowest level: threads, if the processor says so.
    match cpuid(CPUID_TOPOLOGY) {
        Some(leaf) if leaf.ecx >> 8 & 0xff == THREADS => leaf.eax & 0x1f,
        _ => 0,
    }
}

/// Whether a breakpoint can watch eight bytes: the families and models of which the ABI knows it (09, section 3).
pub fn watches_eight_bytes() -> bool {
    let Some(leaf) = cpuid(CPUID_FEATURES) else {
        return false;
    };
    let (family, extended) = (leaf.eax >> 8 & 0xf, leaf.eax >> 16 & 0xf);
    matches!(
        (family, extended << 4 | leaf.eax >> 4 & 0xf),
        (6, 15 | 23 | 28) | (15, 3 | 4 | 6)
    )
}

/// Whether this is an emulated processor, of QEMU's TCG. Where a single step has also accessed what is watched, that raises
/// both exceptions, the second at the first instruction of the kernel, while a processor makes them one.
#[cfg(feature = "hardware-debug")]
pub fn is_emulated() -> bool {
    const HYPERVISOR: u32 = 0x4000_0000;
    const ECX_HYPERVISOR: u32 = 1 << 31;
    let says_who = cpuid(CPUID_FEATURES).is_some_and(|leaf| leaf.ecx & ECX_HYPERVISOR != 0);
    let name = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
    says_who && {
        let leaf = __cpuid(HYPERVISOR);
        [leaf.ebx, leaf.ecx, leaf.edx] == [name(b"TCGT"), name(b"CGTC"), name(b"GTCG")]
    }
}

/// Whether pages can be made ones of which no instruction is executed.
#[inline(never)]
pub fn has_no_execute() -> bool {
    cpuid(CPUID_EXTENDED_FEATURES).is_some_and(|leaf| leaf.edx & EDX_NO_EXECUTE != 0)
}

/// Whether the processor has memory-type range registers.
pub fn has_mtrrs() -> bool {
    cpuid(CPUID_FEATURES).is_some_and(|leaf| leaf.edx & EDX_MTRRS != 0)
}

/// Whether there is a hypervisor, or an emulator, that says so.
pub fn is_virtual() -> bool {
    cpuid(CPUID_FEATURES).is_some_and(|leaf| leaf.ecx & ECX_HYPERVISOR != 0)
}

/// Whether the processor tells of defects of the machine by machine checks.
fn has_machine_checks() -> bool {
    cpuid(CPUID_FEATURES).is_some_and(|leaf| leaf.edx & EDX_MACHINE_CHECKS == EDX_MACHINE_CHECKS)
}

/// Whether exception 18 can be a machine check: the kernel lets the processor raise it.
pub fn takes_machine_checks() -> bool {
    cr4() & CR4_MCE != 0
}

/// Whether user code can have instructions for the FS and GS bases.
fn has_fsgsbase() -> bool {
    cpuid(CPUID_STRUCTURED_FEATURES).is_some_and(|leaf| leaf.ebx & EBX_FSGSBASE != 0)
}

/// Whether user code can have XSAVE, with the components that the profile has: a processor with XSAVE need not have a leaf
/// that says which there are, as one of an emulator may not, and then loading XCR0 is an exception.
fn has_xsave() -> bool {
    let features = XSAVE_FEATURES.unwrap_or(0) as u32;
    let has = cpuid(CPUID_FEATURES).is_some_and(|leaf| leaf.ecx & ECX_XSAVE != 0);
    has && cpuid(CPUID_COMPONENTS).is_some_and(|leaf| leaf.eax & features == features)
}

/// What is missing where [`has_xsave`] says no.
const NO_XSAVE: &str = if HAS_AVX {
    "the processor has no XSAVE or no AVX, which the kernel's profile wants (QEMU: -cpu MODEL,+xsave,+avx)"
} else {
    "the processor has no XSAVE, which the kernel's profile wants (QEMU: -cpu MODEL,+xsave)"
};

/// Bits of EDX of [`CPUID_FEATURES`] that the kernel relies on, with what to say where one is missing.
const NEEDED: [(u32, &str); 5] = [
    (
        1 << 4,
        "the processor has no time-stamp counter (CPUID 1, EDX bit 4)",
    ),
    (
        1 << 9,
        "the processor has no local APIC, or the firmware has switched it off (CPUID 1, EDX bit 9)",
    ),
    (
        1 << 16,
        "the processor has no page-attribute table (CPUID 1, EDX bit 16)",
    ),
    (1 << 24, "the processor has no FXSAVE (CPUID 1, EDX bit 24)"),
    (1 << 26, "the processor has no SSE2 (CPUID 1, EDX bit 26)"),
];

/// What this processor lacks of what the kernel needs, or the profile wants (09, section 2.5), for a
/// message.
pub fn missing() -> Option<&'static str> {
    let has = cpuid(CPUID_FEATURES).map_or(0, |leaf| leaf.edx);
    if let Some(&(_, what)) = NEEDED.iter().find(|&&(bit, _)| has & bit == 0) {
        return Some(what);
    }
    if has_invariant_tsc() == Some(false) {
        return Some(
            "the processor's time-stamp counter is not invariant (CPUID 0x80000007, EDX bit 8): it changes its rate \
             or stops, and the kernel has no other clock",
        );
    }
    if !paging::ISOLATED && barriers::leaks_what_is_mapped() {
        return Some(
            "the kernel is one without page-table isolation, and the processor may let user code read what is mapped for the kernel \
             (it is not AMD's, and IA32_ARCH_CAPABILITIES does not say RDCL_NO): use one with isolation",
        );
    }
    if USERS_SET_BASES && !has_fsgsbase() {
        Some("the processor has no FSGSBASE, which the kernel's profile wants (QEMU: -cpu MODEL,+fsgsbase)")
    } else if XSAVE_FEATURES.is_some() && !has_xsave() {
        Some(NO_XSAVE)
    } else {
        None
    }
}

/// The value of EFER: long mode, SYSCALL, and pages without execution where the processor has them.
pub fn efer() -> u64 {
    let no_execute = if has_no_execute() { EFER_NO_EXECUTE } else { 0 };
    EFER_SYSCALL | EFER_LONG_MODE_ENABLED | EFER_LONG_MODE_ACTIVE | no_execute
}

/// The kernel's value of CR4: PAE and SSE; machine checks, without which a defect resets the machine; what the profile adds for users; and, where the processor has them, no execution of user pages and no
/// access to them by the kernel, which reaches user memory through its own mappings, and no
/// instructions that tell users where descriptor tables are.
fn kernel_cr4() -> u64 {
    let features = cpuid(CPUID_STRUCTURED_FEATURES);
    let (ebx, ecx) = features.map_or((0, 0), |leaf| (leaf.ebx, leaf.ecx));
    let mut always = CR4_PAE | CR4_OSFXSR;
    if has_machine_checks() {
        always |= CR4_MCE;
    }
    if USERS_SET_BASES && has_fsgsbase() {
        always |= CR4_FSGSBASE;
    }
    if XSAVE_FEATURES.is_some() && has_xsave() {
        always |= CR4_OSXSAVE;
    }
    [
        (ebx & EBX_SMEP, CR4_SMEP),
        (ebx & EBX_SMAP, CR4_SMAP),
        (ecx & ECX_UMIP, CR4_UMIP),
    ]
    .iter()
    .filter(|&&(present, _)| present != 0)
    .fold(always, |cr4, &(_, bit)| cr4 | bit)
}

/// Frequency of the time-stamp counter in Hz, if the processor says it: that of its crystal, or which
/// crystal it must be by the base frequency, with the ratio of both.
pub fn tsc_hz() -> Option<u64> {
    let leaf = cpuid(CPUID_TSC)?;
    let base_mhz = cpuid(CPUID_FREQUENCIES).map_or(0, |leaf| leaf.eax & 0xffff);
    stated_hz(leaf.eax, leaf.ebx, leaf.ecx, base_mhz)
}

/// Whether the time-stamp counter goes on at one rate, whatever the processor does; `None` if that is up
/// to a hypervisor or an emulator, which say nothing about theirs.
pub fn has_invariant_tsc() -> Option<bool> {
    let is_invariant = cpuid(CPUID_POWER).is_some_and(|leaf| leaf.edx & EDX_INVARIANT_TSC != 0);
    if is_invariant {
        Some(true)
    } else if is_virtual() {
        None
    } else {
        Some(false)
    }
}

/// Whether the local APIC timer goes on while the processor sleeps deeply.
pub fn has_lasting_timer() -> bool {
    cpuid(CPUID_THERMAL).is_some_and(|leaf| leaf.eax & EAX_LASTING_TIMER != 0)
}

/// Switches to the address space whose root is at the physical address `root`, and forgets every
/// translation, since none is global.
///
/// # Safety
/// `root` is a PML4 whose slot 511 maps the kernel as the present one does.
pub unsafe fn set_root(root: u64) {
    // SAFETY: the caller's. Not `nomem`: accesses to memory stay on their side of the switch.
    unsafe { asm!("mov cr3, {}", in(reg) root, options(nostack, preserves_flags)) }
}

/// Forgets every translation of users, and every cached paging structure.
pub fn forget_translations() {
    let root: u64;
    // SAFETY: reading has no effect.
    unsafe { asm!("mov {}, cr3", out(reg) root, options(nomem, nostack, preserves_flags)) }
    // SAFETY: the root in use.
    unsafe { set_root(root) }
}

/// Address whose access raised the page fault that is being handled.
pub fn fault_address() -> u64 {
    let address: u64;
    // SAFETY: reading has no effect.
    unsafe {
        asm!("mov {}, cr2", out(reg) address, options(nomem, nostack, preserves_flags));
    }
    address
}

/// The code of a page fault as users are told it (05, section 2.5): that an instruction was fetched is
/// told if the processor says so for SMEP, not if it does for the kernel's pages without execution.
pub fn page_fault_code(code: u32) -> u32 {
    if cr4() & CR4_SMEP != 0 {
        code
    } else {
        code & !FAULT_FETCH
    }
}

/// Whether instructions can use the FPU.
pub fn fpu_is_enabled() -> bool {
    cr0() & CR0_TS == 0
}

/// Lets instructions use the FPU, or makes them raise exception 7.
pub fn set_fpu_enabled(enabled: bool) {
    // SAFETY: the kernel itself has no FPU instructions but those that store and load its registers, which the machine
    // only uses with the FPU enabled.
    unsafe {
        if enabled {
            asm!("clts", options(nomem, nostack, preserves_flags));
        } else {
            set_cr0(cr0() | CR0_TS);
        }
    }
}

/// Has the processor watch what DR0 to DR3, here `addresses`, and DR7, `control`, say, and forget what it has seen.
///
/// # Safety
/// The kernel executes nothing there, and accesses nothing there.
#[cfg(feature = "hardware-debug")]
pub unsafe fn watch(addresses: [u64; 4], control: u64) {
    let [first, second, third, fourth] = addresses;
    // SAFETY: the caller's: no exception is raised inside the kernel.
    unsafe {
        asm!("mov dr0, {}", in(reg) first, options(nomem, nostack, preserves_flags));
        asm!("mov dr1, {}", in(reg) second, options(nomem, nostack, preserves_flags));
        asm!("mov dr2, {}", in(reg) third, options(nomem, nostack, preserves_flags));
        asm!("mov dr3, {}", in(reg) fourth, options(nomem, nostack, preserves_flags));
        asm!("mov dr6, {}", in(reg) DR6_CLEAN, options(nomem, nostack, preserves_flags));
        asm!("mov dr7, {}", in(reg) control | DR7_OFF, options(nomem, nostack, preserves_flags));
    }
}

/// Has the processor watch nothing.
#[cfg(feature = "hardware-debug")]
pub fn watch_nothing() {
    // SAFETY: nothing raises an exception by it.
    unsafe { asm!("mov dr7, {}", in(reg) DR7_OFF, options(nomem, nostack, preserves_flags)) }
}

/// Why the last debug exceptions were raised, as DR6 has it; the processor forgets it.
#[cfg(feature = "hardware-debug")]
pub fn take_debug_status() -> u64 {
    let status: u64;
    // SAFETY: neither has an effect but this.
    unsafe {
        asm!("mov {}, dr6", out(reg) status, options(nomem, nostack, preserves_flags));
        asm!("mov dr6, {}", in(reg) DR6_CLEAN, options(nomem, nostack, preserves_flags));
    }
    status
}

/// Reads an I/O port.
///
/// # Safety
/// Reading the port has no effect on memory that Rust knows of.
pub unsafe fn in8(port: u16) -> u8 {
    let value;
    // SAFETY: the caller's; the same for the five below.
    unsafe {
        asm!("in al, dx", in("dx") port, out("al") value, options(nostack, preserves_flags));
    }
    value
}

/// As [`in8`].
///
/// # Safety
/// As [`in8`].
pub unsafe fn in16(port: u16) -> u16 {
    let value;
    // SAFETY: see `in8`.
    unsafe {
        asm!("in ax, dx", in("dx") port, out("ax") value, options(nostack, preserves_flags));
    }
    value
}

/// As [`in8`].
///
/// # Safety
/// As [`in8`].
pub unsafe fn in32(port: u16) -> u32 {
    let value;
    // SAFETY: see `in8`.
    unsafe {
        asm!("in eax, dx", in("dx") port, out("eax") value, options(nostack, preserves_flags));
    }
    value
}

/// Writes an I/O port.
///
/// # Safety
/// As [`in8`].
pub unsafe fn out8(port: u16, value: u8) {
    // SAFETY: see `in8`.
    unsafe {
        asm!("out dx, al", in("dx") port, in("al") value, options(nostack, preserves_flags));
    }
}

/// As [`out8`].
///
/// # Safety
/// As [`in8`].
pub unsafe fn out16(port: u16, value: u16) {
    // SAFETY: see `in8`.
    unsafe {
        asm!("out dx, ax", in("dx") port, in("ax") value, options(nostack, preserves_flags));
    }
}

/// As [`out8`].
///
/// # Safety
/// As [`in8`].
pub unsafe fn out32(port: u16, value: u32) {
    // SAFETY: see `in8`.
    unsafe {
        asm!("out dx, eax", in("dx") port, in("eax") value, options(nostack, preserves_flags));
    }
}

/// Waits for interrupts. They are taken by the entry code, which does not come back here; the
/// loop is for those that it ignores.
pub fn idle() -> ! {
    loop {
        // SAFETY: nothing that the kernel borrowed is in use any more: its caller has nothing
        // left to do. STI takes effect after the next instruction, so no interrupt slips in
        // before HLT.
        unsafe { asm!("sti", "hlt", "cli", options(nomem, nostack)) }
    }
}

/// Stops for good.
pub fn stop() -> ! {
    loop {
        // SAFETY: nothing runs any more.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) }
    }
}

/// Brings the processor's registers into the kernel's state, whatever firmware and loader left in
/// them: supervisor writes respect read-only pages, no global pages, FSGSBASE and XSAVE as the profile has
/// them, no RDPMC, SSE exceptions as #UD, no SYSENTER, no breakpoints. `docs/src/reference/machine-state.md` has all.
pub fn init() {
    // SAFETY: long mode stays on, paging with it; what changes concerns user code, caching, and
    // kernel accesses that do not happen. All these registers come with long mode, but for those
    // that are asked for.
    unsafe {
        set_cr0(CR0);
        let cr4 = kernel_cr4();
        if cr4 & CR4_MCE != 0 {
            machine_check::init();
        }
        set_cr4(cr4);
        if let Some(features) = XSAVE_FEATURES.filter(|_| has_xsave()) {
            asm!("xsetbv", in("ecx") 0, in("eax") features as u32, in("edx") 0,
                 options(nomem, nostack, preserves_flags));
        }
        write_msr(Msr::Efer, efer());
        write_msr(Msr::Pat, PAT);
        // Without a code segment, SYSENTER is a protection fault.
        write_msr(Msr::SysenterCs, 0);
        write_msr(Msr::SysenterEsp, 0);
        write_msr(Msr::SysenterEip, 0);
        write_msr(Msr::FsBase, 0);
        write_msr(Msr::GsBase, 0);
        write_msr(Msr::KernelGsBase, 0);
        if cpuid(CPUID_EXTENDED_FEATURES).is_some_and(|leaf| leaf.edx & EDX_RDTSCP != 0) {
            write_msr(Msr::TscAux, 0);
        }
        asm!("mov dr7, {off}", "mov dr0, {zero}", "mov dr1, {zero}", "mov dr2, {zero}", "mov dr3, {zero}",
             off = in(reg) DR7_OFF, zero = in(reg) 0_u64, options(nomem, nostack, preserves_flags));
    }
}

fn cr0() -> u64 {
    let value: u64;
    // SAFETY: reading has no effect.
    unsafe {
        asm!("mov {}, cr0", out(reg) value, options(nomem, nostack, preserves_flags));
    }
    value
}

fn cr4() -> u64 {
    let value: u64;
    // SAFETY: reading has no effect.
    unsafe {
        asm!("mov {}, cr4", out(reg) value, options(nomem, nostack, preserves_flags));
    }
    value
}

/// # Safety
/// `value` keeps paging, protection and long mode as they are.
unsafe fn set_cr0(value: u64) {
    // SAFETY: the caller's. Not `nomem`: write protection and caching concern memory.
    unsafe { asm!("mov cr0, {}", in(reg) value, options(nostack, preserves_flags)) }
}

/// # Safety
/// `value` keeps PAE and names only features that the processor has.
unsafe fn set_cr4(value: u64) {
    // SAFETY: the caller's. Not `nomem`: paging features concern memory.
    unsafe { asm!("mov cr4, {}", in(reg) value, options(nostack, preserves_flags)) }
}
