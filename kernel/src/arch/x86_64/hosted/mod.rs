//! What the hosted machine has of a PC: an I/O APIC, I/O ports, and translations that a core forgets by entering the
//! kernel.

mod boot;
#[cfg(test)]
pub mod expected;

pub use boot::{firmware, DEVICE_TOP, RESERVED};

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::arch::abi::devices::{Devices, Line, PortWidth};
use crate::arch::abi::{Irq, Space};
use crate::arch::hosted::Machine;
use crate::arch::PhysAddr;
use crate::cores::Cores;

/// Number of pins of the one I/O APIC.
const PINS: u8 = 24;

/// The devices.
#[derive(Default)]
pub struct Board {
    routes: RefCell<BTreeMap<Irq, Line>>,
    masked: RefCell<BTreeSet<u8>>,
    ports: RefCell<BTreeMap<u16, u32>>,
}

impl Board {
    pub(in crate::arch) fn zeroed(&self, _start: PhysAddr, _bytes: u64) {}

    pub(in crate::arch) fn route(&self, line: Line, irq: Irq) {
        // A pin raises one interrupt only, however it is programmed.
        self.routes
            .borrow_mut()
            .retain(|_, other| pin_of(*other).is_none() || pin_of(*other) != pin_of(line));
        self.routes.borrow_mut().insert(irq, line);
        self.set_masked(line, irq, false);
    }

    pub(in crate::arch) fn set_masked(&self, line: Line, irq: Irq, masked: bool) {
        if let Line::IoApic { pin, .. } = line {
            if self.routes.borrow().get(&irq) != Some(&line) {
                return;
            }
            if masked {
                self.masked.borrow_mut().insert(pin);
            } else {
                self.masked.borrow_mut().remove(&pin);
            }
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

    /// The pins of the I/O APIC that are masked.
    pub fn masked_pins(&self) -> BTreeSet<u8> {
        self.board.masked.borrow().clone()
    }

    /// Whether the pin of the I/O APIC is masked.
    pub fn is_masked(&self, pin: u8) -> bool {
        self.board.masked.borrow().contains(&pin)
    }

    /// The value that reading `port` gives.
    pub fn set_port(&self, port: u16, value: u32) {
        self.board.ports.borrow_mut().insert(port, value);
    }

    /// The value last written to `port`, or set for reading.
    pub fn port(&self, port: u16) -> Option<u32> {
        self.board.ports.borrow().get(&port).copied()
    }

    /// The values last written to ports, or set for reading.
    pub fn ports(&self) -> BTreeMap<u16, u32> {
        self.board.ports.borrow().clone()
    }
}

impl Devices for Machine {
    fn forget_root(&self, _root: PhysAddr) {}

    fn kernel_root_entry(&self) -> u64 {
        0
    }

    fn flush_cores(&self, cores: Cores) {
        for core in cores.iter() {
            self.flush(core);
            self.serve(core);
        }
        if !cores.is_empty() {
            self.wait_for_others();
        }
    }

    fn flush_page(&self, _vaddr: u64) {
        self.flush(self.executing());
    }

    fn flush_address_space(&self) {
        self.flush(self.executing());
    }

    fn watches_eight_bytes(&self) -> bool {
        false
    }

    fn ioapics(&self) -> u8 {
        1
    }

    fn ioapic_pins(&self, ioapic: u8) -> u8 {
        if ioapic == 0 {
            PINS
        } else {
            0
        }
    }

    fn port_in(&self, port: u16, width: PortWidth) -> u32 {
        self.port(port).unwrap_or(u32::MAX) & mask(width)
    }

    fn port_out(&self, port: u16, width: PortWidth, value: u32) {
        self.set_port(port, value & mask(width));
    }
}

/// The root table of an address space.
pub fn root_of(space: Space) -> PhysAddr {
    space.root()
}

/// The I/O APIC and the pin of it that `line` is; `None` for messages.
fn pin_of(line: Line) -> Option<(u8, u8)> {
    match line {
        Line::IoApic { ioapic, pin, .. } => Some((ioapic, pin)),
        Line::Msi => None,
    }
}

/// The bits of a word that pass through a port at `width`.
fn mask(width: PortWidth) -> u32 {
    match width {
        PortWidth::Byte => 0xff,
        PortWidth::Word => 0xffff,
        PortWidth::Long => u32::MAX,
    }
}
