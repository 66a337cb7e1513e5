//! Profiles of the ABI: which there are, what each has, and the kernel of one.
//!
//! The data is the ABI's (`abi/src/profile.rs`). Here it is shown, and made options of a build: a kernel and a program are
//! built for a profile by the feature of its name.

mod tested;

use std::fs;
use std::process::ExitCode;

use anyhow::{bail, ensure, Context, Result};
use clap::Args;
use sandglass_abi::profile::{Fpu, Nodes, Printing, Profile, SegmentBases, ALL, BASE};

use crate::arch::Arch;
use crate::cores::Cores;
use crate::kernel::{KernelOptions, Variant};
use crate::workspace;

/// The processor on which the stock boards of Microkit run (ABI 09, section 2.5).
const STOCK_CPU: &str = "qemu64,+fsgsbase,+pdpe1gb,+xsaveopt,+xsave";

/// One with AVX, and otherwise with what the ABI's reference needs.
const AVX_CPU: &str = "Haswell,-pcid,+pdpe1gb";

/// Where the table goes, in the repository, and between which lines.
const PAGE: &str = "docs/src/reference/profiles.md";
const OPTIONS: &str = "profiles";
const TESTED: &str = "tested";

/// Arguments of `sandglass profiles`.
#[derive(Args)]
pub struct ProfilesArgs {
    /// Write the tables of profiles, and of what is tested in which, into the book
    #[arg(long)]
    page: bool,
    /// List the commands that test profiles beyond what `sandglass test` does
    #[arg(long, conflicts_with = "page")]
    commands: bool,
    /// Run those of these commands that have TEXT in them, one after the other; all, if it is empty
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["page", "commands"])]
    run: Option<String>,
}

/// The choice of a profile, for several commands.
#[derive(Args, Clone, Debug)]
pub struct ProfileArgs {
    /// Profile of the ABI, as `sandglass profiles` lists them
    #[arg(long = "profile", value_name = "NAME", default_value = BASE.name, value_parser = named)]
    pub profile: &'static Profile,
}

/// Reads the argument of `--profile`.
///
/// # Errors
/// There is no profile of this name.
pub fn named(name: &str) -> Result<&'static Profile, String> {
    Profile::named(name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|profile| profile.name).collect();
        format!("the profiles are {}", names.join(", "))
    })
}

/// The feature by which a kernel or a program is built for `profile`.
pub fn feature(profile: &Profile) -> Option<&'static str> {
    (*profile != BASE).then_some(profile.name)
}

/// The kernel of `profile` on these cores; of which variant, the profile says, or else `asked`, or else `usual`.
///
/// # Errors
/// The profile is another architecture's, or has something else than what is asked for, or something that this kernel does
/// not do.
pub fn kernel(
    profile: &'static Profile,
    arch: Arch,
    asked: Option<Variant>,
    usual: Variant,
    cores: Cores,
) -> Result<KernelOptions> {
    let name = profile.name;
    ensure!(
        arch == Arch::X86_64 || profile.on_aarch64,
        "the profile `{name}` is for x86_64: on {} there is `{}`",
        arch.name(),
        BASE.name
    );
    let variant = match (asked, profile.printing) {
        (Some(asked), _) => asked,
        (None, Printing::Either) => usual,
        (None, Printing::On) => Variant::Debug,
        (None, Printing::Off) => Variant::Release,
    };
    ensure!(
        allows(profile, variant),
        "the profile `{name}` has printing {}: `--kernel {}` is another profile",
        show_printing(profile.printing),
        variant.name()
    );
    ensure_cores(profile, cores)?;
    Ok(KernelOptions::on(variant, cores)
        .for_arch(arch)
        .of_profile(profile))
}

/// Whether `profile` has a kernel for these cores.
///
/// # Errors
/// It has none; the message says which it has.
pub fn ensure_cores(profile: &Profile, cores: Cores) -> Result<()> {
    let (name, most) = (profile.name, profile.nodes.most());
    match (profile.nodes, cores) {
        (Nodes::One, Cores::Smp(_)) => bail!(
            "the profile `{name}` is for one core: leave out `--cores` and `--smp`, or choose another"
        ),
        (Nodes::Several(_), Cores::Single) => bail!(
            "the profile `{name}` is for several cores: say on how many, `--cores 1` to `--cores {most}`"
        ),
        (_, Cores::Smp(number)) if number > most => bail!(
            "the profile `{name}` is for {most} cores at most, not {number}"
        ),
        _ => Ok(()),
    }
}

/// Whether `profile` has a kernel of this variant.
pub fn allows(profile: &Profile, variant: Variant) -> bool {
    match profile.printing {
        Printing::Either => true,
        Printing::On => variant == Variant::Debug,
        Printing::Off => variant == Variant::Release,
    }
}

/// The processor for a kernel of `profile`, as QEMU's `-cpu` names it; `None` for the usual one.
pub fn cpu(profile: &Profile) -> Option<&'static str> {
    match profile.fpu {
        _ if profile.segment_bases == SegmentBases::Instructions => Some(STOCK_CPU),
        Fpu::Xsave { .. } => Some(AVX_CPU),
        Fpu::Fxsave => None,
    }
}

fn show_printing(printing: Printing) -> String {
    match printing {
        Printing::Either => "on or off",
        Printing::On => "on",
        Printing::Off => "off",
    }
    .to_owned()
}

fn show_nodes(nodes: Nodes) -> String {
    match nodes {
        Nodes::OneOr(several) => format!("1 or {several}"),
        Nodes::One => "1".to_owned(),
        Nodes::Several(several) => several.to_string(),
    }
}

fn show_bases(bases: SegmentBases) -> String {
    match bases {
        SegmentBases::Kernel => "by the kernel",
        SegmentBases::Instructions => "by instructions",
    }
    .to_owned()
}

fn show_fpu(fpu: Fpu) -> String {
    match fpu {
        Fpu::Fxsave => "FXSAVE, 512 bytes".to_owned(),
        Fpu::Xsave { bytes, features } => format!("XSAVE, {bytes} bytes, features {features}"),
    }
}

fn show_switch(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

/// An option of profiles: what it is called, and what a profile has.
type Row = (&'static str, fn(&Profile) -> String);

/// Every option.
const ROWS: [Row; 11] = [
    ("debug system calls, printing", |p| {
        show_printing(p.printing)
    }),
    ("hardware-debug API", |p| show_switch(p.hardware_debug)),
    ("IOMMU support", |p| show_switch(p.iommu)),
    ("root CNode", |p| format!("2^{}", p.root_cnode_bits)),
    ("domains", |p| p.domains.to_string()),
    ("entries of the domain schedule", |p| {
        p.schedule_entries.to_string()
    }),
    ("cores", |p| show_nodes(p.nodes)),
    ("FS and GS base", |p| show_bases(p.segment_bases)),
    ("system call SetTLSBase", |p| {
        show_switch(p.set_tls_base_call)
    }),
    ("FPU", |p| show_fpu(p.fpu)),
    ("architectures", |p| {
        if p.on_aarch64 {
            "x86_64, aarch64"
        } else {
            "x86_64"
        }
        .to_owned()
    }),
];

/// All profiles, every option of each beside the base profile's: what differs is marked.
fn listing() -> String {
    let mut text = String::new();
    for profile in &ALL {
        text.push_str(&format!("{}: {}\n", profile.name, profile.about));
        for (option, show) in ROWS {
            let (own, base) = (show(profile), show(&BASE));
            let beside = match own == base {
                true => String::new(),
                false => format!("  (base: {base})"),
            };
            text.push_str(&format!("    {option:<32} {own}{beside}\n"));
        }
    }
    text
}

/// All profiles side by side, as the table of the book.
fn table() -> String {
    let names = ALL.iter().map(|profile| format!("`{}`", profile.name));
    let head: Vec<String> = std::iter::once(String::new()).chain(names).collect();
    let rows = ROWS.iter().map(|(option, show)| {
        let cells = ALL.iter().map(show);
        std::iter::once((*option).to_owned()).chain(cells).collect()
    });
    let rule = vec!["---".to_owned(); head.len()];
    let lines = [head, rule].into_iter().chain(rows);
    lines
        .map(|cells: Vec<String>| format!("| {} |\n", cells.join(" | ")))
        .collect()
}

/// The page with its tables in it, in place of those that it has.
///
/// # Errors
/// It has no place for one, or what is tested cannot be read.
fn with_tables(page: &str) -> Result<String> {
    let page = with_table(page, OPTIONS, &table())?;
    with_table(&page, TESTED, &tested::table()?)
}

/// The page with the table of this name in it.
fn with_table(page: &str, name: &str, table: &str) -> Result<String> {
    let (begin, end) = (
        format!("<!-- {name}: begin -->\n"),
        format!("<!-- {name}: end -->\n"),
    );
    let parts = page.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some((before, after))
    });
    let Some((before, after)) = parts else {
        bail!("{PAGE} has no place for the table `{name}`: the lines\n{begin}{end}");
    };
    Ok(format!("{before}{begin}{table}{end}{after}"))
}

/// `sandglass profiles`: lists them, or writes the table into the book.
pub fn run(args: &ProfilesArgs) -> Result<ExitCode> {
    if let Some(pattern) = &args.run {
        return tested::run(pattern);
    }
    if args.commands {
        print!("{}", tested::list()?);
    } else if args.page {
        let path = workspace::root().join(PAGE);
        let page =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        fs::write(&path, with_tables(&page)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}", path.display());
    } else {
        print!("{}", listing());
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandglass_abi::profile::{MICROKIT_DEBUG, MICROKIT_RELEASE, MICROKIT_SMP_RELEASE};

    /// Why there is no such kernel.
    fn refused(profile: &'static Profile, asked: Option<Variant>, cores: Cores) -> String {
        let kernel = kernel(profile, Arch::X86_64, asked, Variant::Debug, cores);
        format!("{:#}", kernel.unwrap_err())
    }

    #[test]
    fn what_is_asked_for_must_be_the_profiles() {
        let release = |asked| {
            let usual = Variant::Debug;
            kernel(&MICROKIT_RELEASE, Arch::X86_64, asked, usual, Cores::Single)
        };
        assert_eq!(release(None).unwrap().variant, Variant::Release);
        assert!(release(Some(Variant::Release)).is_ok());
        let debug = refused(&MICROKIT_RELEASE, Some(Variant::Debug), Cores::Single);
        assert!(debug.contains("printing off"), "{debug}");
        let release = refused(&MICROKIT_DEBUG, Some(Variant::Release), Cores::Single);
        assert!(release.contains("printing on"), "{release}");
        let smp = refused(&MICROKIT_RELEASE, None, Cores::Smp(2));
        assert!(smp.contains("for one core"), "{smp}");
        let one = refused(&MICROKIT_SMP_RELEASE, None, Cores::Single);
        assert!(one.contains("`--cores 1` to `--cores 16`"), "{one}");
        let many = refused(&BASE, None, Cores::Smp(5));
        assert!(many.contains("for 4 cores at most"), "{many}");
        let nodes = kernel(
            &MICROKIT_SMP_RELEASE,
            Arch::X86_64,
            None,
            Variant::Debug,
            Cores::Smp(16),
        );
        assert_eq!(nodes.unwrap().variant, Variant::Release);
        let arm = kernel(
            &MICROKIT_RELEASE,
            Arch::Aarch64,
            None,
            Variant::Debug,
            Cores::Single,
        );
        assert!(format!("{:#}", arm.unwrap_err()).contains("is for x86_64"));
    }

    #[test]
    fn the_base_profile_is_the_kernel_as_it_is_without() {
        for variant in Variant::ALL {
            let base = kernel(
                &BASE,
                Arch::Aarch64,
                Some(variant),
                Variant::Debug,
                Cores::Smp(4),
            );
            let usual = KernelOptions::on(variant, Cores::Smp(4)).for_arch(Arch::Aarch64);
            assert_eq!(base.unwrap(), usual);
        }
    }

    #[test]
    fn every_option_is_listed_beside_base() {
        let text = listing();
        for profile in &ALL {
            assert!(text.contains(&format!("{}: ", profile.name)), "{text}");
        }
        assert_eq!(text.matches("root CNode ").count(), ALL.len());
        assert!(text.contains("2^17  (base: 2^13)"), "{text}");
        assert!(text.contains("XSAVE, 576 bytes, features 3  (base: FXSAVE, 512 bytes)"));
    }

    #[test]
    fn the_page_is_current() {
        let page = fs::read_to_string(workspace::root().join(PAGE)).unwrap();
        assert_eq!(
            page,
            with_tables(&page).unwrap(),
            "`./sandglass profiles --page` writes it anew"
        );
    }

    #[test]
    fn a_wrong_name_is_answered_by_the_right_ones() {
        let message = named("microkit").unwrap_err();
        assert!(message.contains("base, avx, microkit-debug"), "{message}");
    }
}
