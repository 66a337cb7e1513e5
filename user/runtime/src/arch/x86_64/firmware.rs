//! QEMU's firmware configuration device, by its ports.

use crate::cap::IoPort;
use crate::error::Result;
use crate::process::Process;
use crate::resources::SetupError;

/// Ports of the device: the selector (16 bits), then the data (8 bits).
const SELECTOR: u16 = 0x510;
const DATA: u16 = 0x511;

/// The device.
pub struct FirmwarePort(IoPort);

impl FirmwarePort {
    /// Takes it. Root task only.
    pub fn open(process: &mut Process) -> core::result::Result<Self, SetupError> {
        process.resources.io_ports(SELECTOR, DATA).map(Self)
    }

    /// Chooses what is read next.
    pub fn select(&self, key: u16) -> Result<()> {
        self.0.out16(SELECTOR, key)
    }

    /// Reads a byte of it, and goes on to the next.
    pub fn byte(&self) -> Result<u8> {
        self.0.in8(DATA)
    }
}
