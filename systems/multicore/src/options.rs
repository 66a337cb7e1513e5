//! What a run is asked for, by files of QEMU's firmware configuration device.

use sandglass::firmware::Files;
use sandglass::{Process, SetupError};

/// What a run is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes that each client has encrypted.
    pub bytes: u64,
    /// Calls of each pair.
    pub calls: u64,
}

impl Options {
    const DEFAULT: Self = Self {
        bytes: 32 << 10,
        calls: 100,
    };

    /// Reads the options; those that are not given, or no number, have their defaults.
    pub fn read(process: &mut Process) -> Result<Self, SetupError> {
        let files = Files::open(process)?;
        let number = |name: &str, default| files.number(name).map(|n| n.unwrap_or(default));
        Ok(Self {
            bytes: number("opt/sandglass/bytes", Self::DEFAULT.bytes)?,
            calls: number("opt/sandglass/calls", Self::DEFAULT.calls)?,
        })
    }
}
