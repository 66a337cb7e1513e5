//! Bytes to the host: a serial port behind the PCI bridge of QEMU's machine `virt`.

use crate::cap::FrameSize;
use crate::env::Environment;
use crate::error::Result;
use crate::process::Process;
use crate::resources::SetupError;
use crate::serial::MappedPort;

/// What a component with an `[[output]]` sends bytes to the host through: a serial port in memory.
#[derive(Clone, Copy, Debug)]
pub struct OutputPort(MappedPort);

impl OutputPort {
    /// That of the output `name`.
    ///
    /// # Errors
    /// None.
    ///
    /// # Panics
    /// The component has none.
    pub fn described(env: &Environment, name: &str) -> Result<Self> {
        let registers = env.memory(name);
        // SAFETY: memory of an environment is nothing that the compiler knows of, and stays mapped; that it is a device's
        // registers, uncached, is what its name says.
        Ok(Self(unsafe { MappedPort::open(registers.address) }))
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// None.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        self.0.write(bytes);
        Ok(())
    }
}

/// Where the PCI bridge of QEMU's machine `virt` has the registers of a bus's functions, a page each.
const PCI_FUNCTIONS: u64 = 0x40_1000_0000;
/// The function that the `sandglass` command makes the output's serial port; where in the bridge's I/O ports its registers
/// are to be, so that their page has nothing else.
const OUTPUT_FUNCTION: u64 = 0x10 << 3;
const OUTPUT_PORTS: u32 = 0x1000;

/// Lets the serial port behind the PCI bridge answer, through which bulk output leaves. Root task only.
pub fn enable_output(process: &mut Process) -> core::result::Result<(), SetupError> {
    const COMMAND: u64 = 0x04;
    const FIRST_ADDRESS: u64 = 0x10;
    /// Of addresses: they are of I/O ports. Of the command: it answers to those.
    const PORTS: u32 = 1;
    let (frame, address) = process.space.map_device(
        &mut process.resources,
        PCI_FUNCTIONS + OUTPUT_FUNCTION * FrameSize::Small.bytes(),
    )?;
    for (register, value) in [(FIRST_ADDRESS, OUTPUT_PORTS | PORTS), (COMMAND, PORTS)] {
        // SAFETY: a page of the bridge's registers, just mapped for this alone.
        unsafe { ((address + register) as *mut u32).write_volatile(value) };
    }
    Ok(frame.unmap()?)
}
