//! The current program as a manager: its CSpace, its memory, its address space.

use sandglass_abi::boot::{extra, slot};

use crate::arch;
use crate::boot::{self, BootInfo};
use crate::cap::{CNode, Frame, GuardData, Tcb};
use crate::resources::{Resources, SetupError};
use crate::screen::{self, SharedScreen};
use crate::uart;
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
    /// Where it draws what it prints, if it does.
    screen: Option<SharedScreen>,
    /// The serial port that the device tree chooses, if there is one.
    console_place: Option<uart::Place>,
    /// The registers of the serial port that it prints on, if they are in memory.
    console: Option<Frame>,
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
        .on_board(boot)
    }

    /// Notes what the device tree says, if there is one.
    fn on_board(mut self, boot: &BootInfo) -> Self {
        let chunk = boot.extra().find(|chunk| chunk.id == extra::DEVICE_TREE);
        self.console_place = chunk.and_then(|tree| uart::Place::of_tree(tree.payload));
        self
    }

    /// A component that was given resources.
    pub const fn new(resources: Resources, space: OwnSpace, cspace: CNode, authority: Tcb) -> Self {
        Self {
            resources,
            space,
            cspace,
            authority,
            screen: None,
            console_place: None,
            console: None,
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
        arch::use_serial_console(self)
    }

    /// Shows what is printed on the serial port on the screen too, if the firmware offers one that
    /// text can be shown on. Root task only; to be called once, before it has other threads.
    pub fn use_screen(&mut self, boot: &BootInfo) -> Result<(), SetupError> {
        let Some(framebuffer) = boot.framebuffer() else {
            return Ok(());
        };
        self.screen = SharedScreen::map(self, framebuffer)?;
        if let Some(screen) = &self.screen {
            // SAFETY: just mapped, and never unmapped; the rest is the caller's.
            unsafe { screen::set(screen.here()) };
            screen::clear();
        }
        Ok(())
    }

    #[cfg_attr(
        target_arch = "x86_64",
        expect(dead_code, reason = "its serial ports are no memory")
    )]
    pub(crate) const fn console_place(&self) -> Option<uart::Place> {
        self.console_place
    }

    /// Notes which registers are mapped of what it prints on.
    #[cfg_attr(
        target_arch = "x86_64",
        expect(dead_code, reason = "its serial ports are no memory")
    )]
    pub(crate) const fn set_console(&mut self, registers: Frame) {
        self.console = Some(registers);
    }

    pub(crate) const fn console(&self) -> Option<Frame> {
        self.console
    }

    pub(crate) const fn screen(&self) -> Option<&SharedScreen> {
        self.screen.as_ref()
    }

    /// Takes the port through which [`exit`](crate::exit::exit) ends QEMU with a status. Root task only.
    pub fn use_exit_port(&mut self) -> Result<(), SetupError> {
        arch::use_exit_port(self)
    }
}
