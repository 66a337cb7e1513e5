//! What a core does against speculation, if the build asks for any of it: read from the processor at the core's start, kept
//! where entry and exit find it, and set where once is enough.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

use super::core_data::CoreData;
use super::cpu::{
    self, cpuid, read_msr, write_msr, Msr, CPUID_FEATURES, CPUID_STRUCTURED_FEATURES, CPUID_VENDOR,
};
use super::speculation::{family, Asked, Plan, Processor, ASKED, EDX_CAPABILITIES};
use crate::arch::console::Console;
use crate::arch::Platform;
use crate::cores::CoreId;

/// EFER: automatic IBRS, of AMD.
const EFER_AUTOMATIC_IBRS: u64 = 1 << 21;

const CPUID_AMD_CONTROLS: u32 = 0x8000_0008;
const CPUID_AMD_MORE: u32 = 0x8000_0021;

/// EBX of the vendors' names: `Auth`enticAMD, `Hygo`nGenuine.
const AMD: [u32; 2] = [u32::from_le_bytes(*b"Auth"), u32::from_le_bytes(*b"Hygo")];

/// What entry and exit of one core do, and for whom they did it last.
#[repr(C)]
pub struct Barriers {
    /// Root of the address space whose user code ran last; 0 if there is none, or another may be in its place by now. Of
    /// its core, but for [`forget_root`].
    pub(in crate::arch::x86_64) last_root: AtomicU64,
    /// See `speculation`.
    pub(in crate::arch::x86_64) actions: Cell<u32>,
    pub(in crate::arch::x86_64) kernel_control: Cell<u32>,
    pub(in crate::arch::x86_64) user_control: Cell<u32>,
    /// What VERW is told: a segment that can be written.
    pub(in crate::arch::x86_64) segment: Cell<u16>,
}

impl Barriers {
    pub const fn new() -> Self {
        Barriers {
            last_root: AtomicU64::new(0),
            actions: Cell::new(0),
            kernel_control: Cell::new(0),
            user_control: Cell::new(0),
            segment: Cell::new(0),
        }
    }
}

/// Has `core`, which executes this, do what is asked for and there is. `segment` is the kernel's for data.
pub fn init(core: CoreId, segment: u16) {
    if !Asked::ANY {
        return;
    }
    let plan = plan();
    let barriers = &CoreData::of(core).barriers;
    barriers.actions.set(plan.actions);
    barriers.kernel_control.set(plan.kernel_control);
    barriers.user_control.set(plan.user_control);
    barriers.segment.set(segment);
    if Asked::CONTROL && plan.has_control {
        // SAFETY: the processor has the register, with the bits that are set.
        unsafe { write_msr(Msr::SpecCtrl, plan.kernel_control.into()) }
    }
    if plan.automatic {
        // SAFETY: the processor has the bit.
        unsafe { write_msr(Msr::Efer, cpu::efer() | EFER_AUTOMATIC_IBRS) }
    }
}

/// Says on the console what is asked for and not there.
pub fn report<P: Platform>(machine: &P) {
    if !Asked::ANY {
        return;
    }
    for name in plan().missing.0.into_iter().flatten() {
        Console::new(machine)
            .text("speculation: the processor has no ")
            .text(name)
            .text(", which the kernel was built for\n");
    }
}

/// A root table is made at the physical address `root`. Where one was before whose user code ran last on a core, that would
/// take the new address space for it, and do nothing at its next exit.
pub fn forget_root(root: u64) {
    if !Asked::AT_SWITCH {
        return;
    }
    for core in CoreId::all() {
        let last = &CoreData::of(core).barriers.last_root;
        // Relaxed: what was in the former one was stopped in an earlier turn of this core, or has left user code by itself
        // before that. The core may leave for another address space meanwhile: then it does what it does once more.
        if last.load(Ordering::Relaxed) == root {
            last.store(0, Ordering::Relaxed);
        }
    }
}

fn plan() -> Plan {
    let processor = if ASKED.assumed {
        Processor::ASSUMED
    } else {
        read()
    };
    processor.plan(&ASKED)
}

/// Whether user code may read, by speculation, what is mapped for the kernel alone.
pub fn leaks_what_is_mapped() -> bool {
    read().leaks_what_is_mapped()
}

/// What this processor says of itself.
fn read() -> Processor {
    let leaf =
        |number| cpuid(number).map_or([0; 4], |leaf| [leaf.eax, leaf.ebx, leaf.ecx, leaf.edx]);
    let [version, ..] = leaf(CPUID_FEATURES);
    let [_, features_ebx, _, features_edx] = leaf(CPUID_STRUCTURED_FEATURES);
    let [amd_eax21, _, amd_ecx21, _] = leaf(CPUID_AMD_MORE);
    let capabilities = if features_edx & EDX_CAPABILITIES != 0 {
        // SAFETY: the processor says that it has the register.
        unsafe { read_msr(Msr::Capabilities) }
    } else {
        0
    };
    Processor {
        is_amd: AMD.contains(&leaf(CPUID_VENDOR)[1]),
        family: family(version),
        features_ebx,
        features_edx,
        amd_ebx: leaf(CPUID_AMD_CONTROLS)[1],
        amd_eax21,
        amd_ecx21,
        capabilities,
    }
}
