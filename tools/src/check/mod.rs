//! `sandglass check`: the rules that the repository keeps, each with a name of its own.
//!
//! - [`lints`]: formatting and the compiler's and clippy's lints;
//! - [`manifests`]: versions and reasons of dependencies, and the oldest compiler;
//! - [`source`]: what the kernel's source may hold, and where `unsafe` stands;
//! - [`rooms`], [`map`]: which file of the kernel may name which, and the book's map of that;
//! - [`citations`]: the specification's sections that are cited exist;
//! - [`book_links`], [`book_paths`]: what the book and doc comments link to and name exists;
//! - [`binary`]: what the machine code of the release kernels, for one core and for several, without
//!   traces and, on x86_64, with them, may hold.

pub mod binary;
mod book_links;
mod book_paths;
mod call_graph;
mod citations;
mod features;
mod footprint;
mod lints;
mod manifests;
mod map;
mod pages;
mod rooms;
mod safety_comments;
pub mod source;
mod source_lines;
mod unsafe_places;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{bail, Result};
use clap::Args;
use sandglass_abi::profile::{MICROKIT_RELEASE, MICROKIT_SMP_RELEASE};

use crate::arch::Arch;
use crate::cores::MOST_CORES;
use crate::kernel::{self, KernelOptions, Variant};
use crate::mutants::named;
use crate::speculation::cautious;

use binary::Binary;

/// What a rule found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Kept,
    /// The machine lacks what is needed to tell.
    Skipped(String),
    /// One finding for each place, with what would be right.
    Broken(Vec<String>),
}

impl Verdict {
    fn of(findings: Vec<String>) -> Self {
        if findings.is_empty() {
            Self::Kept
        } else {
            Self::Broken(findings)
        }
    }
}

/// A rule of the repository.
pub struct Rule {
    /// As in `check::NAME`.
    pub name: &'static str,
    /// What it says.
    pub about: &'static str,
    pub check: fn(&mut Context) -> Verdict,
}

/// All rules.
pub const RULES: &[Rule] = &[
    Rule {
        name: "formatting",
        about: "rustfmt has nothing to change",
        check: lints::formatting,
    },
    Rule {
        name: "lints",
        about: "clippy has no warning",
        check: lints::workspace,
    },
    Rule {
        name: "kernel_lints",
        about: "clippy has no warning about the kernel on the bare machine",
        check: lints::bare_kernel,
    },
    Rule {
        name: "named_mutants",
        about: "each named mutant changes text that stands in the kernel exactly once",
        check: |_| Verdict::of(named::findings()),
    },
    Rule {
        name: "one_version",
        about: "versions of dependencies stand in the root manifest, and members inherit them",
        check: |_| manifests::versions(),
    },
    Rule {
        name: "one_rust",
        about: "one oldest compiler: in the manifests, in the book, and for every dependency",
        check: |_| manifests::rust_version(),
    },
    Rule {
        name: "dependencies",
        about: "every dependency has its reason in docs/src/dependencies.md",
        check: |_| manifests::reasons(),
    },
    Rule {
        name: "built_once",
        about: "programs of the host need of what is not ours the features that the workspace's tests need",
        check: |_| features::built_once(),
    },
    Rule {
        name: "no_features",
        about: "no unstable feature of the language",
        check: |_| {
            source::check(
                "feature",
                source::no_features,
                &["abi", "kernel", "user", "systems", "tools"],
            )
        },
    },
    Rule {
        name: "unsafe_rooms",
        about: "`unsafe` in the kernel stands in arch/ and mem/ only",
        check: |_| source::check("unsafe", source::unsafe_rooms, &["kernel/src"]),
    },
    Rule {
        name: "unsafe_forbidden",
        about: "every folder of the kernel but arch/ and mem/ forbids `unsafe`",
        check: |_| source::check("", source::forbidden_unsafe, &["kernel/src"]),
    },
    Rule {
        name: "safety_comments",
        about: "every `unsafe` in the kernel has its argument",
        check: |_| source::check("unsafe", safety_comments::rule, &["kernel"]),
    },
    Rule {
        name: "no_static_mut",
        about: "no `static mut` in the kernel, and no static outside of arch/",
        check: |_| source::check("static", source::statics, &["kernel/src"]),
    },
    Rule {
        name: "no_dynamic_calls",
        about: "no `dyn` and no function pointer in the kernel outside of arch/",
        check: |_| source::check("", source::dynamic_calls, &["kernel/src"]),
    },
    Rule {
        name: "rooms",
        about: "no file of the kernel names anything of a room above its own (kernel/rooms.toml)",
        check: |_| rooms::rule(),
    },
    Rule {
        name: "lines",
        about: "the generic kernel has at most 9,505 lines of source, and no function of it more than 60",
        check: |_| source_lines::rule(),
    },
    Rule {
        name: "map",
        about: "the map in the book shows the kernel's rooms as they are",
        check: |_| map::rule(),
    },
    Rule {
        name: "citations",
        about: "every citation of the ABI pages names a section that exists; those of the thesis, \
                papers and other specifications are not checked",
        check: |_| citations::check(),
    },
    Rule {
        name: "book_links",
        about: "every link in the book and the pages beside it leads to a file and a heading that exist",
        check: |_| book_links::rule(),
    },
    Rule {
        name: "book_paths",
        about: "every file and folder that the book, its drawings and doc comments name exists",
        check: |_| book_paths::rule(),
    },
    Rule {
        name: "no_panic_path",
        about: "the release kernels link although their panic handler calls a symbol without \
                definition",
        check: |context| context.judge(|_| Vec::new()),
    },
    Rule {
        name: "attributed_code",
        about: "all machine code of the release kernels belongs to a symbol and decodes",
        check: |context| context.judge(binary::unattributed_code),
    },
    Rule {
        name: "no_indirect_calls",
        about: "no indirect call or jump in the release kernels",
        check: |context| context.judge(binary::indirect_branches),
    },
    Rule {
        name: "acyclic_calls",
        about: "no recursion in the release kernels",
        check: |context| context.judge(call_graph::cycles),
    },
    Rule {
        name: "bounded_stack",
        about: "the stacks of the release kernels hold the deepest path of calls",
        check: |context| context.judge(footprint::stack),
    },
    Rule {
        name: "sizes",
        about: "80 KiB of code that stays and 98 KiB of static data, on aarch64 72 and 164, are enough for the \
                release kernel; for several cores, 104 KiB of code, on aarch64 84, and 64 KiB more data for each further \
                core; 32 KiB of code that runs once, on aarch64 28",
        check: |context| context.judge_shipped(footprint::sizes),
    },
    Rule {
        name: "init_text",
        about: "no code of the release kernels that stays leads to code that runs once, whose memory the root task has",
        check: |context| context.judge(binary::ways_to_init),
    },
    Rule {
        name: "trap_instructions",
        about: "trap instructions in the release kernels stand in named functions only",
        check: |context| context.judge(binary::trap_instructions),
    },
];

/// Names of the kernels that record traces, for one core and for several: larger than what ships.
const TRACED: [&str; 2] = ["the kernel with traces", "the SMP kernel with traces"];

/// Names of those that do all there is against speculation, likewise.
const CAUTIOUS: [&str; 2] = [
    "the kernel with everything against speculation",
    "the SMP kernel with everything against speculation",
];

/// What rules share: the release kernels, which are built and disassembled once.
#[derive(Default)]
pub struct Context {
    /// Without the kernels that [are long](Judged::is_long).
    is_quick: bool,
    release_kernels: Option<Vec<ReleaseKernel>>,
}

/// A release kernel whose binary is judged.
pub(crate) struct Judged {
    name: &'static str,
    pub options: KernelOptions,
    pub cores: u32,
    /// The test command judges it only with `--all`: what distinguishes it is in another one, too.
    pub is_long: bool,
}

/// For x86_64 that for a single core, that for several, both with traces, both with everything against speculation, one without
/// page-table isolation, one of a profile with several domains, and one of a profile with more cores; for aarch64 the first two.
pub(crate) fn release_kernels() -> Vec<Judged> {
    let (single, smp) = (
        KernelOptions::new(Variant::Release),
        KernelOptions::smp(Variant::Release),
    );
    let domains = single.clone().of_profile(&MICROKIT_RELEASE);
    let sixteen = smp.clone().of_profile(&MICROKIT_SMP_RELEASE);
    let most = MICROKIT_SMP_RELEASE.nodes.most();
    let arm = |options: &KernelOptions| options.clone().for_arch(Arch::Aarch64);
    let judged = |(name, options, cores, is_long)| Judged {
        name,
        options,
        cores,
        is_long,
    };
    [
        ("the kernel for aarch64", arm(&single), 1, false),
        ("the SMP kernel for aarch64", arm(&smp), MOST_CORES, true),
        (TRACED[0], single.clone().traced(), 1, false),
        (TRACED[1], smp.clone().traced(), MOST_CORES, false),
        (CAUTIOUS[0], cautious(single.clone()), 1, true),
        (CAUTIOUS[1], cautious(smp.clone()), MOST_CORES, false),
        (
            "the kernel without page-table isolation",
            single.clone().without_isolation(),
            1,
            false,
        ),
        ("the kernel", single, 1, false),
        ("the SMP kernel", smp, MOST_CORES, false),
        ("the kernel with several domains", domains, 1, false),
        ("the kernel for sixteen cores", sixteen, most, true),
    ]
    .map(judged)
    .into()
}

/// A release kernel, by its name in findings.
struct ReleaseKernel {
    name: &'static str,
    /// Or why there is none.
    binary: Result<Binary, String>,
}

impl ReleaseKernel {
    fn build(name: &'static str, options: &KernelOptions, cores: u32) -> Self {
        let path = kernel::build(options);
        let binary = path.and_then(|path| Binary::read(&path, cores));
        let binary = binary.map(|binary| Binary {
            domains: options.profile().domains,
            ..binary
        });
        Self {
            name,
            binary: binary.map_err(|error| format!("{error:#}")),
        }
    }
}

impl Context {
    /// Without the kernels that the test command judges with `--all` alone.
    pub fn quick() -> Self {
        Self {
            is_quick: true,
            ..Self::default()
        }
    }

    fn release_kernels(&mut self) -> &[ReleaseKernel] {
        let is_quick = self.is_quick;
        self.release_kernels.get_or_insert_with(|| {
            let kernels = release_kernels().into_iter();
            kernels
                .filter(|kernel| !(is_quick && kernel.is_long))
                .map(|it| ReleaseKernel::build(it.name, &it.options, it.cores))
                .collect()
        })
    }

    /// Applies `rule` to all. One that does not build breaks every rule.
    fn judge(&mut self, rule: fn(&Binary) -> Vec<String>) -> Verdict {
        Self::judge_these(self.release_kernels().iter(), rule)
    }

    /// Applies `rule` to those that ship.
    fn judge_shipped(&mut self, rule: fn(&Binary) -> Vec<String>) -> Verdict {
        Self::judge_these(self.shipped(), rule)
    }

    /// Those that record no traces, and do nothing against speculation.
    fn shipped(&mut self) -> impl Iterator<Item = &ReleaseKernel> {
        let kernels = self.release_kernels().iter();
        kernels.filter(|kernel| {
            !TRACED
                .iter()
                .chain(&CAUTIOUS)
                .any(|name| *name == kernel.name)
        })
    }

    /// Says how large what ships is.
    fn print_sizes(&mut self) {
        for ReleaseKernel { name, binary } in self.shipped() {
            if let Ok(binary) = binary {
                println!("{name}: {}", footprint::describe(binary));
            }
        }
    }

    fn judge_these<'k>(
        kernels: impl Iterator<Item = &'k ReleaseKernel>,
        rule: fn(&Binary) -> Vec<String>,
    ) -> Verdict {
        let mut findings = Vec::new();
        for ReleaseKernel { name, binary } in kernels {
            let found = match binary {
                Ok(binary) => rule(binary),
                Err(error) => vec![error.clone()],
            };
            findings.extend(found.iter().map(|finding| format!("{name}: {finding}")));
        }
        Verdict::of(findings)
    }
}

/// Arguments of `sandglass check`.
#[derive(Args)]
pub struct CheckArgs {
    /// Nothing: descriptions are checked by `sandglass validate`
    #[arg(value_name = "SYSTEM.toml", hide = true)]
    description: Option<PathBuf>,
    /// Only draw the map of the kernel's rooms in the book again, from kernel/rooms.toml
    #[arg(long)]
    map: bool,
}

/// `sandglass check`; with `--map`, only makes the map in the book anew.
pub fn run(args: &CheckArgs) -> Result<ExitCode> {
    if let Some(path) = &args.description {
        bail!(
            "`sandglass check` checks the rules of this repository; `sandglass validate {}` checks a description",
            path.display()
        );
    }
    if args.map {
        map::write()?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut context = Context::default();
    let mut broken = 0;
    for rule in RULES {
        match (rule.check)(&mut context) {
            Verdict::Kept => println!("ok       {:<18} {}", rule.name, rule.about),
            Verdict::Skipped(reason) => println!("skipped  {:<18} {reason}", rule.name),
            Verdict::Broken(findings) => {
                broken += 1;
                println!("BROKEN   {:<18} {}", rule.name, rule.about);
                for line in findings.iter().flat_map(|finding| finding.lines()) {
                    println!("         {line}");
                }
            }
        }
    }
    if let Ok(count) = source_lines::Count::read() {
        println!("the generic kernel: {}", count.describe());
    }
    context.print_sizes();
    if broken == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    println!("{broken} of {} rules broken", RULES.len());
    Ok(ExitCode::FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn rules_have_names_of_their_own() {
        let mut names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RULES.len());
    }

    /// But for the profile for sixteen cores, of which the debug kernel runs in the usual tests.
    #[test]
    fn a_kernel_that_is_left_out_has_no_option_of_its_own() {
        let kernels = release_kernels();
        let (long, usual): (Vec<_>, Vec<_>) = kernels.iter().partition(|kernel| kernel.is_long);
        assert!(!long.is_empty());
        let is_elsewhere =
            |has: &dyn Fn(&KernelOptions) -> bool| usual.iter().any(|it| has(&it.options));
        for Judged { name, options, .. } in long {
            assert!(is_elsewhere(&|it| it.arch == options.arch), "{name}");
            let own = options.features.iter();
            for feature in own.filter(|it| **it != MICROKIT_SMP_RELEASE.name) {
                assert!(
                    is_elsewhere(&|it| it.features.contains(feature)),
                    "{name}: {feature}"
                );
            }
        }
    }

    #[test]
    fn every_rule_is_in_the_book_and_no_other() {
        let page = workspace::root().join("docs/src/reference/tests.md");
        let page = std::fs::read_to_string(page).unwrap();
        let rules = page.split("\n## Rules\n").nth(1).unwrap();
        let rows = rules.lines().filter(|line| line.starts_with("| `"));
        let mut listed: Vec<&str> = rows
            .flat_map(|row| row.split('|').nth(1).unwrap().split(','))
            .map(|name| name.trim().trim_matches('`'))
            .collect();
        listed.sort_unstable();
        let mut names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
        names.sort_unstable();
        assert_eq!(listed, names);
    }
}
