//! What is tested in which profile: by the test command, which its own data says, and by commands, which are listed here
//! ([`commands`]) and carried out by `sandglass profiles --run`. The table of the book is made of both.

use std::fmt::Write;
use std::process::{Command, ExitCode};

use anyhow::{ensure, Context, Result};
use sandglass_abi::profile::{Nodes, Profile, ALL};

use super::{allows, cpu};
use crate::check;
use crate::conformance::{self, wrong};
use crate::cores::{Cores, MOST_CORES};
use crate::kernel::Variant;
use crate::mutants::named::Set;
use crate::storm;
use crate::test::{self, suite};

/// What a row of the table is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Conformance,
    RootTasks,
    Storm,
    TimeInStorm,
    LockStep,
    KernelTests,
    WrongKernels,
    Rules,
    Bounds,
}

impl What {
    const ALL: [Self; 9] = [
        Self::Conformance,
        Self::RootTasks,
        Self::Storm,
        Self::TimeInStorm,
        Self::LockStep,
        Self::KernelTests,
        Self::WrongKernels,
        Self::Rules,
        Self::Bounds,
    ];

    fn title(self) -> &'static str {
        match self {
            Self::Conformance => "conformance suite",
            Self::RootTasks => "root tasks in C",
            Self::Storm => "the storm",
            Self::TimeInStorm => "the oracle for time, in the storm",
            Self::LockStep => "lock step, with invariants and the oracle for time",
            Self::KernelTests => "tests of the kernel on the host",
            Self::WrongKernels => "named mutants, in other profiles than base of what they add",
            Self::Rules => "rules on the release kernel's binary",
            Self::Bounds => "adversarial bounds of the release kernel",
        }
    }
}

/// A kernel, and on how many cores.
type Kernel = (Variant, Cores);

/// A test on a kernel of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    what: What,
    /// Of the kernel; on the host there is the release kernel only.
    variant: Variant,
    cores: Cores,
}

/// How many cores the kernels of `profile` are tested on.
fn machines(profile: &Profile) -> Vec<Cores> {
    match profile.nodes {
        Nodes::One => vec![Cores::Single],
        Nodes::OneOr(most) => vec![Cores::Single, Cores::Smp(1), Cores::Smp(most)],
        Nodes::Several(most) => [1, MOST_CORES, most].map(Cores::Smp).to_vec(),
    }
}

/// Every run that makes sense, of what is run on machines and in lock step.
fn sensible(profile: &Profile, what: What) -> Vec<Run> {
    let variants = match what {
        What::Conformance | What::Storm => Variant::ALL.to_vec(),
        _ => vec![Variant::Release],
    };
    let kernels = variants.into_iter().filter(|&variant| match what {
        // The specification has no debug calls: lock step is of the same kernel in both.
        What::LockStep => true,
        _ => allows(profile, variant),
    });
    let on = |variant| {
        let run = move |cores| Run {
            what,
            variant,
            cores,
        };
        machines(profile).into_iter().map(run)
    };
    let is_for = |run: &Run| match what {
        What::Conformance | What::Storm | What::LockStep => true,
        // Of several cores, none has a time of its own there; and its memory is laid out as bounds are measured.
        What::TimeInStorm | What::Bounds => run.cores == Cores::Single,
        _ => false,
    };
    kernels.flat_map(on).filter(is_for).collect()
}

/// What the test command runs of `what` in `profile`: usually, and with `--all` or by name only.
fn tested(profile: &Profile, what: What) -> Result<[Vec<Run>; 2]> {
    let is_base = super::feature(profile).is_none();
    let single = (Variant::Release, Cores::Single);
    let kernels: Vec<(Kernel, bool)> = match what {
        What::Conformance if is_base => suite::kernels_of(conformance::PACKAGE)?,
        What::Storm if is_base => suite::kernels_of(storm::PACKAGE)?,
        // In tests of the tool: `tools/tests/time_oracle.rs` and `bounds.rs`.
        What::TimeInStorm | What::Bounds if is_base => usual(vec![single]),
        What::RootTasks => suite::c_roots_of(profile)?,
        What::LockStep => on_host(profile, "sandglass-assurance"),
        What::KernelTests => on_host(profile, "sandglass-kernel"),
        What::Rules => {
            let kernels = check::release_kernels().into_iter();
            let own = kernels.filter(|kernel| kernel.options.profile() == profile);
            own.map(|it| ((Variant::Release, Cores::of_machine(it.cores)), it.is_long))
                .collect()
        }
        What::WrongKernels => {
            let sets = wrong::SETS.into_iter();
            let own = sets.filter(|&set| set != Set::Aarch64 && wrong::profile(set) == profile);
            own.map(|set| {
                let variant = wrong::options(set)?.variant;
                Ok(((variant, Cores::Single), set != Set::Rules))
            })
            .collect::<Result<_>>()?
        }
        _ => Vec::new(),
    };
    let mut runs = [Vec::new(), Vec::new()];
    // The usual ones first: what these run is not a long test, too.
    for long in [false, true] {
        for &((variant, cores), _) in kernels.iter().filter(|&&(_, is_long)| is_long == long) {
            let run = Run {
                what,
                variant,
                cores,
            };
            if !runs.iter().flatten().any(|known| *known == run) {
                runs[usize::from(long)].push(run);
            }
        }
    }
    Ok(runs)
}

/// These, and that they are no long tests.
fn usual(kernels: Vec<Kernel>) -> Vec<(Kernel, bool)> {
    kernels.into_iter().map(|kernel| (kernel, false)).collect()
}

/// The kernels of `profile` for which the tests of `package` are run on the host.
fn on_host(profile: &Profile, package: &str) -> Vec<(Kernel, bool)> {
    let parts = test::profiles_of(package).into_iter();
    let own = parts.filter(|(feature, ..)| *feature == super::feature(profile));
    own.map(|(_, is_smp, is_long)| {
        let cores = Cores::of_profile(profile, is_smp);
        ((Variant::Release, cores), is_long)
    })
    .collect()
}

/// What is run in `profile` by commands of its own, since the test command does not.
fn by_command(profile: &Profile, what: What) -> Result<Vec<Run>> {
    let [usual, long] = tested(profile, what)?;
    let mut runs = sensible(profile, what);
    runs.retain(|run| !usual.contains(run) && !long.contains(run));
    Ok(runs)
}

impl Run {
    /// The arguments of `sandglass` that run it in `profile`.
    fn arguments(&self, profile: &Profile) -> Vec<String> {
        let variant = self.variant.name();
        let (command, own) = match self.what {
            What::Conformance => ("conformance", vec!["--kernel", variant]),
            What::Storm => (
                "storm",
                vec![
                    "--kernel",
                    variant,
                    "--calls",
                    "200000",
                    "--instructions",
                    "20000",
                ],
            ),
            What::TimeInStorm => (
                "storm",
                vec!["--kernel", variant, "--calls", "50000", "--oracle"],
            ),
            What::LockStep => ("assure", vec!["--events", "20000", "--only-lock-step"]),
            _ => ("bounds", vec!["--quick"]),
        };
        let mut arguments: Vec<String> = vec![command.to_owned()];
        if let Some(feature) = super::feature(profile) {
            arguments.extend(["--profile", feature].map(str::to_owned));
        }
        arguments.extend(own.into_iter().map(str::to_owned));
        if let Cores::Smp(number) = self.cores {
            arguments.extend(["--cores".to_owned(), number.to_string()]);
        }
        arguments
    }
}

/// Every command, one for each run that is not the test command's.
fn commands() -> Result<Vec<Vec<String>>> {
    let mut commands = Vec::new();
    for profile in &ALL {
        for what in What::ALL {
            let runs = by_command(profile, what)?;
            commands.extend(runs.iter().map(|run| run.arguments(profile)));
        }
    }
    Ok(commands)
}

/// `sandglass profiles --run PATTERN`: runs the commands with `pattern` in them, one after the other, and says of each whether
/// it succeeded.
///
/// # Errors
/// No command has the pattern in it, or one cannot be run.
pub fn run(pattern: &str) -> Result<ExitCode> {
    let mut commands = commands()?;
    commands.retain(|command| command.join(" ").contains(pattern));
    ensure!(
        !commands.is_empty(),
        "no command has `{pattern}` in it: `sandglass profiles --commands` lists them"
    );
    let tool = std::env::current_exe().context("cannot tell where this tool is")?;
    let (mut passed, mut failed) = (0, 0);
    for command in commands {
        let line = command.join(" ");
        println!("--- sandglass {line}");
        let status = Command::new(&tool).args(&command).status();
        let status = status.with_context(|| format!("cannot run sandglass {line}"))?;
        let verdict = if status.success() { "ok" } else { "FAILED" };
        passed += u32::from(status.success());
        failed += u32::from(!status.success());
        println!("--- sandglass {line} ... {verdict}");
    }
    println!("{passed} passed, {failed} failed");
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// `sandglass profiles --commands`: lists them.
///
/// # Errors
/// What the test command runs cannot be read.
pub fn list() -> Result<String> {
    let lines = commands()?.into_iter();
    Ok(lines
        .map(|it| format!("./sandglass {}\n", it.join(" ")))
        .collect())
}

/// The table of the book.
///
/// # Errors
/// What the test command runs cannot be read.
pub fn table() -> Result<String> {
    let mut text = String::from("|  |");
    for profile in &ALL {
        write!(text, " `{}` |", profile.name)?;
    }
    text.push_str("\n| --- |");
    text.push_str(&" --- |".repeat(ALL.len()));
    text.push('\n');
    for what in What::ALL {
        write!(text, "| {} |", what.title())?;
        for profile in &ALL {
            write!(text, " {} |", cell(profile, what)?)?;
        }
        text.push('\n');
    }
    text.push_str("| processor |");
    for profile in &ALL {
        match cpu(profile) {
            None => text.push_str(" the reference's |"),
            Some(model) => write!(
                text,
                " `{}` |",
                model.split_once(',').map_or(model, |it| it.0)
            )?,
        }
    }
    text.push('\n');
    Ok(text)
}

/// What is run, how, and on how many cores.
fn cell(profile: &Profile, what: What) -> Result<String> {
    let [usual, long] = tested(profile, what)?;
    let parts = [
        ("", usual),
        ("with `--all`: ", long),
        ("by command: ", by_command(profile, what)?),
    ];
    let parts = parts.into_iter().filter(|(_, runs)| !runs.is_empty());
    let parts: Vec<String> = parts
        .map(|(how, runs)| format!("{how}{}", show(profile, &runs)))
        .collect();
    Ok(match parts.is_empty() {
        true => "–".to_owned(),
        false => parts.join("; "),
    })
}

/// The kernels of these runs: those on the same numbers of cores together.
fn show(profile: &Profile, runs: &[Run]) -> String {
    let cores = |variant: Variant| -> Vec<String> {
        let own = runs.iter().filter(|run| run.variant == variant);
        own.map(|run| show_cores(profile, run.cores)).collect()
    };
    let [debug, release] = Variant::ALL.map(cores);
    let on = |cores: &[String]| cores.join(", ");
    match (debug.is_empty(), release.is_empty()) {
        (true, _) => format!("release {}", on(&release)),
        (_, true) => format!("debug {}", on(&debug)),
        _ if debug == release => format!("debug, release {}", on(&release)),
        _ => format!("debug {}, release {}", on(&debug), on(&release)),
    }
}

/// Where there are two kernels, that for several says so on one core.
fn show_cores(profile: &Profile, cores: Cores) -> String {
    match (cores, profile.nodes) {
        (Cores::Smp(1), Nodes::OneOr(_)) => "1 (SMP)".to_owned(),
        (cores, _) => cores.number().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandglass_abi::profile::{BASE, MICROKIT_RELEASE, MICROKIT_SMP_DEBUG};

    /// Every kernel of every profile has the conformance suite, the storm and lock step, by the test command or by one of its
    /// own, on each number of cores.
    #[test]
    fn nothing_that_makes_sense_is_left_out() {
        for profile in &ALL {
            for what in [What::Conformance, What::Storm, What::LockStep] {
                let [mut runs, long] = tested(profile, what).unwrap();
                runs.extend(long);
                runs.extend(by_command(profile, what).unwrap());
                for run in sensible(profile, what) {
                    assert!(runs.contains(&run), "{}: {run:?}", profile.name);
                }
            }
        }
    }

    #[test]
    fn commands_are_complete() {
        let run = Run {
            what: What::Conformance,
            variant: Variant::Debug,
            cores: Cores::Smp(16),
        };
        let command = run.arguments(&MICROKIT_SMP_DEBUG).join(" ");
        assert_eq!(
            command,
            "conformance --profile microkit-smp-debug --kernel debug --cores 16"
        );
        let run = Run {
            what: What::LockStep,
            variant: Variant::Release,
            cores: Cores::Single,
        };
        assert!(run
            .arguments(&BASE)
            .join(" ")
            .starts_with("assure --events"));
        assert_eq!(machines(&MICROKIT_RELEASE), [Cores::Single]);
    }
}
