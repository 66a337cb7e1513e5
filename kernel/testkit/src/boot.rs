//! A machine that has booted, and the root task that does nothing by itself.

use sandglass_kernel::arch::hosted::{self, Machine};
use sandglass_kernel::cap::Capability;
use sandglass_kernel::event::Next;
use sandglass_kernel::mem::objects::region::UntypedMemory;
use sandglass_kernel::mem::{Ref, Span};
use sandglass_kernel::object::tcb::Tcb;
use sandglass_kernel::Kernel;

/// Ticks in a microsecond: a machine of 1 GHz.
pub const US: u64 = 1000;

/// Where the root task is loaded, and where it would start.
const ENTRY: u64 = 0x40_0000;
const PAGE: u64 = 0x1000;

/// The ELF file of a root task with one page of zeroes: what its thread does, whoever drives the machine says.
pub fn root_task() -> Vec<u8> {
    let mut file = vec![0; 2 * PAGE as usize];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"\x7fELF\x02\x01\x01");
    // An executable for x86_64 with one program header, behind this one.
    for (at, half) in [(16, 2u16), (18, 62), (52, 64), (54, 56), (56, 1)] {
        put(at, &half.to_le_bytes());
    }
    put(20, &1u32.to_le_bytes());
    put(24, &ENTRY.to_le_bytes());
    put(32, &64u64.to_le_bytes());
    // A segment that is loaded: readable, writable and executable, the second page of the file.
    put(64, &1u32.to_le_bytes());
    put(68, &7u32.to_le_bytes());
    for (at, word) in [(72, PAGE), (80, ENTRY), (96, PAGE), (104, PAGE)] {
        put(at, &word.to_le_bytes());
    }
    file
}

/// A kernel that has just booted on `machine`, and the root task's thread, which runs.
///
/// # Panics
/// If the kernel refuses the machine or the root task.
pub fn boot(machine: Machine) -> (Box<Kernel>, Ref<Tcb>) {
    match hosted::boot(machine, &root_task()) {
        Ok((k, Next::Thread(root))) => (k, root),
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
