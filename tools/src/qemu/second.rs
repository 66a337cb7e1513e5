//! A second emulator, newer than the one that is installed: for machines that this does not have, such as those with x2APIC
//! mode. Plugins and figures keep to the installed one.
//!
//! It is fetched by command, and not by the tests: Debian's packages, from the suite of backports to the release whose
//! libraries they need, by apt with lists and a cache of its own, so that what is installed stays as it is. They are
//! unpacked in the target directory, and run from there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, ensure, Context, Result};

use crate::workspace;

/// QEMU's version.
pub const VERSION: &str = "10.0.2";

/// How it is fetched, for a message.
pub const ADVICE: &str = "`./sandglass machine emulator` fetches it";

/// The archive's signature is checked by the keys that Debian installs.
const SOURCE: &str = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
    http://deb.debian.org/debian bookworm-backports main\n";

struct Package {
    name: &'static str,
    version: &'static str,
    sha256: &'static str,
}

const QEMU: &str = "1:10.0.2+ds-2+deb13u1~bpo12+1";

/// The emulator, what it loads, and the firmware of its machines.
const PACKAGES: [Package; 4] = [
    Package {
        name: "qemu-system-x86",
        version: QEMU,
        sha256: "4a6b1856c8b0d7df4ff8e70249e12c473ccf8d516aadb4ae14d3d938faed0c65",
    },
    Package {
        name: "qemu-system-common",
        version: QEMU,
        sha256: "23a4672a138832d7173855e981aa8282c73ef5e04e080fa7ada9f82c6b34f507",
    },
    Package {
        name: "qemu-system-data",
        version: QEMU,
        sha256: "2d831088187087013b3fcbd19bdfb955b182a2d5a08f6dafa0ad1c6d2007fb4e",
    },
    Package {
        name: "seabios",
        version: "1.16.3-2~bpo12+1",
        sha256: "48390d0a534c66d11789e39518aa219773a9d3677b29fe1af8799dfb563ec713",
    },
];

/// Where it is unpacked, in the target directory, and the file there that is written when all of it is.
const FOLDER: &str = "second-emulator";
const COMPLETE: &str = "complete";

const PROGRAM: &str = "usr/bin/qemu-system-x86_64";
const MODULES: &str = "usr/lib/x86_64-linux-gnu/qemu";
const FIRMWARE: [&str; 2] = ["usr/share/qemu", "usr/share/seabios"];

fn folder() -> PathBuf {
    workspace::target_dir().join(FOLDER)
}

/// What the file says that is written in the end: which packages have been unpacked.
fn contents() -> String {
    let line = |package: &Package| format!("{} {}\n", package.name, package.sha256);
    PACKAGES.iter().map(line).collect()
}

/// Whether it is there.
pub fn is_there() -> bool {
    fs::read_to_string(folder().join(COMPLETE)).is_ok_and(|text| text == contents())
}

/// The program, and the arguments and the variable by which it finds what belongs to it.
pub struct Program {
    pub path: PathBuf,
    pub arguments: Vec<PathBuf>,
    pub modules: (&'static str, PathBuf),
}

/// The emulator, as it is run.
///
/// # Errors
/// It has not been fetched.
pub fn program() -> Result<Program> {
    ensure!(
        is_there(),
        "the second emulator, QEMU {VERSION}, is not there: {ADVICE}"
    );
    let root = folder();
    let arguments = FIRMWARE
        .iter()
        .flat_map(|firmware| ["-L".into(), root.join(firmware)]);
    Ok(Program {
        path: root.join(PROGRAM),
        arguments: arguments.collect(),
        modules: ("QEMU_MODULE_DIR", root.join(MODULES)),
    })
}

/// Fetches and unpacks it, if it is not there, and returns where it is.
///
/// # Errors
/// A package cannot be had, is another one than is expected, or does not run here.
pub fn fetch() -> Result<PathBuf> {
    let root = folder();
    if is_there() {
        println!("QEMU {VERSION} is there already");
        return Ok(root.join(PROGRAM));
    }
    if root.exists() {
        fs::remove_dir_all(&root).with_context(|| format!("cannot remove {}", root.display()))?;
    }
    let apt = Apt::new(root.join("apt"))?;
    println!("fetching the lists of Debian's backports, beside those of this system");
    run(apt.command("apt-get").arg("update"))?;
    for package in &PACKAGES {
        println!("fetching {} {}", package.name, package.version);
        let file = apt.download(package)?;
        run(Command::new("dpkg-deb").arg("-x").arg(&file).arg(&root))?;
        fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
    }
    let program = root.join(PROGRAM);
    run(Command::new(&program).arg("--version")).context(
        "it needs the libraries of the installed emulator: on Debian, `apt-get install qemu-system-x86`",
    )?;
    fs::remove_dir_all(&apt.0).with_context(|| format!("cannot remove {}", apt.0.display()))?;
    let complete = root.join(COMPLETE);
    fs::write(&complete, contents())
        .with_context(|| format!("cannot write {}", complete.display()))?;
    Ok(program)
}

/// A folder with apt's lists of one suite.
struct Apt(PathBuf);

impl Apt {
    fn new(folder: PathBuf) -> Result<Self> {
        for part in ["lists/partial", "cache/archives/partial"] {
            let part = folder.join(part);
            fs::create_dir_all(&part).with_context(|| format!("cannot make {}", part.display()))?;
        }
        let sources = folder.join("sources.list");
        fs::write(&sources, SOURCE)
            .with_context(|| format!("cannot write {}", sources.display()))?;
        Ok(Self(folder))
    }

    /// A command of apt's that knows this suite only, and writes here only.
    fn command(&self, name: &str) -> Command {
        let folder = self.0.display();
        let mut command = Command::new(name);
        command.current_dir(&self.0);
        for option in [
            format!("Dir::Etc::sourcelist={folder}/sources.list"),
            "Dir::Etc::sourceparts=/dev/null".to_owned(),
            format!("Dir::State::lists={folder}/lists"),
            format!("Dir::Cache={folder}/cache"),
            "Acquire::Languages=none".to_owned(),
            "APT::Architecture=amd64".to_owned(),
            "APT::Architectures=amd64".to_owned(),
        ] {
            command.args(["-o", &option]);
        }
        command
    }

    /// Fetches a package, and returns its file.
    fn download(&self, package: &Package) -> Result<PathBuf> {
        let wanted = format!("{}={}", package.name, package.version);
        run(self.command("apt-get").args(["download", &wanted]))?;
        let mut files = fs::read_dir(&self.0)?.filter_map(|entry| Some(entry.ok()?.path()));
        let file = files
            .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
            .with_context(|| format!("apt has not left a file of {wanted}"))?;
        let sum = sha256(&file)?;
        ensure!(
            sum == package.sha256,
            "{} has the SHA-256 {sum}, but must have {}",
            file.display(),
            package.sha256
        );
        Ok(file)
    }
}

fn sha256(file: &Path) -> Result<String> {
    let output = run(Command::new("sha256sum").arg(file))?;
    let sum = output.split_whitespace().next();
    Ok(sum.context("`sha256sum` says nothing")?.to_owned())
}

/// Runs a command, and returns what it prints.
fn run(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{command:?} fails ({}): {}",
            output.status,
            complaint.trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
