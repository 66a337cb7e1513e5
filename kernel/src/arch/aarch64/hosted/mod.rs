//! What the hosted machine has of one with a GIC, with translations that stay until they are forgotten, and with caches.

mod boot;
#[cfg(test)]
pub mod expected;

pub use boot::{firmware, DEVICE_TOP, RESERVED};

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

use sandglass_abi::vspace::aarch64::{MAX_IRQ, MAX_SGI_TARGET_GICV2};

use crate::arch::abi::devices::{Devices, Maintenance, MAINTENANCE_BYTES};
use crate::arch::abi::{Irq, Line, Space};
use crate::arch::hosted::Machine;
use crate::arch::PhysAddr;
use crate::cores::CoreId;

/// A step of cache maintenance, as the kernel asked for it.
pub type Maintained = (Maintenance, u64, u64);

/// The devices.
#[derive(Default)]
pub struct Board {
    routes: RefCell<BTreeMap<Irq, Line>>,
    masked: RefCell<BTreeSet<Irq>>,
    sgis: RefCell<Vec<(u8, u32)>>,
    last_sgi: Cell<Option<(u8, u32)>>,
    maintained: RefCell<Vec<Maintained>>,
    forgotten: RefCell<Vec<Forgotten>>,
    /// Bytes that were written back when they were zeroed.
    zeroed: Cell<u64>,
}

/// What every core was told to forget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forgotten {
    Page(u16, u64),
    Space(u16),
    All,
}

impl Board {
    pub(in crate::arch) fn zeroed(&self, _start: PhysAddr, bytes: u64) {
        self.zeroed.set(self.zeroed.get() + bytes);
    }

    pub(in crate::arch) fn route(&self, line: Line, irq: Irq) {
        self.routes.borrow_mut().insert(irq, line);
        self.set_masked(line, irq, false);
    }

    pub(in crate::arch) fn set_masked(&self, line: Line, irq: Irq, masked: bool) {
        if self.routes.borrow().get(&irq) != Some(&line) {
            return;
        }
        if masked {
            self.masked.borrow_mut().insert(irq);
        } else {
            self.masked.borrow_mut().remove(&irq);
        }
    }
}

impl Machine {
    /// The line that raises `irq`.
    pub fn route_of(&self, irq: Irq) -> Option<Line> {
        self.board.routes.borrow().get(&irq).copied()
    }

    /// Every line that is routed, with the interrupt that it raises.
    pub fn routes(&self) -> BTreeMap<Irq, Line> {
        self.board.routes.borrow().clone()
    }

    /// The interrupts that are masked.
    pub fn masked(&self) -> BTreeSet<Irq> {
        self.board.masked.borrow().clone()
    }

    /// Whether the interrupt is masked.
    pub fn is_masked(&self, irq: Irq) -> bool {
        self.board.masked.borrow().contains(&irq)
    }

    /// The software-generated interrupts that were raised, with their targets, since they were last taken.
    pub fn take_sgis(&self) -> Vec<(u8, u32)> {
        self.board.sgis.take()
    }

    /// The software-generated interrupt that was raised last, with its target.
    pub fn last_sgi(&self) -> Option<(u8, u32)> {
        self.board.last_sgi.get()
    }

    /// The steps of cache maintenance since they were last taken: what, from where, bytes.
    pub fn take_maintained(&self) -> Vec<Maintained> {
        self.board.maintained.take()
    }

    /// What every core was told to forget, since it was last taken.
    pub fn take_forgotten(&self) -> Vec<Forgotten> {
        self.board.forgotten.take()
    }

    /// All cores forget something.
    fn forget(&self, what: Forgotten) {
        for core in CoreId::all() {
            self.flush(core);
        }
        self.board.forgotten.borrow_mut().push(what);
    }
}

impl Devices for Machine {
    fn tables_written(&self) {}

    fn forget_page(&self, asid: u16, vaddr: u64) {
        self.forget(Forgotten::Page(asid, vaddr));
    }

    fn forget_space(&self, asid: u16) {
        self.forget(Forgotten::Space(asid));
    }

    fn forget_spaces(&self) {
        self.forget(Forgotten::All);
    }

    fn maintain(&self, what: Maintenance, start: PhysAddr, bytes: u64) {
        assert!(bytes <= MAINTENANCE_BYTES, "{bytes} bytes in a step");
        let maintained = (what, start.get(), bytes);
        self.board.maintained.borrow_mut().push(maintained);
    }

    fn max_irq(&self) -> u64 {
        MAX_IRQ
    }

    fn max_sgi_target(&self) -> u64 {
        MAX_SGI_TARGET_GICV2
    }

    fn raise_sgi(&self, sgi: u8, target: u32) {
        self.board.last_sgi.set(Some((sgi, target)));
        self.board.sgis.borrow_mut().push((sgi, target));
    }

    fn signal(&self, core: CoreId, sgi: u8) {
        self.raise_sgi(sgi, core.index() as u32);
    }
}

/// Bytes of the device tree: as many as the reference's has (06, section 4).
pub const TREE_BYTES: usize = 7633;

/// A device tree: its magic number and its length, and behind them bytes of which the kernel makes nothing.
pub fn tree() -> Vec<u8> {
    let head = [0xd00d_feed, TREE_BYTES as u32].map(u32::to_be_bytes);
    let rest = (8..TREE_BYTES).map(|i| i as u8);
    head.concat().into_iter().chain(rest).collect()
}

/// The root table of an address space.
pub fn root_of(space: Space) -> PhysAddr {
    space.root()
}
