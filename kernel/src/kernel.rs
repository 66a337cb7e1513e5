//! The kernel's whole state.
//!
//! Any number of kernels can live side by side: there are no statics, everything takes the
//! `Kernel`. What user level can create lives in memory that it gave; here is only what exists
//! once, or once per core.

use core::cell::Cell;

use crate::arch::Machine;
use crate::object::asid::AsidTable;
use crate::object::ioport::PortTable;
use crate::object::irq::IrqTable;
use crate::time::core::Core;
use crate::time::{Constants, DomainSchedule};

/// Number of cores that the kernel is built for.
pub const CORES: usize = 1;

/// A kernel with its machine.
pub struct Kernel {
    pub machine: Machine,
    core: Core,
    pub irqs: IrqTable,
    pub asids: AsidTable,
    pub ports: PortTable,
    pub domains: DomainSchedule,
    pub constants: Constants,
    sequence: Cell<u64>,
}

impl Kernel {
    /// A kernel before boot: no thread, no memory.
    pub const fn new(machine: Machine) -> Self {
        Kernel {
            machine,
            core: Core::new(),
            irqs: IrqTable::new(),
            asids: AsidTable::new(),
            ports: PortTable::new(),
            domains: DomainSchedule::new(),
            constants: Constants::new(),
            sequence: Cell::new(0),
        }
    }

    /// The core that executes the kernel.
    #[inline(always)]
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// A number larger than every one before: the position of an insertion among equals. 64 bits
    /// do not run out at one insertion a nanosecond in 500 years.
    #[inline(always)]
    pub fn next_sequence(&self) -> u64 {
        let next = self.sequence.get().wrapping_add(1);
        self.sequence.set(next);
        next
    }
}
