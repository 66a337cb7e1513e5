//! Builds the kernel.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{ensure, Context, Result};
use clap::ValueEnum;
use object::{Object, ObjectSegment};
use sandglass_abi::profile::{Profile, BASE};
use sandglass_binary::image::Image;
use serde::Deserialize;

use crate::arch::Arch;
use crate::built::Asked;
use crate::cli::KernelArgs;
use crate::cores::Cores;
use crate::mutants::named::{self, Set};
use crate::toolchain::{self, KernelToolchain};
use crate::{isolation, profile, speculation, wcet, workspace};

/// Code generation that the kernel's rules depend on. Jump tables are indirect jumps, which the
/// analysis of the binary excludes; the kernel lives in the top 2 GiB and is never relocated.
const CODE_GENERATION: &[&str] = &[
    "-Crelocation-model=static",
    "-Cjump-tables=no",
    "-Cforce-frame-pointers=no",
    // With RELRO, calls of `memcpy` and similar functions would go through the global offset table.
    "-Crelro-level=off",
];

/// More than any kernel's flat image has.
const MOST_IMAGE_BYTES: usize = 16 << 20;

/// The feature of a kernel for several cores.
const SMP_FEATURE: &str = "smp";

/// The feature of a kernel without page-table isolation.
const NO_ISOLATION_FEATURE: &str = "no-isolation";

/// The feature of a kernel that records execution traces.
pub const TRACE_FEATURE: &str = "trace";

/// The feature of a kernel for aarch64 whose user level reads the virtual counter.
const USER_CLOCK_FEATURE: &str = "user-clock";

/// The two kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// Debug system calls, console messages, and checks of the objects that an event touched.
    Debug,
    /// What ships: no panic path, no formatting.
    Release,
}

impl Variant {
    pub const ALL: [Self; 2] = [Self::Debug, Self::Release];

    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Release => "release",
        }
    }
}

/// The feature of one whose user level has the physical timer, too.
const USER_TIMER_FEATURE: &str = "user-timer";

/// What to build.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KernelOptions {
    pub arch: Arch,
    pub variant: Variant,
    /// Cargo features beside the variant's own.
    pub features: Vec<String>,
    /// Mutants that are built in, each with a switch.
    pub mutants: Option<Set>,
}

impl KernelOptions {
    /// The kernel as it ships, or its debug twin.
    pub fn new(variant: Variant) -> Self {
        Self {
            arch: Arch::default(),
            variant,
            features: Vec::new(),
            mutants: None,
        }
    }

    /// This kernel, but for an architecture.
    #[must_use]
    pub fn for_arch(self, arch: Arch) -> Self {
        Self { arch, ..self }
    }

    /// The kernel of this variant for these cores.
    pub fn on(variant: Variant, cores: Cores) -> Self {
        match cores {
            Cores::Single => Self::new(variant),
            Cores::Smp(_) => Self::smp(variant),
        }
    }

    /// The kernel for several cores, the SMP kernel.
    pub fn smp(variant: Variant) -> Self {
        Self {
            features: vec![SMP_FEATURE.to_owned()],
            ..Self::new(variant)
        }
    }

    /// This kernel, but one that records execution traces.
    #[must_use]
    pub fn traced(mut self) -> Self {
        self.features.push(TRACE_FEATURE.to_owned());
        self
    }

    /// This kernel, but one that lets user level read a clock, as all kernels for x86_64 do.
    #[must_use]
    pub fn with_user_clock(mut self) -> Self {
        if self.arch == Arch::Aarch64 {
            self.features.push(USER_CLOCK_FEATURE.to_owned());
        }
        self
    }

    /// This kernel, but one that lets user level have a timer, if it is one for machines without a device that is one.
    #[must_use]
    pub fn with_user_timer(mut self) -> Self {
        if self.arch == Arch::Aarch64 {
            let clocks = [USER_CLOCK_FEATURE, USER_TIMER_FEATURE];
            self.features
                .retain(|feature| !clocks.contains(&feature.as_str()));
            self.features.push(USER_TIMER_FEATURE.to_owned());
        }
        self
    }

    /// This kernel, but of a profile of the ABI.
    #[must_use]
    pub fn of_profile(mut self, profile: &Profile) -> Self {
        let feature = profile::feature(profile).map(str::to_owned);
        self.features.extend(feature);
        self
    }

    /// The profile that it is of.
    pub fn profile(&self) -> &'static Profile {
        let of = |feature: &String| Profile::named(feature);
        self.features.iter().find_map(of).unwrap_or(&BASE)
    }

    /// This kernel, for one core of x86_64, but without page-table isolation.
    #[must_use]
    pub fn without_isolation(mut self) -> Self {
        self.features.push(NO_ISOLATION_FEATURE.to_owned());
        self
    }

    /// Whether it is built with this feature.
    fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|it| it == feature)
    }

    /// Whether it is an SMP kernel.
    pub fn is_for_several_cores(&self) -> bool {
        self.has(SMP_FEATURE)
    }

    /// The processor for it, as QEMU's `-cpu` names it; `None` for the usual one.
    pub fn cpu(&self) -> Option<&'static str> {
        if self.has(NO_ISOLATION_FEATURE) {
            return Some(isolation::CPU);
        }
        profile::cpu(self.profile())
    }

    /// This kernel with all mutants of the catalogue, none of which is on.
    #[must_use]
    pub fn with_mutants(mut self, set: Set) -> Self {
        self.mutants = Some(set);
        self
    }

    /// For messages.
    fn title(&self) -> String {
        let mut title = format!("the {} kernel", self.variant.name());
        if self.arch != Arch::default() {
            title.push_str(&format!(" for {}", self.arch.name()));
        }
        if self.is_for_several_cores() {
            title.push_str(" for several cores");
        }
        if self.has(TRACE_FEATURE) {
            title.push_str(" with traces");
        }
        if self.has(NO_ISOLATION_FEATURE) {
            title.push_str(" without page-table isolation");
        }
        if *self.profile() != BASE {
            title.push_str(&format!(" of the profile {}", self.profile().name));
        }
        if let Some(asked) = speculation::asked(&self.features) {
            title.push_str(&format!(" with {asked} against speculation"));
        }
        if let Some(set) = self.mutants {
            title.push_str(&format!(" with the mutants of {}", set.path()));
        }
        title
    }

    /// File name of the result: tells apart kernels of different options.
    pub fn file_name(&self) -> String {
        let mut name = format!("sandglass-kernel-{}", self.variant.name());
        if self.arch != Arch::default() {
            name.push('-');
            name.push_str(self.arch.name());
        }
        for part in &self.features {
            name.push('-');
            name.push_str(part);
        }
        if let Some(set) = self.mutants {
            name.push_str(&format!("-mutants-{}", set.name()));
        }
        name + ".elf"
    }
}

/// `sandglass kernel`.
pub fn run(args: &KernelArgs) -> Result<ExitCode> {
    let profile = args.profile.profile;
    let cores = Cores::of_profile(profile, args.smp);
    let options = profile::kernel(profile, args.arch, args.kernel, Variant::Release, cores)?;
    let options = args.speculation.of(options)?;
    let mut path = build(&match args.trace {
        true => options.traced(),
        false => options,
    })?;
    if let Some(platform) = &args.platform {
        ensure!(
            args.kernel != Some(Variant::Debug),
            "the debug kernel has work without a bound: only the release kernel is analysed"
        );
        path = wcet::analysed(&path, platform)?;
    }
    println!("{}", path.display());
    Ok(ExitCode::SUCCESS)
}

/// Builds a kernel and returns the path of its ELF file. Cargo's messages go to standard error.
///
/// All kernels share one cargo target directory, and with it `core`; the result is copied under
/// a name of its own, so that it stays when the next one is built. A process has one kernel of these
/// options, built when it is first asked for: all that it runs is run on the same.
///
/// # Errors
/// No toolchain; or the build failed, with the compiler's and the linker's messages.
pub fn build(options: &KernelOptions) -> Result<PathBuf> {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    // Whoever else wants a kernel waits: that would want the lock of the target directory, too.
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let name = options.file_name();
    if let Some(path) = built.get(&name).filter(|path| path.exists()) {
        return Ok(path.clone());
    }
    let path = build_now(options)?;
    built.insert(name, path.clone());
    Ok(path)
}

/// Where all kernels are built.
fn folder() -> PathBuf {
    workspace::target_dir().join("kernel")
}

/// Where the kernel of these options is, once it is built.
pub fn file(options: &KernelOptions) -> PathBuf {
    folder().join(options.file_name())
}

fn build_now(options: &KernelOptions) -> Result<PathBuf> {
    let toolchain = KernelToolchain::find(options.arch)?;
    let target_dir = folder();
    // Nobody else may build between cargo's end and the copy.
    let _lock = workspace::lock(&target_dir)?;

    let mut cargo = toolchain.cargo("build", options.arch);
    let tree = options.mutants.map(named::tree).transpose()?;
    if let Some(tree) = &tree {
        cargo.current_dir(&tree.root);
    }
    cargo.args([
        "--package",
        "sandglass-kernel",
        "--bin",
        "sandglass-kernel",
        "--profile",
        "release",
    ]);
    cargo.arg("--target-dir").arg(&target_dir);
    let target = options.arch.kernel_target();
    let variable = target.to_uppercase().replace('-', "_");
    cargo.env(
        format!("CARGO_TARGET_{variable}_RUSTFLAGS"),
        rustflags(options.arch),
    );
    let mut features = options.features.clone();
    if options.variant == Variant::Debug {
        features.push("debug".to_owned());
    }
    if !features.is_empty() {
        cargo.args(["--features", &features.join(",")]);
    }
    let what = options.title();
    eprintln!("building {what}");
    let path = file(options);
    let asked = Asked::of(&cargo);
    if asked.as_ref().is_some_and(|asked| asked.recall().is_some()) {
        return Ok(path);
    }
    toolchain::build_now(&mut cargo, &what)?;

    let built = target_dir
        .join(target)
        .join("release")
        .join("sandglass-kernel");
    check_init(&built).with_context(|| format!("{what} is not right"))?;
    // A QEMU that is reading the file must see it whole: it is replaced, not rewritten.
    let fresh = path.with_extension("new");
    fs::copy(&built, &fresh)
        .and_then(|_| fs::rename(&fresh, &path))
        .with_context(|| format!("cannot copy {} to {}", built.display(), path.display()))?;
    if let Some(asked) = asked {
        asked.remember("", std::slice::from_ref(&path));
    }
    Ok(path)
}

/// Sees that the kernel in the ELF file at `path` never goes back to code that runs once, whose memory the root task has:
/// which function is in which section is up to the compiler's names of functions and to what it inlines.
///
/// # Errors
/// It does, or it cannot be read.
fn check_init(path: &Path) -> Result<()> {
    let ways = Image::parse(&fs::read(path)?)?.ways_to_init();
    ensure!(ways.is_empty(), "{}", ways.join("\n"));
    Ok(())
}

/// The kernel in the ELF file at `path` as a flat image, in a file beside it: what the boot protocol of Linux for aarch64
/// wants. It has the segments as they lie in memory, from the first on, without the zeroes behind the last.
///
/// # Errors
/// It is no such file, or the image cannot be written.
pub fn flat_image(path: &Path) -> Result<PathBuf> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file = object::File::parse(&*bytes)
        .with_context(|| format!("{} is not an ELF file", path.display()))?;
    let segments = || file.segments().filter(|segment| segment.file_range().1 > 0);
    let start = segments().map(|segment| segment.address()).min();
    let start = start.with_context(|| format!("{} has no segments", path.display()))?;
    let mut image = Vec::new();
    for segment in segments() {
        let data = segment.data().context("a segment is outside of its file")?;
        let at = usize::try_from(segment.address() - start).context("a segment is too far away")?;
        ensure!(at < MOST_IMAGE_BYTES, "a segment is too far away");
        image.resize(image.len().max(at + data.len()), 0);
        image[at..at + data.len()].copy_from_slice(data);
    }
    let flat = path.with_extension("img");
    // Whoever boots it, and whoever else makes it, in another process or beside this, sees it whole.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let fresh = path.with_extension(format!("img.{}.{number}", std::process::id()));
    fs::write(&fresh, image)
        .and_then(|()| fs::rename(&fresh, &flat))
        .with_context(|| format!("cannot write {}", flat.display()))?;
    Ok(flat)
}

/// Compiler flags for `core` and the kernel: the same for every kernel, so that `core` is built once. `ld.lld` by
/// name: the toolchain's own `rust-lld` is not everywhere what it claims to be (Debian's link dangles).
fn rustflags(arch: Arch) -> String {
    let mut flags = CODE_GENERATION.to_vec();
    flags.push(arch.code_model());
    if toolchain::lld().is_some() {
        flags.push("-Clinker=ld.lld");
    }
    flags.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_different_options_have_different_names() {
        let release = KernelOptions::new(Variant::Release);
        let debug = KernelOptions::new(Variant::Debug);
        let smp = Variant::ALL.map(KernelOptions::smp);
        let wrong = Set::ALL.map(|set| release.clone().with_mutants(set));
        let traced = [release.clone().traced(), smp[0].clone().traced()];
        let others = [release.clone(), smp[0].clone()].map(|it| it.for_arch(Arch::Aarch64));
        let mut names: Vec<String> = [release, debug]
            .iter()
            .chain(&smp)
            .chain(&wrong)
            .chain(&traced)
            .chain(&others)
            .map(KernelOptions::file_name)
            .collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 14);
    }
}
