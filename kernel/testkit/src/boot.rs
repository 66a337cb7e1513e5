//! A machine that has booted, and the root task that does nothing by itself.

use sandglass_kernel::arch::hosted::{self, Machine};
use sandglass_kernel::cap::Capability;
use sandglass_kernel::event::Next;
use sandglass_kernel::mem::objects::region::UntypedMemory;
use sandglass_kernel::mem::{Kind, Ref, Span};
use sandglass_kernel::object::tcb::Tcb;
use sandglass_kernel::Kernel;

use crate::isa;

/// Ticks in a microsecond: a machine of 1 GHz.
pub const US: u64 = 1000;

/// Where the root task is loaded, and where it would start.
const ENTRY: u64 = 0x40_0000;
const PAGE: u64 = 0x1000;

/// The smallest root task, an ELF file with a page of zeroes: what its thread does, whoever drives the
/// machine says.
pub fn root_task() -> Vec<u8> {
    const HEADER: u16 = 64;
    const PROGRAM_HEADER: u16 = 56;
    let header = [
        &b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"[..],
        &2u16.to_le_bytes(),
        &isa::ELF_MACHINE.to_le_bytes(),
        &1u32.to_le_bytes(),
        &ENTRY.to_le_bytes(),
        &u64::from(HEADER).to_le_bytes(),
        &0u64.to_le_bytes(),
        &0u32.to_le_bytes(),
        &HEADER.to_le_bytes(),
        &PROGRAM_HEADER.to_le_bytes(),
        &1u16.to_le_bytes(),
        &[0; 6],
    ];
    // A segment that is loaded, with all rights: no bytes of the file, a page of memory.
    let segment = [1u32, 7].map(u32::to_le_bytes).concat();
    let end = u64::from(HEADER + PROGRAM_HEADER);
    let numbers = [end, ENTRY, ENTRY, 0, PAGE, PAGE].map(u64::to_le_bytes);
    [header.concat(), segment, numbers.concat()].concat()
}

/// A kernel that has just booted on `machine`, and the root task's thread, which runs.
///
/// # Panics
/// If the kernel refuses the machine or the root task.
pub fn boot(machine: Machine) -> (Box<Kernel>, Ref<Tcb>) {
    match hosted::boot(machine, &root_task()) {
        Ok((k, Next::Thread(root))) => {
            let control = RootCNode::of(&k, root).cap(&k, isa::SCHED_CONTROL);
            assert!(control.is(Kind::SchedControl), "it is elsewhere");
            (k, root)
        }
        Ok((_, Next::Idle)) => panic!("the kernel has booted, but the root task does not run"),
        Err(refusal) => panic!("the kernel does not boot: {refusal:?}"),
    }
}

/// The CNode that the root task begins with.
#[derive(Clone, Copy)]
pub struct RootCNode(Span);

impl RootCNode {
    /// That of `root`.
    ///
    /// # Panics
    /// If it has none.
    pub fn of(k: &Kernel, root: Ref<Tcb>) -> Self {
        let cspace = sandglass_kernel::cap::lookup::cspace(k, root).cnode();
        let slots = cspace.and_then(|cnode| cnode.slots());
        RootCNode(slots.expect("the root task's CNode has slots"))
    }

    /// Number of its slots.
    pub fn length(self) -> u64 {
        self.0.length()
    }

    /// The capability in `slot`.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn cap(self, k: &Kernel, slot: u64) -> Capability {
        let found = self.0.slot(slot);
        let found = found.unwrap_or_else(|| panic!("slot {slot} of {}", self.length()));
        found.at(k).cap()
    }

    /// The slot behind the last one in use.
    pub fn first_free(self, k: &Kernel) -> u64 {
        let used = (0..self.length()).rfind(|&i| !self.cap(k, i).is_null());
        used.map_or(0, |last| last + 1)
    }

    /// Its untyped memory that is no device's, or is, with the slots: in their order.
    pub fn untyped(
        self,
        k: &Kernel,
        is_device: bool,
    ) -> impl Iterator<Item = (u64, UntypedMemory)> + '_ {
        (0..self.first_free(k)).filter_map(move |i| {
            let untyped = self.cap(k, i).untyped()?;
            (untyped.is_device() == is_device).then_some((i, untyped))
        })
    }

    /// The slot of its largest untyped memory, the last if there are several.
    ///
    /// # Panics
    /// If there is none.
    pub fn largest_untyped(self, k: &Kernel) -> u64 {
        let largest = self.untyped(k, false).max_by_key(|(_, u)| u.bits());
        largest.expect("the root task has untyped memory").0
    }
}
