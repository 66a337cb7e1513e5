//! QEMU's firmware configuration device, by its registers.

use core::ptr;

use crate::error::Result;
use crate::process::Process;
use crate::resources::SetupError;

/// Where `virt` has it.
const ADDRESS: u64 = 0x0902_0000;
/// Offsets of the data, of which a byte is read, and of the selector, 16 bits, most significant byte first.
const DATA: usize = 0;
const SELECTOR: usize = 8;

/// The device.
pub struct FirmwarePort(*mut u8);

impl FirmwarePort {
    /// Takes it. Root task only; on QEMU's `virt` only.
    pub fn open(process: &mut Process) -> core::result::Result<Self, SetupError> {
        let (_, address) = process.space.map_device(&mut process.resources, ADDRESS)?;
        Ok(Self(ptr::with_exposed_provenance_mut(address as usize)))
    }

    /// Chooses what is read next.
    pub fn select(&self, key: u16) -> Result<()> {
        // SAFETY: the device's page is mapped and stays so.
        unsafe {
            self.0
                .byte_add(SELECTOR)
                .cast::<u16>()
                .write_volatile(key.to_be());
        }
        Ok(())
    }

    /// Reads a byte of it, and goes on to the next.
    pub fn byte(&self) -> Result<u8> {
        // SAFETY: as above.
        Ok(unsafe { self.0.byte_add(DATA).read_volatile() })
    }
}
