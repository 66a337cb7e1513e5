//! Bytes to the host: a serial port behind the PCI bridge of QEMU's machine `virt`, or the second serial port of a board.

use alloc::format;

use crate::cap::FrameSize;
use crate::env::Environment;
use crate::error::Result;
use crate::process::Process;
use crate::resources::SetupError;
use crate::serial::MappedPort;
use crate::uart::{Kind, Uart};

/// What a component with an `[[output]]` sends bytes to the host through: a serial port in memory.
#[derive(Clone, Copy, Debug)]
pub struct OutputPort(Port);

#[derive(Clone, Copy, Debug)]
enum Port {
    /// That behind the bridge.
    Mapped(MappedPort),
    /// A board's, of Cadence's kind.
    Cadence(Uart),
}

impl OutputPort {
    /// That of the output `name`.
    ///
    /// # Errors
    /// None.
    ///
    /// # Panics
    /// The component has none.
    pub fn described(env: &Environment, name: &str) -> Result<Self> {
        let address = env.memory(name).address;
        let is_cadence = env.find_parameter(&format!("{name}.cadence")).is_some();
        // SAFETY: memory of an environment is nothing that the compiler knows of, and stays mapped; that it is the registers of
        // such a device, uncached, is what its name says.
        let port = unsafe {
            match is_cadence {
                true => Port::Cadence(Uart::open(address, Kind::Cadence)),
                false => Port::Mapped(MappedPort::open(address)),
            }
        };
        Ok(Self(port))
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// None.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        match self.0 {
            Port::Mapped(port) => port.write(bytes),
            Port::Cadence(port) => bytes.iter().for_each(|&byte| port.put(byte)),
        }
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
