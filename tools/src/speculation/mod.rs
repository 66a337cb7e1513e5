//! What a kernel for x86_64 is built to do against speculation: names of options, and the features that they are.

pub mod witness;

use anyhow::{ensure, Result};
use clap::{Args, ValueEnum};

use crate::arch::Arch;
use crate::isolation;
use crate::kernel::KernelOptions;

/// What the names of the features begin with.
const PREFIX: &str = "speculation-";

/// One thing that can be asked for. The kernel does it where the processor has it and may need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum)]
pub enum Measure {
    /// A barrier for predictions of indirect branches when the address space changes
    Ibpb,
    /// The kernel does not use predictions that user code has made
    Ibrs,
    /// Hardware threads of a core do not use each other's predictions
    Stibp,
    /// No load passes an earlier store
    Ssbd,
    /// The processor's buffers are emptied at each exit to user code
    Verw,
    /// The first data cache is flushed when the address space changes
    L1d,
    /// The processor's stack of returns is filled with harmless ones when the address space changes
    Rsb,
    /// All of the above
    All,
    /// As if the processor had said that it has and needs all that is asked for: for emulators, which ignore it
    Assumed,
}

impl Measure {
    /// Those that are one thing each.
    pub const EACH: [Measure; 7] = [
        Measure::Ibpb,
        Measure::Ibrs,
        Measure::Stibp,
        Measure::Ssbd,
        Measure::Verw,
        Measure::L1d,
        Measure::Rsb,
    ];

    /// As on the command line.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// The choice of what is done, for several commands.
#[derive(Args, Clone, Debug, Default)]
pub struct SpeculationArgs {
    /// What the kernel does against speculation, where the processor has it and may need it; several with commas
    /// [default: nothing]
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    pub speculation: Vec<Measure>,
    /// The kernel for one core without page-table isolation, which starts on processors alone that Meltdown does not concern
    /// (x86_64)
    #[arg(long, conflicts_with = "speculation")]
    pub no_isolation: bool,
}

impl SpeculationArgs {
    /// This kernel, but one that does what is asked for.
    ///
    /// # Errors
    /// It is for another architecture, or for several cores that cannot do without isolation; or nothing is to be assumed.
    pub fn of(&self, options: KernelOptions) -> Result<KernelOptions> {
        match self.no_isolation {
            true => isolation::leave_out(options),
            false => with(options, &self.speculation),
        }
    }
}

/// As [`SpeculationArgs::of`].
///
/// # Errors
/// The same.
pub fn with(mut options: KernelOptions, asked: &[Measure]) -> Result<KernelOptions> {
    if asked.is_empty() {
        return Ok(options);
    }
    ensure!(
        options.arch == Arch::X86_64,
        "`--speculation` is for x86_64: the kernel for {} has nothing of the kind",
        options.arch.name()
    );
    let all = asked.contains(&Measure::All);
    let is_asked = |measure: &Measure| all || asked.contains(measure);
    let mut wanted: Vec<Measure> = Measure::EACH.into_iter().filter(is_asked).collect();
    ensure!(
        !wanted.is_empty(),
        "`--speculation assumed` says nothing of what is to be done: add `all`, or what is asked for"
    );
    if asked.contains(&Measure::Assumed) {
        wanted.push(Measure::Assumed);
    }
    let features = wanted.iter().map(|it| format!("{PREFIX}{}", it.name()));
    options.features.extend(features);
    Ok(options)
}

/// This kernel, which is for x86_64, but one that does all there is.
pub fn cautious(mut options: KernelOptions) -> KernelOptions {
    let features = Measure::EACH.map(|it| format!("{PREFIX}{}", it.name()));
    options.features.extend(features);
    options
}

/// What these features ask for, as on the command line; `None` if it is nothing.
pub fn asked(features: &[String]) -> Option<String> {
    let names = features.iter().filter_map(|it| it.strip_prefix(PREFIX));
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| names.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Variant;

    fn kernel() -> KernelOptions {
        KernelOptions::new(Variant::Release)
    }

    #[test]
    fn nothing_asked_for_is_the_kernel_that_ships() {
        assert_eq!(with(kernel(), &[]).unwrap(), kernel());
        assert_eq!(asked(&kernel().features), None);
    }

    #[test]
    fn the_order_of_what_is_asked_for_makes_no_other_kernel() {
        let one = with(kernel(), &[Measure::Verw, Measure::Ibpb]).unwrap();
        let other = with(kernel(), &[Measure::Ibpb, Measure::Verw, Measure::Ibpb]).unwrap();
        assert_eq!(one.file_name(), other.file_name());
        assert_eq!(asked(&one.features).unwrap(), "ibpb,verw");
    }

    #[test]
    fn all_is_each() {
        let all = with(kernel(), &[Measure::All]).unwrap();
        assert_eq!(all, with(kernel(), &Measure::EACH).unwrap());
        assert_eq!(all, cautious(kernel()));
        let assumed = with(kernel(), &[Measure::Assumed, Measure::All]).unwrap();
        assert_ne!(all.file_name(), assumed.file_name());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refusal = |options, asked: &[_]| with(options, asked).unwrap_err().to_string();
        let arm = kernel().for_arch(Arch::Aarch64);
        assert!(refusal(arm, &[Measure::All]).contains("is for x86_64"));
        assert!(refusal(kernel(), &[Measure::Assumed]).contains("add `all`"));
    }

    #[test]
    fn the_kernel_has_the_features() {
        let manifest = crate::workspace::root().join("kernel/Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).unwrap();
        let all = with(kernel(), &[Measure::All, Measure::Assumed]).unwrap();
        for feature in all.features {
            assert!(
                manifest.contains(&format!("\n{feature} = []\n")),
                "{feature}"
            );
        }
    }
}
