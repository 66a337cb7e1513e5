//! Bytes to the host: the second serial port.

use crate::env::Environment;
use crate::error::Result;
use crate::process::Process;
use crate::resources::SetupError;
use crate::serial::{SerialPort, COM2_FIRST};

/// What a component with an `[[output]]` sends bytes to the host through: the second serial port.
#[derive(Clone, Copy, Debug)]
pub struct OutputPort(SerialPort);

impl OutputPort {
    /// That of the output `name`.
    ///
    /// # Errors
    /// Those of the port's invocations.
    ///
    /// # Panics
    /// The component has none.
    pub fn described(env: &Environment, name: &str) -> Result<Self> {
        SerialPort::open(env.capability(name), COM2_FIRST).map(Self)
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// Those of the port's invocations.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        self.0.write(bytes)
    }
}

/// Lets a device send bytes to the host, on a machine where that takes something: not on a PC.
pub fn enable_output(_process: &mut Process) -> core::result::Result<(), SetupError> {
    Ok(())
}
