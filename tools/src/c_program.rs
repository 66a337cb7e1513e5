//! Components in C: sources that a description lists, compiled and linked with the runtime's library for C.
//!
//! Nothing that was compiled before is used again: a component has few sources, and what is not kept is not stale.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

use anyhow::{bail, ensure, Context, Result};
use cargo_metadata::{Message, TargetKind};
use sandglass_build::{
    AARCH64_C_LINK_ARGUMENTS, AARCH64_LINK_ARGUMENTS, AARCH64_TARGET, C_LINK_ARGUMENTS,
    LINK_ARGUMENTS,
};

use crate::arch::Arch;
use crate::c_roots::AARCH64_COMPILER;
use crate::cli::CFlagsArgs;
use crate::program::{self, Elf, Profile, FRAME_POINTERS, TARGET_FOLDER, USER_TARGET};
use crate::side_by_side;
use crate::toolchain::{self, find_on_path};
use crate::workspace;

/// The package of the library.
const PACKAGE: &str = "sandglass-c";
/// Where its header is, in the repository.
const HEADERS: &str = "user/c/include";
/// As the linker is told.
const LIBRARY: &str = "sandglass";

/// Compilers, the first that is there.
const COMPILERS: &[&str] = &["cc", "gcc", "clang"];

/// How sources are compiled, before what their description says. Frame pointers are for backtraces; debugging information
/// stays on the host.
const COMPILE_ARGUMENTS: &[&str] = &[
    "-std=gnu11",
    "-O2",
    "-g",
    "-Wall",
    "-Wextra",
    "-ffreestanding",
    "-fno-pie",
    "-fno-omit-frame-pointer",
    "-fno-asynchronous-unwind-tables",
    "-ffunction-sections",
    "-fdata-sections",
];

/// A program in C.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CProgram {
    /// What paths are relative to.
    folder: PathBuf,
    /// As the description has them.
    sources: Vec<String>,
    include: Vec<String>,
    flags: Vec<String>,
}

impl CProgram {
    /// A program of sources in `folder`.
    pub fn new(folder: &Path, sources: &[String], include: &[String], flags: &[String]) -> Self {
        Self {
            folder: folder.to_owned(),
            sources: sources.to_vec(),
            include: include.to_vec(),
            flags: flags.to_vec(),
        }
    }

    /// For messages.
    fn name(&self) -> String {
        self.sources.join(", ")
    }

    /// Where it is built: a folder of its own.
    fn target_dir(&self, arch: Arch) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        let folder = std::path::absolute(&self.folder);
        folder.unwrap_or_default().hash(&mut hasher);
        self.hash(&mut hasher);
        let first = self.sources.first().map(Path::new);
        let stem = first.and_then(Path::file_stem).unwrap_or_default();
        let name = format!("{}-{:016x}", stem.to_string_lossy(), hasher.finish());
        target_dir(arch).join(name)
    }

    /// The object of a source.
    fn object(&self, arch: Arch, number: usize) -> PathBuf {
        self.target_dir(arch).join(format!("{number}.o"))
    }

    /// A compiler of one of its sources. Files are called as in the description, below the folder as the user called that;
    /// `__FILE__` is without the folder, so that a program does not depend on where it is.
    fn compile(&self, compiler: &Path, source: &str, object: &Path) -> Command {
        let mut command = Command::new(compiler);
        command.args(COMPILE_ARGUMENTS).arg(headers());
        if !self.folder.as_os_str().is_empty() {
            let folder = self.folder.display();
            command.arg(format!("-fmacro-prefix-map={folder}/="));
        }
        for include in &self.include {
            command.arg("-I").arg(self.folder.join(include));
        }
        command
            .args(&self.flags)
            .arg("-c")
            .arg(self.folder.join(source))
            .arg("-o")
            .arg(object);
        command
    }
}

/// Where programs in C are built, each in a folder, and where the library is.
fn target_dir(arch: Arch) -> PathBuf {
    let all = workspace::target_dir().join("c");
    match arch {
        Arch::X86_64 => all,
        Arch::Aarch64 => all.join(arch.name()),
    }
}

/// Builds programs and returns them in that order: those that were built just now, whoever else builds.
///
/// # Errors
/// There is no compiler; or one does not build, with the compiler's messages.
pub fn read_all(arch: Arch, programs: &[&CProgram], profile: Profile) -> Result<Vec<Elf>> {
    if programs.is_empty() {
        return Ok(Vec::new());
    }
    let compiler = compiler(arch)?;
    ensure!(
        toolchain::lld().is_some(),
        "`ld.lld` is not installed: on Debian, `apt-get install lld`"
    );
    let library = build_library(arch)?;
    // Nobody else builds there meanwhile, or writes what is read.
    let _lock = workspace::lock(&target_dir(arch))?;
    let names: Vec<String> = programs.iter().map(|program| program.name()).collect();
    eprintln!("building {}", names.join(", "));
    compile_all(arch, programs, &compiler, profile)?;
    let linked = programs
        .iter()
        .map(|program| link(arch, program, &compiler, &library));
    program::read(linked.collect::<Result<_>>()?)
}

/// The C compiler: `CC`, or the first that is there; for aarch64 Debian's.
fn compiler(arch: Arch) -> Result<PathBuf> {
    if arch == Arch::Aarch64 {
        let (name, package) = AARCH64_COMPILER;
        return find_on_path(name).with_context(|| {
            format!("no C compiler for aarch64 is installed: on Debian, `apt-get install {package}`, which has `{name}`")
        });
    }
    if let Some(compiler) = std::env::var_os("CC").filter(|compiler| !compiler.is_empty()) {
        return Ok(PathBuf::from(compiler));
    }
    COMPILERS
        .iter()
        .find_map(|name| find_on_path(name))
        .context("no C compiler is installed: on Debian, `apt-get install gcc`; or set `CC`")
}

fn headers() -> String {
    format!("-I{}", workspace::root().join(HEADERS).display())
}

/// Compiles all sources. Warnings are shown as the compiler words them.
fn compile_all(
    arch: Arch,
    programs: &[&CProgram],
    compiler: &Path,
    profile: Profile,
) -> Result<()> {
    let mut sources = Vec::new();
    for program in programs {
        let folder = program.target_dir(arch);
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        sources.extend((0..program.sources.len()).map(|number| (program, number)));
    }
    let compile = |&(program, number): &(&&CProgram, usize)| {
        let object = program.object(arch, number);
        let mut command = program.compile(compiler, &program.sources[number], &object);
        if profile == Profile::Unoptimised {
            command.arg("-O0");
        }
        run(&mut command)
    };
    let outputs = side_by_side::run(&sources, compile, |_, _| ())?;
    let said: String = outputs.iter().map(messages).collect();
    let wrong = sources.iter().zip(&outputs);
    let wrong = wrong.filter(|(_, output)| !output.status.success());
    let wrong: Vec<&str> = wrong
        .map(|((program, number), _)| program.sources[*number].as_str())
        .collect();
    if !wrong.is_empty() {
        bail!(
            "{} does not compile:\n{}",
            wrong.join(", "),
            said.trim_end()
        );
    }
    eprint!("{said}");
    Ok(())
}

/// Links a program that was compiled, and returns its ELF file.
fn link(arch: Arch, program: &CProgram, compiler: &Path, library: &Path) -> Result<PathBuf> {
    let elf = program.target_dir(arch).join("program.elf");
    let objects = (0..program.sources.len()).map(|number| program.object(arch, number));
    let mut command = match arch {
        Arch::X86_64 => {
            let mut command = Command::new(compiler);
            command.args(C_LINK_ARGUMENTS).args(LINK_ARGUMENTS);
            command.args(objects).arg(library).arg("-lgcc");
            command
        }
        Arch::Aarch64 => {
            let mut command = Command::new(toolchain::lld().context("it was looked for")?);
            command.args(AARCH64_C_LINK_ARGUMENTS);
            command.args(AARCH64_LINK_ARGUMENTS);
            command
                .args(objects)
                .arg(library)
                .arg(compilers_library(compiler)?);
            command
        }
    };
    command.arg("-o").arg(&elf);
    let output = run(&mut command)?;
    let said = messages(&output);
    if !output.status.success() {
        let help = help_with_linking(&said);
        bail!(
            "{} does not link:\n{}{help}",
            program.name(),
            said.trim_end()
        );
    }
    eprint!("{said}");
    Ok(elf)
}

/// The library of what the compiler calls without being asked to.
fn compilers_library(compiler: &Path) -> Result<PathBuf> {
    let output = run(Command::new(compiler).arg("-print-libgcc-file-name"))?;
    let path = String::from_utf8_lossy(&output.stdout);
    Ok(PathBuf::from(path.trim()))
}

fn run(command: &mut Command) -> Result<Output> {
    command.stdin(Stdio::null());
    command.output().with_context(|| {
        let program = command.get_program().to_string_lossy().into_owned();
        format!("cannot run the C compiler `{program}`")
    })
}

/// What a compiler said.
fn messages(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What to do about functions that there are not, as far as it is known.
fn help_with_linking(said: &str) -> String {
    /// Of the C library, and what there is instead.
    const INSTEAD: &[(&str, &str)] = &[
        ("main", "a program in C has a function `int main(void)`"),
        ("printf", "use `sg_printf`"),
        ("puts", "use `sg_puts`"),
        ("putchar", "use `sg_printf`"),
        ("snprintf", "use `sg_snprintf`"),
        ("exit", "use `sg_exit`"),
        ("abort", "use `sg_panic`"),
    ];
    let mut help = String::new();
    for line in said.lines() {
        let Some((_, symbol)) = line.split_once("undefined symbol: ") else {
            continue;
        };
        let known = INSTEAD.iter().find(|(name, _)| *name == symbol.trim());
        let instead = known.map_or(
            "there is no C library: define it, or add its source",
            |(_, instead)| instead,
        );
        help += &format!("\nhelp: `{}`: {instead}", symbol.trim());
    }
    help
}

/// A command that builds the library; clippy looks at what belongs to the workspace on the way.
pub fn library_command() -> Command {
    let mut cargo = toolchain::linted_cargo();
    cargo.args(["rustc", "--release", "--package", PACKAGE, "--lib"]);
    cargo.args(["--crate-type", "staticlib", "--features", "program"]);
    cargo.args(FRAME_POINTERS).args(["--target", USER_TARGET]);
    let built_in = workspace::target_dir().join(TARGET_FOLDER);
    cargo.arg("--target-dir").arg(built_in);
    cargo
}

/// A command that builds it for aarch64.
fn library_command_for_aarch64() -> Result<Command> {
    let mut cargo = toolchain::KernelToolchain::user_cargo("rustc", AARCH64_TARGET)?;
    cargo.args(["--release", "--package", PACKAGE, "--lib"]);
    cargo.args(["--crate-type", "staticlib", "--features", "program"]);
    cargo.env(
        program::AARCH64_RUSTFLAGS_VARIABLE,
        program::AARCH64_RUSTFLAGS,
    );
    let built_in = workspace::target_dir().join(TARGET_FOLDER);
    cargo.arg("--target-dir").arg(built_in);
    Ok(cargo)
}

/// Builds the library and returns its path. Whoever links with a former one meanwhile has that whole.
fn build_library(arch: Arch) -> Result<PathBuf> {
    let built_in = workspace::target_dir().join(TARGET_FOLDER);
    let lock = workspace::lock(&built_in)?;
    let mut cargo = match arch {
        Arch::X86_64 => library_command(),
        Arch::Aarch64 => library_command_for_aarch64()?,
    };
    cargo.args(["--message-format", "json-render-diagnostics"]);
    let artifacts = toolchain::build(&mut cargo, "the library for C")?;
    let mut built = None;
    for message in Message::parse_stream(artifacts.as_slice()) {
        if let Message::CompilerArtifact(artifact) =
            message.context("cannot read cargo's output")?
        {
            if artifact.target.kind.contains(&TargetKind::StaticLib)
                || artifact.target.name == "sandglass_c"
            {
                built = artifact
                    .filenames
                    .into_iter()
                    .find(|path| path.extension() == Some("a"));
            }
        }
    }
    let built = built.context("cargo built no library for C")?;
    let folder = target_dir(arch);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let library = folder.join(format!("lib{LIBRARY}.a"));
    let fresh = folder.join(format!("lib{LIBRARY}.a.new-{}", std::process::id()));
    fs::copy(&built, &fresh)
        .and_then(|_| fs::rename(&fresh, &library))
        .with_context(|| format!("cannot write {}", library.display()))?;
    drop(lock);
    Ok(library)
}

/// A folder below `folder` with the linker under the name by which compilers for other machines look for it in the folders
/// that they are told of; on the search path, they look for one that is called after the machine.
///
/// # Errors
/// It is not installed, or cannot be linked to.
fn linkers(folder: &Path) -> Result<PathBuf> {
    let lld = toolchain::lld();
    let lld = lld.context("`ld.lld` is not installed: on Debian, `apt-get install lld`")?;
    let linkers = folder.join("linkers");
    fs::create_dir_all(&linkers).with_context(|| format!("cannot create {}", linkers.display()))?;
    let link = linkers.join("ld.lld");
    // Whoever else makes it makes the same.
    if let Err(error) = symlink(&lld, &link) {
        ensure!(
            error.kind() == ErrorKind::AlreadyExists,
            "cannot write {}: {error}",
            link.display()
        );
    }
    Ok(linkers)
}

/// `sandglass c-flags`: arguments for the C compiler, on one line.
pub fn run_flags(args: &CFlagsArgs) -> Result<ExitCode> {
    let library = build_library(args.arch)?;
    let folder = library.parent().context("the library is in a folder")?;
    let search = format!("-L{}", folder.display());
    let header = headers();
    let mut flags: Vec<&str> = Vec::new();
    if args.compile || !args.link {
        flags.extend(COMPILE_ARGUMENTS);
        flags.push(&header);
    }
    let library = format!("-l{LIBRARY}");
    let linkers = match args.arch {
        Arch::X86_64 => None,
        Arch::Aarch64 => Some(format!("-B{}", linkers(folder)?.display())),
    };
    if args.link || !args.compile {
        flags.extend(linkers.as_deref());
        flags.extend(C_LINK_ARGUMENTS.iter().chain(&LINK_ARGUMENTS));
        flags.extend([search.as_str(), library.as_str(), "-lgcc"]);
    }
    for flag in &flags {
        ensure!(
            !flag.contains(char::is_whitespace),
            "`{flag}` has a space in it, which a shell would take for the end of an argument: move the clone, or set \
             `CARGO_TARGET_DIR`, to a path without"
        );
    }
    println!("{}", flags.join(" "));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_has_a_remedy() {
        let said = "ld.lld: error: undefined symbol: printf\n>>> referenced by main.c:3\n\
                    ld.lld: error: undefined symbol: control_step\n";
        let help = help_with_linking(said);
        assert!(help.contains("`printf`: use `sg_printf`"), "{help}");
        assert!(
            help.contains("`control_step`: there is no C library"),
            "{help}"
        );
        assert_eq!(help_with_linking("duplicate symbol: main"), "");
    }

    #[test]
    fn programs_that_differ_are_built_apart() {
        let program = |sources: &[&str], flags: &[&str]| {
            let owned = |texts: &[&str]| -> Vec<String> {
                texts.iter().map(|text| (*text).to_owned()).collect()
            };
            CProgram::new(Path::new("a"), &owned(sources), &[], &owned(flags))
                .target_dir(Arch::X86_64)
        };
        let plain = program(&["main.c"], &[]);
        assert_eq!(plain, program(&["main.c"], &[]));
        assert_ne!(plain, program(&["main.c"], &["-DX"]));
        assert_ne!(plain, program(&["main.c", "-DX"], &[]));
    }
}
