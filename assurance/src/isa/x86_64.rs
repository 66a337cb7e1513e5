//! x86_64.

use std::collections::BTreeSet;

use fastrand::Rng;
use sandglass_abi::boot::slot;
use sandglass_abi::invocation as common;
use sandglass_abi::invocation::x86_64 as arch;
use sandglass_abi::object::x86_64 as arch_types;
use sandglass_kernel::arch::abi::pte;
use sandglass_kernel::arch::abi::{Devices as _, Exception, Line, Mapping};
use sandglass_kernel::cap::Capability;
use sandglass_kernel::mem::Kind as KernelKind;
use sandglass_kernel::Kernel;
use sandglass_model::isa::IrqNumber;
use sandglass_model::state::{Cap, Devices, Entry, FrameRights, Irq, Level, TableId};

use crate::abstraction::caps::{address, mapping};
use crate::census::Census;
use crate::generator::{Arguments, Generator, View};
use crate::invariants::{require, Finding};
use crate::operations::{operation, Ends, Kind, Operation};
use crate::script::Action;

/// The kernel's kind of root tables.
pub const ROOT_TABLE: KernelKind = KernelKind::Pml4;

/// Objects that Retype makes here.
pub const ARCH_TYPES: [u64; 7] = [
    arch_types::PDPT,
    arch_types::PML4,
    arch_types::PAGE,
    arch_types::PAGE_TABLE,
    arch_types::PAGE_DIRECTORY,
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
        Error,
        2,
    )]
};

/// Tables.
pub const TABLES: &[Operation] = {
    use Ends::*;
    &[
        operation(Kind::Pdpt, arch::PDPT_MAP, "PDPT_Map", Both, 14),
        operation(Kind::Pdpt, arch::PDPT_UNMAP, "PDPT_Unmap", Both, 8),
        operation(
            Kind::PageDirectory,
            arch::PAGE_DIRECTORY_MAP,
            "PageDirectory_Map",
            Both,
            14,
        ),
        operation(
            Kind::PageDirectory,
            arch::PAGE_DIRECTORY_UNMAP,
            "PageDirectory_Unmap",
            Both,
            8,
        ),
        operation(
            Kind::PageTable,
            arch::PAGE_TABLE_MAP,
            "PageTable_Map",
            Both,
            14,
        ),
        operation(
            Kind::PageTable,
            arch::PAGE_TABLE_UNMAP,
            "PageTable_Unmap",
            Both,
            8,
        ),
    ]
};

/// Devices.
pub const DEVICES: &[Operation] = {
    use Ends::*;
    &[
        operation(
            Kind::IoPortControl,
            arch::IO_PORT_CONTROL_ISSUE,
            "IOPortControl_Issue",
            Both,
            5,
        ),
        operation(Kind::IoPort, arch::IO_PORT_IN8, "IOPort_In8", Both, 4),
        operation(Kind::IoPort, arch::IO_PORT_IN16, "IOPort_In16", Both, 4),
        operation(Kind::IoPort, arch::IO_PORT_IN32, "IOPort_In32", Both, 4),
        operation(Kind::IoPort, arch::IO_PORT_OUT8, "IOPort_Out8", Both, 4),
        operation(Kind::IoPort, arch::IO_PORT_OUT16, "IOPort_Out16", Both, 4),
        operation(Kind::IoPort, arch::IO_PORT_OUT32, "IOPort_Out32", Both, 4),
        operation(
            Kind::IrqControl,
            arch::IRQ_CONTROL_GET_IOAPIC,
            "IRQControl_GetIOAPIC",
            Both,
            6,
        ),
        operation(
            Kind::IrqControl,
            arch::IRQ_CONTROL_GET_MSI,
            "IRQControl_GetMSI",
            Both,
            5,
        ),
    ]
};

/// The level of a paging structure.
pub fn level(kind: KernelKind) -> Option<Level> {
    Some(match kind {
        KernelKind::PageTable => Level::PageTable,
        KernelKind::PageDirectory => Level::PageDirectory,
        KernelKind::Pdpt => Level::Pdpt,
        KernelKind::Pml4 => Level::Pml4,
        _ => return None,
    })
}

/// The level that the table at `level` has by itself: its own.
pub fn level_of_table(level: Level) -> Level {
    level
}

/// Where the paging structure that `cap` names is mapped.
pub fn table_mapping(cap: Capability) -> Option<Mapping> {
    cap.paging()?.mapping
}

/// What tells the capabilities of these kinds apart.
pub fn name(cap: Capability) -> Option<u64> {
    Some(match cap.io_ports() {
        Some(ports) => u64::from(ports.first) << 16 | u64::from(ports.last),
        None => address(cap),
    })
}

/// Whether other things are issued by capabilities of `kind`.
pub fn is_control(kind: KernelKind) -> bool {
    kind == KernelKind::IoPortControl
}

/// `cap`, one of this architecture's, in the specification's words.
pub fn capability(cap: Capability) -> Option<Cap> {
    Some(match cap.kind() {
        KernelKind::PageTable | KernelKind::PageDirectory | KernelKind::Pdpt => Cap::Paging {
            object: TableId(address(cap)),
            level: level(cap.kind())?,
            mapping: cap.paging()?.mapping.map(mapping),
        },
        KernelKind::Pml4 => Cap::Root {
            object: TableId(address(cap)),
            asid: cap.root_asid(),
        },
        KernelKind::IoPortControl => Cap::IoPortControl,
        KernelKind::IoPort => {
            let ports = cap.io_ports()?;
            Cap::IoPort {
                first: ports.first,
                last: ports.last,
            }
        }
        kind => unreachable!("the kind {kind:?}"),
    })
}

/// The ranges of ports that were issued. The kernel has a mark for each port; that these say the
/// same as the capabilities is an invariant.
pub fn ports(census: &Census) -> BTreeSet<(u16, u16)> {
    let ports = census
        .sites
        .iter()
        .filter_map(|site| site.view.cap.io_ports());
    ports.map(|ports| (ports.first, ports.last)).collect()
}

/// Where an interrupt comes from.
pub fn irq(line: Line) -> Irq {
    match line {
        Line::IoApic {
            ioapic,
            pin,
            level,
            active_low,
        } => Irq::Pin {
            ioapic,
            pin,
            level,
            active_low,
        },
        Line::Msi => Irq::Message,
    }
}

/// What the kernel has done to devices.
pub fn devices(k: &Kernel) -> Devices {
    let ioapics = (0..k.machine.ioapics()).map(|i| k.machine.ioapic_pins(i));
    let routes = k.machine.routes().into_iter().filter_map(|(irq, line)| {
        let Line::IoApic { ioapic, pin, .. } = line else {
            return None;
        };
        Some(((ioapic, pin), irq))
    });
    Devices {
        ioapics: ioapics.collect(),
        routes: routes.collect(),
        masked: k
            .machine
            .masked_pins()
            .into_iter()
            .map(|pin| (0, pin))
            .collect(),
        ports: k.machine.ports(),
        sgi: None,
    }
}

/// The kernel's name of a level.
fn kernel_level(level: Level) -> pte::Level {
    match level {
        Level::PageTable => pte::Level::PAGE_TABLE,
        Level::PageDirectory => pte::Level::PAGE_DIRECTORY,
        Level::Pdpt => pte::Level::PDPT,
        Level::Pml4 => pte::Level::PML4,
    }
}

/// What the raw entry of a table of `level` says.
pub fn entry(level: Level, raw: u64) -> Option<Entry> {
    const WRITE: u64 = 1 << 1;
    const USER: u64 = 1 << 2;
    const CACHE_SHIFT: u32 = 3;
    let cache = (raw >> CACHE_SHIFT & 3) as u8;
    match pte::decode(kernel_level(level), raw) {
        pte::Entry::Absent => None,
        pte::Entry::Table(table) => Some(Entry::Table {
            table: TableId(table),
            attributes: cache,
        }),
        pte::Entry::Page(start) => {
            let pat = match level {
                Level::PageTable => raw >> 7 & 1,
                Level::PageDirectory => raw >> 12 & 1,
                _ => 0,
            };
            let rights = match (raw & USER != 0, raw & WRITE != 0) {
                (false, _) => FrameRights::KernelOnly,
                (true, false) => FrameRights::ReadOnly,
                (true, true) => FrameRights::ReadWrite,
            };
            Some(Entry::Page {
                start,
                rights,
                attributes: cache | (pat as u8) << 2,
            })
        }
    }
}

/// A port is marked as issued exactly if some capability covers it.
pub fn issued_devices_are_as_capabilities_say(census: &Census) -> Finding {
    require!(
        census.k.arch.ports.is_consistent(),
        "a word of ports has bits and is not said to, or has none"
    );
    let mut covered = vec![0u64; 1 << 10];
    for ports in census
        .sites
        .iter()
        .filter_map(|site| site.view.cap.io_ports())
    {
        for port in ports.first..=ports.last {
            covered[usize::from(port / 64)] |= 1 << (port % 64);
        }
    }
    for (i, &covered) in covered.iter().enumerate() {
        let marked = census.k.arch.ports.inspect(i).unwrap_or(0);
        require!(
            marked == covered,
            "of the ports from {} on {marked:#x} are issued, but {covered:#x} have capabilities",
            i * 64
        );
    }
    Ok(())
}

/// Capabilities of which there is one in the world: of a table, and of a root; and one of a device with a second word that
/// no such capability has. For tests of damaged kernels.
pub const DAMAGED: (KernelKind, KernelKind, (KernelKind, u64)) = (
    KernelKind::PageDirectory,
    KernelKind::Pml4,
    (KernelKind::IoPort, 0x10_0000),
);

/// The kernel's events.
pub fn software_interrupt(vector: u8) -> Exception {
    Exception::SoftwareInterrupt { vector }
}

pub fn exception(number: u32, code: u32) -> Exception {
    Exception::Other { number, code }
}

pub fn page_fault(address: u64, code: u32) -> Exception {
    Exception::PageFault { address, code }
}

/// An event that only this architecture has.
pub fn odd_event(rng: &mut Rng) -> Action {
    Action::SoftwareInterrupt(rng.u8(..))
}

pub fn exception_event(rng: &mut Rng) -> Action {
    Action::Exception(rng.u32(0..32), rng.u32(..))
}

pub fn fault_code(rng: &mut Rng) -> u32 {
    rng.u32(0..64)
}

pub fn any_irq(rng: &mut Rng) -> IrqNumber {
    rng.u8(16..124)
}

/// Whether the operation of a frame is about caches.
pub fn maintains(_label: u64) -> bool {
    false
}

/// How the world's interrupt `i` is asked for, with its handler in `handler`.
pub fn get_irq(i: u64, vector: u64, handler: u64) -> (u64, Vec<u64>) {
    let words = vec![handler, 64, 0, i + 4, i % 2, 0, vector];
    let get = if vector == 40 {
        arch::IRQ_CONTROL_GET_MSI
    } else {
        arch::IRQ_CONTROL_GET_IOAPIC
    };
    (get, words)
}

/// How the world's device `n` is asked for, into `slot`: of which capability, by which label.
pub fn issue_device(n: usize, slot: u64) -> (u64, Option<u64>, Vec<u64>) {
    let (first, last) = [(0x3f8, 0x3ff), (0x60, 0x64)][n];
    let words = vec![first, last, slot, 64];
    (
        slot::IO_PORT_CONTROL,
        Some(arch::IO_PORT_CONTROL_ISSUE),
        words,
    )
}

impl Generator {
    /// Arguments of an operation of this architecture's.
    pub(crate) fn arch_arguments(
        &mut self,
        view: &View,
        kind: Kind,
        cptr: u64,
    ) -> Option<Arguments> {
        match kind {
            Kind::IoPortControl => {
                let (node, index, depth) = self.empty_slot(view)?;
                let first = self.rng.u64(0..0x400);
                let last = first + self.rng.u64(0..16);
                Some((vec![first, last, index, depth], vec![node]))
            }
            Kind::IoPort => {
                let ports = view.entries.iter().find(|entry| entry.cptr == cptr)?;
                let Cap::IoPort { first, last } = ports.cap else {
                    return None;
                };
                let port = self.rng.u64(u64::from(first)..=u64::from(last) + 1);
                Some((vec![port, self.rng.u64(..)], vec![]))
            }
            _ => None,
        }
    }

    pub(crate) fn irq_control(&mut self, view: &View, label: u64) -> Option<Arguments> {
        let (node, index, depth) = self.empty_slot(view)?;
        let vector = self.rng.u64(0..108);
        let words = match label {
            common::IRQ_CONTROL_GET => vec![vector, index, depth],
            arch::IRQ_CONTROL_GET_IOAPIC => {
                let (pin, level) = (self.rng.u64(0..24), self.rng.u64(0..2));
                vec![index, depth, 0, pin, level, self.rng.u64(0..2), vector]
            }
            _ => {
                let bus = [
                    self.rng.u64(0..256),
                    self.rng.u64(0..32),
                    self.rng.u64(0..8),
                ];
                vec![index, depth, bus[0], bus[1], bus[2], 0, vector]
            }
        };
        Some((words, vec![node]))
    }
}
