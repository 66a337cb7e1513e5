//! `sandglass debug`: a described system under gdb, which stops before anything has started.
//!
//! The emulator waits for a debugger. What that needs to know of the system is in a file ([`session`]); the commands
//! for it are gdb's Python in `tools/gdb`. Either this process becomes gdb, so that the terminal is gdb's alone; or,
//! with `--wait`, it stays with the emulator, and whoever likes connects.

mod session;

use std::env;
use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};

use crate::arch::Arch;
use crate::boot;
use crate::cli::DebugArgs;
use crate::kernel;
use crate::program::Profile;
use crate::qemu::{self, Boot};
use crate::system::{self, Description, Source, Symbols};
use crate::toolchain::find_on_path;
use crate::workspace;
use session::{Breakpoint, Session, Target};

/// The debugger for an architecture, and Debian's package of it.
const fn debugger(arch: Arch) -> (&'static str, &'static str) {
    match arch {
        Arch::X86_64 => ("gdb", "gdb"),
        Arch::Aarch64 => ("gdb-multiarch", "gdb-multiarch"),
    }
}

/// The commands, below the repository's root.
const COMMANDS: &str = "tools/gdb/sandglass.py";
/// gdb's and the emulator's habit.
pub const DEFAULT_PORT: u16 = 1234;
/// How often, and how long, the emulator's socket is waited for.
const LOOKS: u32 = 600;
const PAUSE: Duration = Duration::from_millis(50);

/// `sandglass debug`: ends as gdb ends; or with `--wait`, as the system does.
pub fn run(args: &DebugArgs) -> Result<ExitCode> {
    let conditions = &args.conditions;
    ensure!(
        args.wait || conditions.until.is_none() && conditions.timeout.is_none(),
        "`--until` and `--timeout` end a run that nobody has stopped: they need `--wait`"
    );
    if let Some(script) = &args.script {
        ensure!(
            script.is_file(),
            "the script `{}` is not a file",
            script.display()
        );
    }
    let description = system::check(&Source::read(&args.system)?.for_arch(args.arch))?;
    let (name, package) = debugger(description.arch);
    let gdb = find_on_path(name);
    if gdb.is_none() && !args.wait {
        bail!("`{name}` is not installed: on Debian, `apt-get install {package}`");
    }
    let breakpoints = args
        .breakpoints
        .iter()
        .map(|text| Breakpoint::parse(text, &description.system))
        .collect::<Result<Vec<_>>>()?;
    let profile = match args.unoptimised {
        true => Profile::Unoptimised,
        false => Profile::Release,
    };
    let folder = match args.wait {
        true => kept_folder(&description.system.name, args.port),
        false => env::temp_dir().join(format!("sandglass-debug-{}", process::id())),
    };
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let image = folder.join(".image.elf");
    let (built, symbols) = system::build_with_symbols(profile, &description, &image)?;
    let cores = built.cores_with(args.cores)?;
    let options = built.kernel(conditions.variant(), cores);
    let options = conditions.speculation.of(options)?;
    let kernel = kernel::build(&options)?;
    let mut boot = built.boot(&kernel);
    boot.machine.cores = cores.number();
    boot.machine.suit(&options);
    boot.extra_args.push("-S".into());
    let prepared = Prepared {
        description: &description,
        symbols: &symbols,
        kernel: &kernel,
        breakpoints,
        folder: &folder,
    };
    match gdb {
        Some(gdb) if !args.wait => prepared.become_gdb(&gdb, args, boot),
        _ => prepared.wait(args, boot),
    }
}

/// Where what a debugger needs to know is kept, so that settings of editors can name it: for each port another, since
/// one machine waits at each.
fn kept_folder(system: &str, port: u16) -> PathBuf {
    let name = match port {
        DEFAULT_PORT => system.to_owned(),
        port => format!("{system}-{port}"),
    };
    workspace::target_dir().join("debug-sessions").join(name)
}

/// A system that is built, and where to stop it.
struct Prepared<'a> {
    description: &'a Description,
    symbols: &'a Symbols,
    kernel: &'a Path,
    breakpoints: Vec<Breakpoint>,
    /// Of this session.
    folder: &'a Path,
}

impl Prepared<'_> {
    /// Writes everything that a debugger needs to know, and returns the file that it begins with.
    fn write_session(&self, target: Target) -> Result<PathBuf> {
        let files = session::write_symbols(self.folder, &self.description.system, self.symbols)?;
        let breakpoints = self.breakpoints.clone();
        let session = Session::new(
            self.description.arch,
            &self.description.system,
            files,
            self.kernel,
            breakpoints,
            target,
        );
        let file = self.folder.join("session.json");
        session.write(&file)?;
        Ok(file)
    }

    /// Starts the emulator, and gdb in the place of this process. Does not return, if all goes well.
    fn become_gdb(self, gdb: &Path, args: &DebugArgs, mut boot: Boot) -> Result<ExitCode> {
        let socket = self.folder.join("gdb");
        let address = socket
            .to_str()
            .context("the folder for temporary files is not UTF-8")?;
        let file = self.write_session(Target::Socket(address.to_owned()))?;
        boot.extra_args.push("-gdb".into());
        boot.extra_args
            .push(format!("unix:{},server=on,wait=off", address.replace(',', ",,")).into());
        if let Some(model) = &args.conditions.model {
            boot.machine.model.clone_from(model);
        }
        if let Some(cpu) = &args.conditions.cpu {
            boot.machine.cpu.clone_from(cpu);
        }
        boot.machine.icount = args.conditions.icount;
        boot.machine.is_debugged = true;
        let complaints = self.folder.join("emulator.txt");
        let mut emulator = start(&boot, &complaints)?;
        await_socket(&mut emulator, &socket)
            .with_context(|| fs::read_to_string(&complaints).unwrap_or_default())?;
        let mut command = gdb_command(gdb, &file);
        if let Some(script) = &args.script {
            command.arg("-batch").arg("-x").arg(script);
        }
        // The emulator ends with the process that it was started by, which is gdb from now on.
        Err(command.exec()).with_context(|| format!("cannot run {}", gdb.display()))
    }

    /// Runs the emulator until the system ends, and says how to connect.
    fn wait(self, args: &DebugArgs, mut boot: Boot) -> Result<ExitCode> {
        let port = args.port;
        ensure!(
            TcpListener::bind(("127.0.0.1", port)).is_ok(),
            "the port {port} of this machine is in use: `--port` takes another one"
        );
        let file = self.write_session(Target::Port(port))?;
        boot.extra_args.push("-gdb".into());
        boot.extra_args.push(format!("tcp:127.0.0.1:{port}").into());
        eprintln!("waiting for a debugger. From another terminal:");
        eprintln!(
            "    {} -x {} -ex 'sg attach {}'",
            debugger(self.description.arch).0,
            workspace::root().join(COMMANDS).display(),
            file.display()
        );
        eprintln!("For VS Code, see the page \"Debugging\" of the book.");
        boot::run_under(&args.conditions, boot)
    }
}

/// The emulator in the background, with its console on our standard output, and what it has to say itself in a file. Interrupts from the terminal are for gdb,
/// so it is not in the terminal's process group.
fn start(boot: &Boot, complaints: &Path) -> Result<Child> {
    let complaints = File::create(complaints)
        .with_context(|| format!("cannot write {}", complaints.display()))?;
    let mut command = qemu::command(boot)?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::inherit())
        .stderr(complaints)
        .process_group(0);
    command.spawn().context("cannot run the emulator")
}

fn await_socket(emulator: &mut Child, socket: &Path) -> Result<()> {
    for _ in 0..LOOKS {
        if socket.exists() {
            return Ok(());
        }
        if let Some(status) = emulator
            .try_wait()
            .context("cannot wait for the emulator")?
        {
            bail!("the emulator has ended ({status}) instead of waiting for gdb");
        }
        thread::sleep(PAUSE);
    }
    // An emulator that has ended meanwhile cannot be ended.
    let _ = emulator.kill();
    bail!("the emulator does not open its socket for gdb")
}

/// gdb with our commands, connected. Settings of the user's are read first.
fn gdb_command(gdb: &Path, session: &Path) -> Command {
    let mut command = Command::new(gdb);
    command.arg("-q").arg("-x");
    command.arg(workspace::root().join(COMMANDS));
    command
        .arg("-ex")
        .arg(format!("sg attach {}", session.display()));
    command
}
