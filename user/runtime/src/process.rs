//! The current program as a manager: its CSpace, its memory, its address space.

use sandglass_abi::boot::slot;

use crate::boot::{self, BootInfo};
use crate::cap::{CNode, GuardData, Tcb};
use crate::console;
use crate::exit;
use crate::resources::{Resources, SetupError};
use crate::serial;
use crate::vspace::OwnSpace;

/// What a program needs to make threads and components.
#[derive(Clone, Debug)]
pub struct Process {
    pub resources: Resources,
    pub space: OwnSpace,
    /// Root of the CSpace, given to threads of this program.
    cspace: CNode,
    /// The thread whose maximum controlled priority bounds those that are given.
    authority: Tcb,
}

impl Process {
    /// The root task. To be called once: it takes all resources.
    pub fn root_task(boot: &BootInfo) -> Self {
        Self::new(
            Resources::from_boot_info(boot),
            OwnSpace::initial(),
            CNode::at(slot::CNODE),
            boot::TCB,
        )
    }

    /// A component that was given resources.
    pub const fn new(resources: Resources, space: OwnSpace, cspace: CNode, authority: Tcb) -> Self {
        Self {
            resources,
            space,
            cspace,
            authority,
        }
    }

    pub const fn cspace(&self) -> CNode {
        self.cspace
    }

    /// Guard data that leaves the guard of the CSpace's root as it is.
    pub const fn cspace_guard(&self) -> GuardData {
        GuardData(0)
    }

    pub const fn authority(&self) -> Tcb {
        self.authority
    }

    /// Takes the first serial port and prints there from now on, on any kernel. Root task only.
    pub fn use_serial_console(&mut self) -> Result<(), SetupError> {
        let port = self
            .resources
            .io_ports(serial::COM1_FIRST, serial::COM1_FIRST + serial::PORTS - 1)?;
        Ok(console::use_serial(port)?)
    }

    /// Takes the port through which [`exit::exit`] ends QEMU with a status. Root task only.
    pub fn use_exit_port(&mut self) -> Result<(), SetupError> {
        let port = self
            .resources
            .io_ports(exit::DEBUG_EXIT_PORT, exit::DEBUG_EXIT_PORT)?;
        exit::use_port(port);
        Ok(())
    }
}
