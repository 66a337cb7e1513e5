//! aarch64.

use std::collections::BTreeSet;

use fastrand::Rng;
use sandglass_abi::boot::slot;
use sandglass_abi::invocation as common;
use sandglass_abi::invocation::aarch64 as arch;
use sandglass_abi::object::aarch64 as arch_types;
use sandglass_abi::vspace::aarch64::{FIRST_SPI, MAX_IRQ, MAX_SGI_TARGET_GICV2, SGIS};
use sandglass_kernel::arch::abi::devices::Trigger;
use sandglass_kernel::arch::abi::pte;
use sandglass_kernel::arch::abi::{Exception, Line, Mapping};
use sandglass_kernel::cap::Capability;
use sandglass_kernel::mem::Kind as KernelKind;
use sandglass_kernel::{Kernel, CORES};
use sandglass_model::isa::IrqNumber;
use sandglass_model::state::{Cap, Devices, Entry, FrameRights, Irq, Level, TableId};

use crate::abstraction::caps::{address, mapping};
use crate::census::Census;
use crate::generator::{Arguments, Generator, View, ADDRESSES};
use crate::invariants::{require, Finding};
use crate::operations::{operation, Ends, Kind, Operation};
use crate::script::Action;

/// The kernel's kind of root tables.
pub const ROOT_TABLE: KernelKind = KernelKind::VSpace;

/// Objects that Retype makes here.
pub const ARCH_TYPES: [u64; 7] = [
    arch_types::PAGE_TABLE,
    arch_types::VSPACE,
    arch_types::SMALL_PAGE,
    arch_types::PAGE_TABLE,
    arch_types::PAGE_TABLE,
    arch_types::LARGE_PAGE,
    arch_types::HUGE_PAGE,
];

/// Operations that other architectures do not have, or have in another way: an interrupt by its number.
pub const IRQ_CONTROL: &[Operation] = {
    use Ends::*;
    &[operation(
        Kind::IrqControl,
        common::IRQ_CONTROL_GET,
        "IRQControl_Get",
        Both,
        4,
    )]
};

/// Tables.
pub const TABLES: &[Operation] = {
    use Ends::*;
    &[
        operation(
            Kind::PageTable,
            arch::PAGE_TABLE_MAP,
            "PageTable_Map",
            Both,
            36,
        ),
        operation(
            Kind::PageTable,
            arch::PAGE_TABLE_UNMAP,
            "PageTable_Unmap",
            Both,
            16,
        ),
        operation(
            Kind::Root,
            arch::VSPACE_CLEAN_DATA,
            "VSpace_Clean_Data",
            Both,
            4,
        ),
        operation(
            Kind::Root,
            arch::VSPACE_INVALIDATE_DATA,
            "VSpace_Invalidate_Data",
            Both,
            4,
        ),
        operation(
            Kind::Root,
            arch::VSPACE_CLEAN_INVALIDATE_DATA,
            "VSpace_CleanInvalidate_Data",
            Both,
            4,
        ),
        operation(
            Kind::Root,
            arch::VSPACE_UNIFY_INSTRUCTION,
            "VSpace_Unify_Instruction",
            Both,
            4,
        ),
    ]
};

/// Devices, and caches for frames.
pub const DEVICES: &[Operation] = {
    use Ends::*;
    &[
        operation(
            Kind::Frame,
            arch::PAGE_CLEAN_DATA,
            "Page_Clean_Data",
            Both,
            4,
        ),
        operation(
            Kind::Frame,
            arch::PAGE_INVALIDATE_DATA,
            "Page_Invalidate_Data",
            Both,
            4,
        ),
        operation(
            Kind::Frame,
            arch::PAGE_CLEAN_INVALIDATE_DATA,
            "Page_CleanInvalidate_Data",
            Both,
            4,
        ),
        operation(
            Kind::Frame,
            arch::PAGE_UNIFY_INSTRUCTION,
            "Page_Unify_Instruction",
            Both,
            4,
        ),
        operation(
            Kind::IrqControl,
            arch::IRQ_CONTROL_GET_TRIGGER,
            "IRQControl_GetTrigger",
            Both,
            6,
        ),
        // The other label is the same number.
        if CORES > 1 {
            operation(
                Kind::IrqControl,
                arch::IRQ_CONTROL_GET_TRIGGER_CORE,
                "IRQControl_GetTriggerCore",
                Both,
                6,
            )
        } else {
            operation(
                Kind::IrqControl,
                arch::IRQ_CONTROL_ISSUE_SGI_SIGNAL,
                "IRQControl_IssueSGISignal",
                Both,
                6,
            )
        },
    ]
};

/// The level that a paging structure has by its kind: all below the root have one kind.
pub fn level(kind: KernelKind) -> Option<Level> {
    Some(match kind {
        KernelKind::PageTable => Level::PageTable,
        KernelKind::VSpace => Level::Pml4,
        _ => return None,
    })
}

/// The level that the table at `level` has by its kind.
pub fn level_of_table(level: Level) -> Level {
    match level {
        Level::Pml4 => Level::Pml4,
        _ => Level::PageTable,
    }
}

/// Where the paging structure that `cap` names is mapped.
pub fn table_mapping(cap: Capability) -> Option<Mapping> {
    cap.table_mapping()
}

/// What tells the capabilities of these kinds apart; those of signals need not be neighbours.
pub fn name(cap: Capability) -> Option<u64> {
    match cap.sgi() {
        Some(_) => None,
        None => Some(address(cap)),
    }
}

/// Whether other things are issued by capabilities of `kind`.
pub fn is_control(_: KernelKind) -> bool {
    false
}

/// `cap`, one of this architecture's, in the specification's words.
pub fn capability(cap: Capability) -> Option<Cap> {
    Some(match cap.kind() {
        KernelKind::PageTable => Cap::Paging {
            object: TableId(address(cap)),
            level: Level::PageTable,
            mapping: cap.table_mapping().map(mapping),
        },
        KernelKind::VSpace => Cap::Root {
            object: TableId(address(cap)),
            asid: cap.root_asid(),
        },
        KernelKind::SgiSignal => {
            let sgi = cap.sgi()?;
            Cap::SgiSignal {
                sgi: sgi.number,
                target: sgi.target,
            }
        }
        kind => unreachable!("the kind {kind:?}"),
    })
}

/// There are no I/O ports.
pub fn ports(_: &Census) -> BTreeSet<(u16, u16)> {
    BTreeSet::new()
}

/// Where an interrupt comes from.
pub fn irq(line: Line) -> Irq {
    Irq::Gic {
        id: line.id,
        core: line.core.index() as u8,
        edge: line.trigger.map(|trigger| trigger == Trigger::Edge),
    }
}

/// What the kernel has done to devices.
pub fn devices(k: &Kernel) -> Devices {
    let routes = k.machine.routes().into_keys().map(|irq| (irq, irq));
    Devices {
        routes: routes.collect(),
        masked: k.machine.masked(),
        sgi: k.machine.last_sgi(),
        ..Devices::default()
    }
}

/// What the raw entry of a table says, of whatever level.
pub fn entry(_: Level, raw: u64) -> Option<Entry> {
    match pte::decode(raw) {
        pte::Entry::Absent => None,
        pte::Entry::Table(table) => Some(Entry::Table {
            table: TableId(table),
            attributes: 0,
        }),
        pte::Entry::Page(page) => {
            let rights = match raw >> 6 & 0b11 {
                0b01 => FrameRights::ReadWrite,
                0b11 => FrameRights::ReadOnly,
                _ => FrameRights::KernelOnly,
            };
            let (cacheable, never) = (raw >> 2 & 1, raw >> 54 & 1);
            Some(Entry::Page {
                start: page.start,
                rights,
                attributes: (cacheable | never << 2) as u8,
            })
        }
    }
}

/// What a capability may raise is an interrupt that software generates, at a target that the controller knows; a kernel for
/// several cores needs them all (03, section 7.5).
pub fn issued_devices_are_as_capabilities_say(census: &Census) -> Finding {
    for site in &census.sites {
        let Some(sgi) = site.view.cap.sgi() else {
            continue;
        };
        require!(
            CORES == 1
                && u64::from(sgi.number) < SGIS
                && u64::from(sgi.target) <= MAX_SGI_TARGET_GICV2,
            "{:?} is to {sgi:?}",
            site.id
        );
    }
    Ok(())
}

/// Capabilities of which there is one in the world: of a table, and of a root; and one of a device with a second word that
/// no such capability has. For tests of damaged kernels.
pub const DAMAGED: (KernelKind, KernelKind, (KernelKind, u64)) = (
    KernelKind::PageTable,
    KernelKind::VSpace,
    (KernelKind::SgiSignal, 0x10),
);

/// The kernel's events; software interrupts are none of this architecture's.
pub fn software_interrupt(vector: u8) -> Exception {
    Exception::Other {
        status: u32::from(vector),
    }
}

pub fn exception(number: u32, _: u32) -> Exception {
    Exception::Other { status: number }
}

pub fn page_fault(address: u64, code: u32) -> Exception {
    const INSTRUCTION_ABORT: u32 = 0x20;
    match code >> 26 {
        INSTRUCTION_ABORT => Exception::InstructionAbort { status: code },
        _ => Exception::DataAbort {
            address,
            status: code,
        },
    }
}

/// An event that only this architecture has: an instruction abort.
pub fn odd_event(rng: &mut Rng) -> Action {
    Action::PageFault(rng.u64(..), 0x8200_0000 | rng.u32(0..64))
}

pub fn exception_event(rng: &mut Rng) -> Action {
    Action::Exception(rng.u32(0..64) << 26 | rng.u32(0..0x10000), 0)
}

pub fn fault_code(rng: &mut Rng) -> u32 {
    0x9200_0000 | rng.u32(0..128)
}

pub fn any_irq(rng: &mut Rng) -> IrqNumber {
    rng.u16(0..160)
}

/// Whether the operation of a frame is about caches.
pub fn maintains(label: u64) -> bool {
    (arch::PAGE_CLEAN_DATA..=arch::PAGE_UNIFY_INSTRUCTION).contains(&label)
}

/// How the world's interrupt `i` is asked for, with its handler in `handler`.
pub fn get_irq(i: u64, number: u64, handler: u64) -> (u64, Vec<u64>) {
    let id = FIRST_SPI + number;
    match i {
        2 => (common::IRQ_CONTROL_GET, vec![id, handler, 64]),
        _ => (arch::IRQ_CONTROL_GET_TRIGGER, vec![id, i, handler, 64]),
    }
}

/// How the world's device `n` is asked for, into `slot`: of which capability, by which label.
pub fn issue_device(n: usize, slot: u64) -> (u64, Option<u64>, Vec<u64>) {
    let issue = (CORES == 1).then_some(arch::IRQ_CONTROL_ISSUE_SGI_SIGNAL);
    (slot::IRQ_CONTROL, issue, vec![3, n as u64, slot, 64])
}

impl Generator {
    /// Arguments of an operation of this architecture's.
    pub(crate) fn arch_arguments(
        &mut self,
        view: &View,
        kind: Kind,
        cptr: u64,
    ) -> Option<Arguments> {
        if kind != Kind::Root {
            return None;
        }
        let entry = view.entries.iter().find(|entry| entry.cptr == cptr)?;
        let Cap::Root { asid, .. } = entry.cap else {
            return None;
        };
        // Where something is mapped, if anything is.
        let mapped: Vec<u64> = view
            .entries
            .iter()
            .filter_map(|entry| match entry.cap {
                Cap::Frame {
                    mapping: Some(mapping),
                    ..
                } if Some(mapping.asid) == asid => Some(mapping.vaddr),
                _ => None,
            })
            .collect();
        let at = if self.chance(80) {
            self.choose(&mapped)
        } else {
            self.choose(&ADDRESSES)
        };
        let start = at? + self.rng.u64(0..4096);
        let end = if self.chance(90) {
            start + self.rng.u64(0..2048)
        } else {
            self.edge()
        };
        Some((vec![start, end], vec![]))
    }

    pub(crate) fn irq_control(&mut self, view: &View, label: u64) -> Option<Arguments> {
        let (node, index, depth) = self.empty_slot(view)?;
        let id = self.rng.u64(0..MAX_IRQ + 4);
        let words = match label {
            common::IRQ_CONTROL_GET => vec![id, index, depth],
            arch::IRQ_CONTROL_GET_TRIGGER => vec![id, self.rng.u64(0..2), index, depth],
            _ if CORES > 1 => {
                let core = self.rng.u64(0..CORES as u64 + 1);
                vec![id, self.rng.u64(0..2), index, depth, core]
            }
            _ => vec![self.rng.u64(0..17), self.rng.u64(0..9), index, depth],
        };
        Some((words, vec![node]))
    }
}
