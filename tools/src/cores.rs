//! How many cores a machine has, and which kernel that takes.

use std::fmt;

use sandglass_abi::profile::{Nodes, Profile, ALL, BASE};

/// Cores that the SMP kernel of the base profile is built for: `CORES` of the kernel with its feature `smp`.
pub const MOST_CORES: u32 = BASE.nodes.most();

/// The most of any profile.
const MOST_OF_ANY: u32 = {
    let (mut most, mut i) = (0, 0);
    while i < ALL.len() {
        let own = ALL[i].nodes.most();
        most = if own > most { own } else { most };
        i += 1;
    }
    most
};

/// A machine's cores, with the kernel for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cores {
    /// The single-core kernel, on one.
    Single,
    /// The SMP kernel, on so many: 1 to [`MOST_CORES`], or what the profile has.
    Smp(u32),
}

impl Cores {
    /// What `--cores` asks for: without it, the single-core kernel.
    pub fn asked_for(number: Option<u32>) -> Self {
        number.map_or(Self::Single, Self::Smp)
    }

    /// The kernel of `profile` for several cores, on as many as that is for; where it has one for a core as well, only if
    /// `several` are asked for.
    pub fn of_profile(profile: &Profile, several: bool) -> Self {
        match several || matches!(profile.nodes, Nodes::Several(_)) {
            true => Self::Smp(profile.nodes.most()),
            false => Self::Single,
        }
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

/// The same where there is a choice of profiles: of any.
///
/// # Errors
/// No profile has a kernel for so many.
pub fn parse_for_any(argument: &str) -> Result<u32, String> {
    match argument.parse() {
        Ok(number @ 1..=MOST_OF_ANY) => Ok(number),
        _ => Err(format!(
            "the SMP kernel runs on 1 to {MOST_CORES} cores, those of other profiles on {MOST_OF_ANY} at most; without this \
             option, the single-core kernel runs on one"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandglass_abi::profile::{MICROKIT_RELEASE, MICROKIT_SMP_RELEASE};

    #[test]
    fn a_profile_may_have_sixteen_cores() {
        assert_eq!(parse_for_any("16"), Ok(16));
        assert!(parse_for_any("17").unwrap_err().contains("16 at most"));
        assert_eq!(Cores::of_profile(&BASE, true), Cores::Smp(4));
        assert_eq!(Cores::of_profile(&BASE, false), Cores::Single);
        assert_eq!(Cores::of_profile(&MICROKIT_RELEASE, false), Cores::Single);
        assert_eq!(
            Cores::of_profile(&MICROKIT_SMP_RELEASE, false),
            Cores::Smp(16)
        );
    }

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
