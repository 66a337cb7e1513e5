//! How many cores a machine has, and which kernel that takes.

use std::fmt;

/// Cores that the SMP kernel is built for: `CORES` of the kernel with its feature `smp`.
pub const MOST_CORES: u32 = 4;

/// A machine's cores, with the kernel for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cores {
    /// The single-core kernel, on one.
    Single,
    /// The SMP kernel, on so many: 1 to [`MOST_CORES`].
    Smp(u32),
}

impl Cores {
    /// What `--cores` asks for: without it, the single-core kernel.
    pub fn asked_for(number: Option<u32>) -> Self {
        number.map_or(Self::Single, Self::Smp)
    }

    /// What a machine of `number` cores takes: one core, the single-core kernel.
    pub fn of_machine(number: u32) -> Self {
        match number {
            1 => Self::Single,
            number => Self::Smp(number),
        }
    }

    /// Cores of the machine.
    pub const fn number(self) -> u32 {
        match self {
            Self::Single => 1,
            Self::Smp(number) => number,
        }
    }
}

/// What follows a kernel's name to distinguish it: nothing, or `-smp-4`.
impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Single => Ok(()),
            Self::Smp(number) => write!(f, "-smp-{number}"),
        }
    }
}

/// Reads the argument of `--cores`.
///
/// # Errors
/// It is not a number of cores that the SMP kernel runs on.
pub fn parse(argument: &str) -> Result<u32, String> {
    match argument.parse() {
        Ok(number @ 1..=MOST_CORES) => Ok(number),
        _ => Err(format!(
            "the SMP kernel runs on 1 to {MOST_CORES} cores; without this option, the single-core \
             kernel runs on one"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_cores_is_1_to_4() {
        assert_eq!(parse("1"), Ok(1));
        assert_eq!(parse("4"), Ok(4));
        for wrong in ["0", "5", "-1", "four", ""] {
            assert!(parse(wrong).unwrap_err().contains("1 to 4"), "{wrong}");
        }
    }

    #[test]
    fn one_core_that_is_asked_for_is_the_smp_kernels() {
        assert_eq!(Cores::asked_for(None), Cores::Single);
        assert_eq!(Cores::asked_for(Some(1)), Cores::Smp(1));
        assert_eq!(Cores::of_machine(1), Cores::Single);
        assert_eq!(Cores::of_machine(4), Cores::Smp(4));
    }
}
