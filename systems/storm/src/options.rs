//! What a run is asked for: files of QEMU's firmware configuration device, which the host sets
//! with `-fw_cfg name=opt/sandglass/NAME,string=VALUE`.

use sandglass::firmware::Files;
use sandglass::{Process, SetupError};

use crate::arena::Storm;

/// What a run is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// System calls to make.
    pub calls: u64,
    /// Instructions to execute then.
    pub instructions: u64,
    /// Seed of the first arena; each arena has the next one.
    pub seed: u64,
}

impl Options {
    const DEFAULT: Self = Self {
        calls: 100_000,
        instructions: 10_000,
        seed: 1,
    };

    /// How much of a storm.
    pub const fn of(&self, storm: Storm) -> u64 {
        match storm {
            Storm::Calls => self.calls,
            Storm::Instructions => self.instructions,
        }
    }

    /// Reads the options; those that are not given, or no number, have their defaults.
    pub fn read(process: &mut Process) -> Result<Self, SetupError> {
        let files = Files::open(process)?;
        let number = |name: &str, default| files.number(name).map(|n| n.unwrap_or(default));
        Ok(Self {
            calls: number("opt/sandglass/calls", Self::DEFAULT.calls)?,
            instructions: number("opt/sandglass/instructions", Self::DEFAULT.instructions)?,
            seed: number("opt/sandglass/seed", Self::DEFAULT.seed)?,
        })
    }
}
