//! Every visit of the kernel in the emulator, counted against what was computed of its binary.
//!
//! While a folder is set ([`watch_into`], or the variable [`VARIABLE`] of the environment, for processes that tests
//! start), each machine with one core that boots the release kernel as it ships carries the plugin (`tools/plugin`, its
//! module `visits`), beside what else it measures. The folder then has, of each such machine, what was seen (`.seen`)
//! and what it is (`.run`, its architecture in the first line); [`verdict`] compares them with `assurance/wcet`.
//!
//! On aarch64, the kernels that give user level a clock or a timer are watched, too: they differ from the one that ships in
//! the constant that says so, and so have the same bounds, which a test computes of each ([`shipped`]).
//!
//! Not watched are kernels of other features, whose bounds are not computed, and machines that boot from disks, in
//! whose images nobody looks for the kernel.

pub mod verdict;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::{ensure, Context, Result};
use sandglass_binary::image::Image;
use sandglass_binary::limits::Limits;
use sandglass_binary::model::Processor;
use sandglass_binary::watch;
use sandglass_cache::Model;

use crate::arch::Arch;
use crate::bounds::plugin;
use crate::kernel::{self, KernelOptions, Variant};
use crate::qemu::{Boot, Medium};
use crate::workspace;
use verdict::{Expected, Seen};

/// The variable that says into which folder what is seen is written; absent, nothing is watched.
pub const VARIABLE: &str = "SANDGLASS_VISITS";

/// The variable that says on which processors cycles are counted, too: names or files that describe them, as `sandglass
/// wcet -- --model` takes them, with commas between. Absent, on none.
pub const MODELS: &str = "SANDGLASS_VISITS_MODELS";

/// In the folder: what is watched, and the plugin that does.
const LIST: &str = "list";
const LIST_OF_CYCLES: &str = "list-of-cycles";
const PLUGIN: &str = "plugin.so";
/// Endings of the files of a machine.
const RUN: &str = "run";
const SEEN: &str = "seen";

/// The option of QEMU that loads a plugin.
const OPTION: &str = "-plugin";

static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Watches what this process boots from now on, into a folder that is empty at first. Returns it; `None` if what
/// started this process watches already.
///
/// # Errors
/// The folder cannot be made.
pub fn watch_into(folder: PathBuf) -> Result<Option<&'static Path>> {
    if std::env::var_os(VARIABLE).is_some() {
        return Ok(None);
    }
    workspace::empty(&folder)?;
    Ok(FOLDER.get_or_init(|| Some(folder)).as_deref())
}

/// Watches `boot`, which comes next. Returns the folder, as [`watch_into`].
///
/// # Errors
/// It cannot be watched; the message says what can.
pub fn watch_one(boot: &Boot) -> Result<Option<&'static Path>> {
    ensure!(
        watched_kernel(boot).is_some(),
        "`--visits` is for the kernel whose bounds are computed: `--kernel release`, on one core, and not from a disk"
    );
    watch_into(workspace::target_dir().join(format!("visits-{}", process::id())))
}

/// Shows what was seen, and what of that exceeds what was computed. Returns the latter. The folder goes.
///
/// # Errors
/// Files that cannot be read.
pub fn show(folder: &Path) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for arch in Arch::ALL {
        let seen = Seen::gather(folder, arch)?;
        let expected = Expected::recorded(arch)?;
        eprint!("{}", seen.maxima(&expected));
        findings.extend(seen.findings(&expected));
    }
    // Only we have read it; a folder that stays behind is no failure.
    let _ = fs::remove_dir_all(folder);
    for finding in &findings {
        eprintln!("EXCEEDED: {finding}");
    }
    Ok(findings)
}

/// Where what is seen is written.
pub fn folder() -> Option<&'static Path> {
    FOLDER
        .get_or_init(|| std::env::var_os(VARIABLE).map(PathBuf::from))
        .as_deref()
}

/// QEMU's own arguments of `boot`, with what watches it if it is to be watched.
///
/// # Errors
/// The plugin does not build, the kernel cannot be read, or a limit of ways does not apply to it.
pub fn arguments(boot: &Boot) -> Result<Vec<OsString>> {
    let mut arguments = boot.extra_args.clone();
    if let (Some(folder), Some(kernel)) = (folder(), watched_kernel(boot)) {
        let list = prepare(folder, kernel).context("cannot watch the visits of the kernel")?;
        let name = fresh_name(folder, boot)?;
        add(&mut arguments, folder, &list, &name);
    }
    Ok(arguments)
}

/// What is watched of a kernel; with cycles, it is a list of its own.
fn list(folder: &Path, kernel: &Path) -> PathBuf {
    let ending = match std::env::var_os(MODELS) {
        Some(_) => LIST_OF_CYCLES,
        None => LIST,
    };
    let name = kernel.with_extension(ending);
    folder.join(name.file_name().unwrap_or_default())
}

/// The kernels for an architecture whose bounds are those that are recorded.
pub fn shipped(arch: Arch) -> Vec<KernelOptions> {
    let release = KernelOptions::new(Variant::Release).for_arch(arch);
    match arch {
        Arch::X86_64 => vec![release],
        Arch::Aarch64 => vec![
            release.clone(),
            release.clone().with_user_clock(),
            release.with_user_timer(),
        ],
    }
}

/// The processors on which cycles are counted, too, and their names.
fn models() -> Result<Vec<(String, Model)>> {
    let Ok(names) = std::env::var(MODELS) else {
        return Ok(Vec::new());
    };
    let known = names.split(',').map(|name| {
        let processor = Processor::named(name)?;
        Ok(processor.map(|processor| (name.to_owned(), processor.model)))
    });
    known.filter_map(Result::transpose).collect()
}

/// The kernel of `boot`, if its bounds are computed: the release kernel as it ships, on one core.
fn watched_kernel(boot: &Boot) -> Option<&Path> {
    let Medium::Files { kernel, .. } = &boot.medium else {
        return None;
    };
    let shipped = shipped(boot.machine.arch);
    let is_shipped = shipped
        .iter()
        .any(|options| *kernel == kernel::file(options));
    (is_shipped && boot.machine.cores == 1).then_some(kernel)
}

/// Puts the plugin and the list of a kernel into the folder, unless they are there: whoever watches first does it for all.
/// Returns the list's file.
fn prepare(folder: &Path, kernel: &Path) -> Result<PathBuf> {
    static PREPARED: Mutex<BTreeMap<PathBuf, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut prepared = PREPARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(list) = prepared.get(kernel) {
        return Ok(list.clone());
    }
    let _lock = workspace::lock(folder)?;
    let list = list(folder, kernel);
    let copy = folder.join(PLUGIN);
    if !copy.exists() {
        let built = plugin::build()?;
        fs::copy(&built, &copy).with_context(|| format!("cannot copy {}", built.display()))?;
    }
    if !list.exists() {
        let image = Image::read(kernel)?;
        let limits = Limits::parse(&verdict::read(verdict::LIMITS)?)?.resolve(&image)?;
        let mut text = watch::list(&image, &limits)?;
        let models = models()?;
        if !models.is_empty() {
            text += &watch::processors(&image, &models)?;
        }
        fs::write(&list, text).with_context(|| format!("cannot write {}", list.display()))?;
    }
    prepared.insert(kernel.to_owned(), list.clone());
    Ok(list)
}

/// A name for the files of the machine; that which says what it is is written.
fn fresh_name(folder: &Path, boot: &Boot) -> Result<String> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("{}-{number}", process::id());
    let path = folder.join(&name).with_extension(RUN);
    let text = format!("{}\n{}", boot.machine.arch.name(), description(boot));
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(name)
}

/// What the machine is, for messages: its root task, the test that boots it, as far as its thread has its name, and what
/// its arguments tell the system.
fn description(boot: &Boot) -> String {
    let mut text = match &boot.medium {
        Medium::Files { root_task, .. } => root_task.file_stem().unwrap_or_default(),
        Medium::Loader { archive: file, .. } | Medium::Disk { image: file, .. } => {
            file.file_stem().unwrap_or_default()
        }
    }
    .to_string_lossy()
    .into_owned();
    if let Some(test) = std::thread::current()
        .name()
        .filter(|name| name.contains("::"))
    {
        text += &format!(", in the test {test}");
    }
    let mut arguments = boot.extra_args.iter().map(|it| it.to_string_lossy());
    while let Some(argument) = arguments.next() {
        if argument == "-fw_cfg" {
            text += &format!(", {}", arguments.next().unwrap_or_default());
        }
    }
    text
}

/// Adds the plugin to QEMU's arguments; one that measures something else does both.
fn add(arguments: &mut Vec<OsString>, folder: &Path, list: &Path, name: &str) {
    let is_option = |argument: &OsString| argument == OPTION;
    let place = arguments
        .iter()
        .position(is_option)
        .map(|option| option + 1);
    let place = place
        .filter(|&place| place < arguments.len())
        .unwrap_or_else(|| {
            arguments.extend([OPTION.into(), folder.join(PLUGIN).into()]);
            arguments.len() - 1
        });
    let argument = &mut arguments[place];
    for (option, file) in [
        ("visits", list.to_owned()),
        ("visits_out", folder.join(name).with_extension(SEEN)),
    ] {
        argument.push(format!(",{option}="));
        argument.push(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cores::Cores;
    use crate::qemu::Machine;

    fn boot(options: &KernelOptions) -> Boot {
        Boot::new(kernel::file(options), "folder/root.elf")
    }

    #[test]
    fn only_the_kernel_that_ships_is_watched_on_one_core() {
        let release = boot(&KernelOptions::new(Variant::Release));
        assert!(watched_kernel(&release).is_some());
        let on_aarch64 = |options: KernelOptions| {
            let mut boot = boot(&options.for_arch(Arch::Aarch64).with_user_timer());
            boot.machine = Machine::of(Arch::Aarch64);
            boot
        };
        let release_on_aarch64 = on_aarch64(KernelOptions::new(Variant::Release));
        assert!(watched_kernel(&release_on_aarch64).is_some());
        let debug_on_aarch64 = on_aarch64(KernelOptions::new(Variant::Debug));
        assert!(watched_kernel(&debug_on_aarch64).is_none());
        let mut two = release.clone();
        two.machine.cores = 2;
        assert!(watched_kernel(&two).is_none());
        let others = [
            KernelOptions::new(Variant::Debug),
            KernelOptions::on(Variant::Release, Cores::Smp(1)),
            KernelOptions::new(Variant::Release).traced(),
        ];
        for other in others {
            assert!(watched_kernel(&boot(&other)).is_none(), "{other:?}");
        }
        assert!(watched_kernel(&Boot::new(
            "/elsewhere/sandglass-kernel-release.elf",
            "root"
        ))
        .is_none());
    }

    #[test]
    fn a_plugin_that_measures_something_else_watches_too() {
        let folder = Path::new("folder");
        let mut arguments: Vec<OsString> = ["-m", "1", "-plugin", "p.so,out=o", "-x"]
            .map(Into::into)
            .into();
        add(&mut arguments, folder, Path::new("folder/list"), "n");
        let both = "p.so,out=o,visits=folder/list,visits_out=folder/n.seen";
        assert_eq!(arguments, ["-m", "1", "-plugin", both, "-x"]);
        let mut arguments = vec!["-x".into()];
        add(&mut arguments, folder, Path::new("folder/list"), "n");
        let alone = "folder/plugin.so,visits=folder/list,visits_out=folder/n.seen";
        assert_eq!(arguments, ["-x", "-plugin", alone]);
    }

    #[test]
    fn a_machine_is_known_by_its_system_and_what_that_is_told() {
        let mut boot = boot(&KernelOptions::new(Variant::Release));
        boot.extra_args = ["-fw_cfg", "name=opt/sandglass/seed,string=7", "-x"]
            .map(Into::into)
            .into();
        let text = description(&boot);
        assert!(
            text.starts_with("root") && text.ends_with("string=7"),
            "{text}"
        );
    }
}
