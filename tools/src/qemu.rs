//! Boots systems in QEMU and reports how they end.
//!
//! The guest ends a run by writing a status to the `isa-debug-exit` device; QEMU's own exit code
//! is then `status * 2 + 1`. On aarch64 it ends it by semihosting, and the status is QEMU's exit code. The console is the
//! first serial port.

pub mod gdb;
mod mode;
mod printer;
pub mod second;
pub mod session;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;

use self::printer::Printer;
pub use self::printer::{Annotate, Annotator};
use crate::arch::Arch;
use crate::board;
use crate::kernel::{flat_image, KernelOptions};
use crate::toolchain::find_on_path;
use crate::visits;

/// Status of a kernel that stops because what ran has left long mode, which no processor does and QEMU 7.2 may
/// (docs, "Run the storm").
pub const LEFT_LONG_MODE: u8 = 4;

/// Memory of the machine, in MiB, unless a run asks for another size.
pub const DEFAULT_MEMORY_MIB: u32 = 512;

/// How long QEMU may take to end when it is asked to.
const ORDERLY: Duration = Duration::from_secs(20);

/// Status of a run that did not end in time, as `timeout(1)` has it.
pub const TIMEOUT_STATUS: u8 = 124;

/// The machine to boot on.
#[derive(Debug, Clone)]
pub struct Machine {
    pub arch: Arch,
    /// QEMU's machine type.
    pub model: String,
    /// QEMU's `-cpu`.
    pub cpu: String,
    pub cores: u32,
    pub memory_mib: u32,
    /// With `Some(shift)`, virtual time: an instruction takes 2^shift ns, idling nothing.
    pub icount: Option<u8>,
    /// Whether a debugger stops it. Then idling takes the time of the host's clock instead: when QEMU goes on, it takes
    /// a stopped processor for an idle one, and would go on at the next deadline of a timer.
    pub is_debugged: bool,
}

impl Default for Machine {
    fn default() -> Self {
        Self::of(Arch::default())
    }
}

impl Machine {
    /// The default machine of an architecture.
    pub fn of(arch: Arch) -> Self {
        Self {
            arch,
            model: arch.machine_model().to_owned(),
            cpu: arch.cpu().to_owned(),
            cores: 1,
            memory_mib: DEFAULT_MEMORY_MIB,
            icount: None,
            is_debugged: false,
        }
    }

    /// Runs it in virtual time, in which an instruction takes 2^`shift` ns and a tick of the clock is a nanosecond.
    pub fn keep_virtual_time(&mut self, shift: u8) {
        self.icount = Some(shift);
        if self.arch == Arch::Aarch64 {
            self.cpu.push_str(VIRTUAL_CLOCK);
        }
    }

    /// Has the processor that `kernel` wants, if it wants another than the usual one.
    pub fn suit(&mut self, kernel: &KernelOptions) {
        if let Some(cpu) = kernel.cpu() {
            self.cpu = cpu.to_owned();
        }
    }
}

/// The option of an aarch64 processor whose counter counts nanoseconds.
const VIRTUAL_CLOCK: &str = ",cntfrq=1000000000";

/// Which emulator of x86_64 runs a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Emulator {
    /// The one that is installed.
    #[default]
    Installed,
    /// A newer one, which must have been [fetched](second).
    Second,
}

/// What the guest reads from its serial port.
#[derive(Debug, Clone, Default)]
pub enum Input {
    #[default]
    None,
    /// These bytes, then nothing.
    Bytes(Vec<u8>),
    /// Our own standard input.
    Inherit,
}

/// How a kernel begins that says why it does not start. Where it knows of no serial port, that comes by semihosting, and QEMU
/// prints it on its standard error.
const REFUSAL: &str = "Sandglass cannot start";

/// What starts a machine from a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Firmware {
    /// SeaBIOS, which QEMU brings along.
    Bios,
    /// OVMF.
    Uefi,
    /// U-Boot, on aarch64.
    UBoot,
}

impl Firmware {
    pub const ALL: [Self; 3] = [Self::Bios, Self::Uefi, Self::UBoot];

    /// The architecture of machines that have it.
    pub const fn arch(self) -> Arch {
        match self {
            Self::Bios | Self::Uefi => Arch::X86_64,
            Self::UBoot => Arch::Aarch64,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Bios => "bios",
            Self::Uefi => "uefi",
            Self::UBoot => "u-boot",
        }
    }
}

/// What runs before a kernel that QEMU loads: it sets up memory map, tables and PCI, and jumps. SeaBIOS would also look
/// for disks, screens and option ROMs, which takes more of the host's time than many a test.
const QBOOT: &str = "qboot.rom";
/// SeaBIOS, which is there before such a kernel if nothing is said.
pub const SEABIOS: &str = "bios-256k.bin";

/// OVMF's code, and the variables that it starts with.
const OVMF: [&str; 2] = [
    "/usr/share/OVMF/OVMF_CODE_4M.fd",
    "/usr/share/OVMF/OVMF_VARS_4M.fd",
];

/// U-Boot for `virt`, which starts what it finds on a disk.
const U_BOOT: &str = "/usr/lib/u-boot/qemu_arm64/u-boot.bin";

/// Where the archive of a loader is in memory; the package `reference-loader` has the same number.
const ARCHIVE: u64 = 0x5400_0000;

/// Where kernel and root task come from.
#[derive(Debug, Clone)]
pub enum Medium {
    /// ELF files, which QEMU loads.
    Files { kernel: PathBuf, root_task: PathBuf },
    /// A loader for the bare machine, and the archive that it finds at [`ARCHIVE`], with kernel, device tree and root task.
    Loader { loader: PathBuf, archive: PathBuf },
    /// The image of a disk, which the firmware starts, and which stays as it is.
    Disk { image: PathBuf, firmware: Firmware },
}

/// Something that is asked now and then whether a run is to end.
#[derive(Clone)]
pub struct Ending {
    every: Duration,
    is_over: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Ending {
    /// Asks `is_over` whenever the console says something, or nothing for `every` of the host's time.
    pub fn new(every: Duration, is_over: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self {
            every,
            is_over: Arc::new(is_over),
        }
    }

    fn is_over(&self) -> bool {
        (self.is_over)()
    }
}

impl fmt::Debug for Ending {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "asked every {:?}", self.every)
    }
}

/// A system to boot, and when its run ends.
#[derive(Debug, Clone)]
pub struct Boot {
    pub medium: Medium,
    pub machine: Machine,
    pub emulator: Emulator,
    /// End the run when this text appears on the console.
    pub until: Option<String>,
    /// End the run after this much of the host's time.
    pub timeout: Option<Duration>,
    pub input: Input,
    /// End the run when the console has been silent for this much of the host's time.
    pub silence: Option<Duration>,
    /// Where to send the console's lines as they come.
    pub lines: Option<mpsc::Sender<String>>,
    /// End the run when this says so.
    pub ending: Option<Ending>,
    /// End the run, with the status [`LEFT_LONG_MODE`], when the emulator has left the kernel's mode and does
    /// not come back; instead of `ending`.
    pub watches_mode: bool,
    /// End the run with the status that a line says which begins with this: of a guest whose programs have no other way, or
    /// must not have it. None of its hostile programs may have the console.
    pub says_end: Option<&'static str>,
    /// On x86_64, the device by which a guest ends the machine is where no guest looks for it, so that the machine stays.
    pub is_endless: bool,
    /// Copy the console to standard output as it comes.
    pub echo: bool,
    /// Copy the console to this file, too.
    pub log: Option<PathBuf>,
    /// What is added to the copies.
    pub annotator: Annotator,
    /// On aarch64, whether user code may end the machine with a status. It does so by semihosting, by which it could as
    /// well read and write the host's files and execute its commands: only for programs that are trusted with these.
    pub user_semihosting: bool,
    /// More arguments for QEMU (`-device`, `-plugin`).
    pub extra_args: Vec<OsString>,
}

impl Boot {
    /// A silent run on the default machine, without a limit.
    pub fn new(kernel: impl Into<PathBuf>, root_task: impl Into<PathBuf>) -> Self {
        Self::from(Medium::Files {
            kernel: kernel.into(),
            root_task: root_task.into(),
        })
    }

    /// As [`Self::new`], from a disk, on a machine with that firmware.
    pub fn from_disk(image: impl Into<PathBuf>, firmware: Firmware) -> Self {
        Self {
            machine: Machine::of(firmware.arch()),
            ..Self::from(Medium::Disk {
                image: image.into(),
                firmware,
            })
        }
    }
}

impl From<Medium> for Boot {
    fn from(medium: Medium) -> Self {
        Self {
            medium,
            machine: Machine::default(),
            emulator: Emulator::Installed,
            until: None,
            timeout: None,
            silence: None,
            lines: None,
            ending: None,
            watches_mode: false,
            says_end: None,
            input: Input::None,
            is_endless: false,
            echo: false,
            log: None,
            annotator: Annotator::default(),
            user_semihosting: false,
            extra_args: Vec::new(),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The guest ended it with this status.
    Guest(u8),
    /// The awaited text appeared, or what was asked said that it is enough.
    Until,
    /// Time ran out, or the console was silent for too long.
    TimedOut,
}

/// What a run produced.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub end: End,
    /// The console's output; what is not UTF-8 is replaced.
    pub console: String,
}

impl Outcome {
    /// The exit status that stands for this end.
    pub fn status(&self) -> u8 {
        match self.end {
            End::Guest(status) => status,
            End::Until => 0,
            End::TimedOut => TIMEOUT_STATUS,
        }
    }
}

/// Boots a system and waits for its end.
///
/// # Errors
/// A file or QEMU is missing; QEMU refuses its arguments; or the machine ended without a status,
/// which is what a triple fault does.
pub fn run(boot: &Boot) -> Result<Outcome> {
    let printer = Printer::new(boot.echo, boot.log.as_ref(), &boot.annotator)?;
    let mode = boot.watches_mode.then(mode::Watch::new).transpose()?;
    let mut command = command(boot)?;
    command.args(mode.iter().flat_map(mode::Watch::options));
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run {}", boot.machine.arch.emulator().0))?;
    feed(&mut child, boot.input.clone());
    let complaints = {
        let mut stderr = child.stderr.take().context("QEMU has no standard error")?;
        thread::spawn(move || {
            let mut text = Vec::new();
            // A read error ends the text like its end does.
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let ending = mode.as_ref().map(mode::Watch::ending);
    let ending = ending.or_else(|| boot.ending.clone());
    let (end, console) = watch(&mut child, boot, ending.as_ref(), printer)?;
    let end = match end {
        Some(End::Until) if mode.is_some_and(|mode| mode.has_left()) => {
            // Plugins come to their end.
            terminate(&mut child)?;
            Some(End::Guest(LEFT_LONG_MODE))
        }
        end => end,
    };
    if boot.says_end.is_some() && matches!(end, Some(End::Guest(_))) {
        // Likewise: the guest is done.
        terminate(&mut child)?;
    }
    if end.is_some() {
        child.kill().context("cannot end QEMU")?;
    }
    let exit = child.wait().context("cannot wait for QEMU")?;
    let complaints = complaints.join().unwrap_or_default();
    let mut console = console;
    if boot.machine.arch == Arch::Aarch64 && complaints.contains(REFUSAL) {
        if boot.echo {
            print!("{complaints}");
        }
        console.extend(complaints.bytes());
    }
    let end = match end {
        Some(end) => end,
        None => guest_end(boot.machine.arch, exit, &complaints, !console.is_empty())?,
    };
    Ok(Outcome {
        end,
        console: String::from_utf8_lossy(&console).into_owned(),
    })
}

/// Asks QEMU to end, and waits until it has, for a while.
fn terminate(child: &mut Child) -> Result<()> {
    let id = i32::try_from(child.id()).context("a process number")?;
    kill(Pid::from_raw(id), Signal::SIGTERM).context("cannot end QEMU")?;
    let limit = Instant::now() + ORDERLY;
    while child.try_wait().context("cannot wait for QEMU")?.is_none() && Instant::now() < limit {
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The QEMU command for `boot`, with pipes for the console.
///
/// # Errors
/// A file or QEMU is missing; or the machine is none that the board can be.
pub fn command(boot: &Boot) -> Result<Command> {
    let machine = &boot.machine;
    let mut command = emulator(boot)?;
    add_medium(&mut command, machine.arch, &boot.medium)?;
    add_tree(&mut command, boot)?;
    command.args(["-machine", &machine.model, "-cpu", &machine.cpu]);
    command.args([
        "-smp",
        &machine.cores.to_string(),
        "-m",
        &machine.memory_mib.to_string(),
    ]);
    // No display, so that the firmware keeps off the serial port; no network, so that it does
    // not look for one to boot from.
    command.args([
        "-display", "none", "-nic", "none", "-serial", "stdio", "-monitor", "none",
    ]);
    command.arg("-no-reboot").args(way_to_end(boot));
    if let Some(option) = virtual_time(machine) {
        command.args(["-icount", &option]);
    }
    command.args(visits::arguments(boot)?);
    let stdin = if matches!(boot.input, Input::None) {
        Stdio::null()
    } else {
        Stdio::piped()
    };
    command
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok(command)
}

/// The emulator, without arguments for the machine.
fn emulator(boot: &Boot) -> Result<Command> {
    // Should we be killed, QEMU must not run on.
    let command = |qemu: &Path| match find_on_path("setpriv") {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "KILL", "--"]).arg(qemu);
            command
        }
        None => Command::new(qemu),
    };
    if boot.emulator == Emulator::Second {
        let second = second::program()?;
        let mut command = command(&second.path);
        let (variable, modules) = second.modules;
        command.args(second.arguments).env(variable, modules);
        return Ok(command);
    }
    let (emulator, package) = boot.machine.arch.emulator();
    let Some(qemu) = find_on_path(emulator) else {
        bail!("`{emulator}` is not installed: on Debian, `apt-get install {package}`");
    };
    Ok(command(&qemu))
}

/// Gives the machine a device tree, if QEMU does not make it and nobody else brings it along.
///
/// # Errors
/// There is no such machine.
fn add_tree(command: &mut Command, boot: &Boot) -> Result<()> {
    let machine = &boot.machine;
    if matches!(boot.medium, Medium::Files { .. }) {
        let tree = board::tree_file(&machine.model, machine.cores, machine.memory_mib)?;
        command.args(
            tree.iter()
                .flat_map(|tree| [OsStr::new("-dtb"), tree.as_os_str()]),
        );
    }
    Ok(())
}

/// QEMU's `-icount`, if the machine has virtual time.
fn virtual_time(machine: &Machine) -> Option<String> {
    let sleep = if machine.is_debugged { "on" } else { "off" };
    let shift = machine.icount?;
    Some(format!("shift={shift},sleep={sleep}"))
}

/// What lets the guest end the machine with a status.
fn way_to_end(boot: &Boot) -> [&'static str; 2] {
    const SEMIHOSTING: &str = "-semihosting-config";
    match boot.machine.arch {
        Arch::X86_64 if boot.is_endless => ["-device", "isa-debug-exit,iobase=0x5f4,iosize=0x04"],
        Arch::X86_64 => ["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"],
        // The debug kernel ends the machine by it.
        Arch::Aarch64 if boot.user_semihosting => {
            [SEMIHOSTING, "enable=on,target=native,userspace=on"]
        }
        Arch::Aarch64 => [SEMIHOSTING, "enable=on,target=native,userspace=off"],
    }
}

/// Adds the arguments that give the machine what it boots.
///
/// # Errors
/// A file is missing.
fn add_medium(command: &mut Command, arch: Arch, medium: &Medium) -> Result<()> {
    let check = |what: &str, path: &Path| {
        ensure!(
            path.is_file(),
            "the {what} `{}` is not a file",
            path.display()
        );
        Ok(())
    };
    match medium {
        Medium::Files { kernel, root_task } => {
            check("kernel", kernel)?;
            check("root task", root_task)?;
            match arch {
                Arch::X86_64 => command.arg("-kernel").arg(kernel).args(["-bios", QBOOT]),
                Arch::Aarch64 => command.arg("-kernel").arg(flat_image(kernel)?),
            };
            command.arg("-initrd").arg(root_task);
        }
        Medium::Loader { loader, archive } => {
            check("loader", loader)?;
            check("archive", archive)?;
            let archive = archive
                .to_str()
                .context("the archive's path is not UTF-8")?;
            let archive = archive.replace(',', ",,");
            command.arg("-kernel").arg(loader);
            let device = format!("loader,file={archive},addr={ARCHIVE:#x},force-raw=on");
            command.args(["-device", &device]);
        }
        Medium::Disk { image, firmware } => {
            check("image", image)?;
            if *firmware == Firmware::Uefi {
                for (unit, file) in OVMF.iter().enumerate() {
                    check(
                        "UEFI firmware (on Debian: the package `ovmf`)",
                        file.as_ref(),
                    )?;
                    command.args(["-drive", &format!("if=pflash,unit={unit},{}", drive(file))]);
                }
            }
            let image = image.to_str().context("the image's path is not UTF-8")?;
            if *firmware == Firmware::UBoot {
                check(
                    "firmware (on Debian: the package `u-boot-qemu`)",
                    U_BOOT.as_ref(),
                )?;
                let drive = format!("if=none,id=disk,{}", drive(image));
                command.args(["-bios", U_BOOT, "-drive", &drive]);
                command.args(["-device", "virtio-blk-device,drive=disk"]);
            } else {
                command.args(["-drive", &drive(image)]);
            }
        }
    }
    Ok(())
}

/// The options of a drive whose content is in `file`, and stays as it is.
fn drive(file: &str) -> String {
    format!("format=raw,snapshot=on,file={}", file.replace(',', ",,"))
}

/// Gives the guest its input. The pipe stays open until QEMU ends or the input does.
fn feed(child: &mut Child, input: Input) {
    let Some(mut stdin) = child.stdin.take() else {
        return;
    };
    // A guest that ends without reading breaks the pipe: no error.
    thread::spawn(move || match input {
        Input::None => {}
        Input::Bytes(bytes) => {
            let _ = stdin.write_all(&bytes);
        }
        Input::Inherit => {
            let mut buffer = [0; 256];
            while let Ok(count @ 1..) = io::stdin().read(&mut buffer) {
                if stdin
                    .write_all(&buffer[..count])
                    .and_then(|()| stdin.flush())
                    .is_err()
                {
                    break;
                }
            }
        }
    });
}

/// Collects the console until QEMU closes it (`None`) or the run is to be ended.
fn watch(
    child: &mut Child,
    boot: &Boot,
    ending: Option<&Ending>,
    mut printer: Printer,
) -> Result<(Option<End>, Vec<u8>)> {
    let mut stdout = child.stdout.take().context("QEMU has no standard output")?;
    let (sender, chunks) = mpsc::channel::<Vec<u8>>();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stdout.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    let deadline = boot.timeout.map(|timeout| Instant::now() + timeout);
    let until = boot
        .until
        .as_deref()
        .map(str::as_bytes)
        .filter(|text| !text.is_empty());
    let mut console = Vec::new();
    loop {
        let silence = boot.silence.map(|silence| Instant::now() + silence);
        let limit = deadline.into_iter().chain(silence).min();
        let chunk = match receive(&chunks, limit, ending) {
            Ok(chunk) => chunk,
            Err(end) => return Ok((end, console)),
        };
        if ending.is_some_and(Ending::is_over) {
            return Ok((Some(End::Until), console));
        }
        printer.print(&chunk)?;
        let seen = console.len();
        console.extend_from_slice(&chunk);
        if let Some(lines) = &boot.lines {
            send_lines(lines, &console, seen);
        }
        let end = boot
            .says_end
            .and_then(|begin| said_end(&console, seen, begin));
        if let Some(status) = end {
            return Ok((Some(End::Guest(status)), console));
        }
        if let Some(text) = until {
            let from = seen.saturating_sub(text.len() - 1);
            if console[from..]
                .windows(text.len())
                .any(|window| window == text)
            {
                return Ok((Some(End::Until), console));
            }
        }
    }
}

/// What the console says next; or how the run ends, before `limit` at the latest: `None` if the guest
/// ended it.
fn receive(
    chunks: &mpsc::Receiver<Vec<u8>>,
    limit: Option<Instant>,
    ending: Option<&Ending>,
) -> Result<Vec<u8>, Option<End>> {
    loop {
        let ask = ending.map(|ending| Instant::now() + ending.every);
        let received = match limit.into_iter().chain(ask).min() {
            None => chunks.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => chunks.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        match received {
            Ok(chunk) => return Ok(chunk),
            Err(RecvTimeoutError::Disconnected) => return Err(None),
            Err(RecvTimeoutError::Timeout) if limit.is_some_and(|at| Instant::now() >= at) => {
                return Err(Some(End::TimedOut));
            }
            Err(RecvTimeoutError::Timeout) => {
                if ending.is_some_and(Ending::is_over) {
                    return Err(Some(End::Until));
                }
            }
        }
    }
}

/// The status behind `begin` in a line that ends in what has come since `console` had `seen` bytes.
fn said_end(console: &[u8], seen: usize, begin: &str) -> Option<u8> {
    let is_end = |&byte: &u8| byte == b'\n';
    let first = console[..seen]
        .iter()
        .rposition(is_end)
        .map_or(0, |i| i + 1);
    let last = seen + console[seen..].iter().rposition(is_end)?;
    let lines = String::from_utf8_lossy(&console[first..=last]);
    lines
        .lines()
        .find_map(|line| line.trim_end().strip_prefix(begin)?.parse().ok())
}

/// Sends the lines that end in what has come since `console` had `seen` bytes.
fn send_lines(lines: &mpsc::Sender<String>, console: &[u8], seen: usize) {
    let is_end = |&byte: &u8| byte == b'\n';
    let begin = console[..seen]
        .iter()
        .rposition(is_end)
        .map_or(0, |i| i + 1);
    let Some(end) = console[seen..].iter().rposition(is_end) else {
        return;
    };
    for line in String::from_utf8_lossy(&console[begin..=seen + end]).lines() {
        // Nobody listens any more: no error.
        let _ = lines.send(line.to_owned());
    }
}

/// What QEMU's exit says about the guest.
///
/// Exit code 1 is ambiguous, a status of the guest or a refusal by QEMU: a refusal comes with a
/// message, and before the guest could print. On x86_64 that status is 0; on aarch64 the code is the status itself.
fn guest_end(arch: Arch, exit: ExitStatus, complaints: &str, guest_has_run: bool) -> Result<End> {
    let (emulator, _) = arch.emulator();
    let complaint = complaints.lines().find(|line| !line.contains("warning:"));
    match (exit.code(), complaint) {
        (Some(1), Some(_)) if !guest_has_run => bail!("{emulator} refuses: {}", complaints.trim()),
        (Some(code @ 0..=255), _) if arch == Arch::Aarch64 => Ok(End::Guest(code as u8)),
        (Some(code @ 0..=255), _) if code % 2 == 1 => Ok(End::Guest((code >> 1) as u8)),
        (Some(0), _) => bail!(
            "the machine reset or powered off without a status (a triple fault does this); a \
             guest ends by writing its status to port 0xf4, or with DebugHalt"
        ),
        _ => bail!("{emulator} failed ({exit}): {}", complaints.trim()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn exit(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    #[test]
    fn user_code_reaches_the_host_only_where_that_is_asked_for() {
        let mut boot = Boot {
            machine: Machine::of(Arch::Aarch64),
            ..Boot::new("kernel", "task")
        };
        assert!(way_to_end(&boot)[1].ends_with(",userspace=off"));
        boot.user_semihosting = true;
        assert!(way_to_end(&boot)[1].ends_with(",userspace=on"));
    }

    #[test]
    fn a_machine_that_goes_on_after_a_stop_does_not_skip_time() {
        let of = |icount, is_debugged| {
            virtual_time(&Machine {
                icount,
                is_debugged,
                ..Machine::default()
            })
        };
        assert_eq!(of(Some(0), true).as_deref(), Some("shift=0,sleep=on"));
        assert_eq!(of(Some(3), false).as_deref(), Some("shift=3,sleep=off"));
        assert_eq!(of(None, true), None);
    }

    #[test]
    fn odd_exit_codes_are_the_guests() {
        assert_eq!(
            guest_end(Arch::X86_64, exit(1), "", false).unwrap(),
            End::Guest(0)
        );
        assert_eq!(
            guest_end(Arch::X86_64, exit(1), "qemu: warning: x\n", false).unwrap(),
            End::Guest(0)
        );
        assert_eq!(
            guest_end(Arch::X86_64, exit(3), "", true).unwrap(),
            End::Guest(1)
        );
        assert_eq!(
            guest_end(Arch::X86_64, exit(255), "", true).unwrap(),
            End::Guest(127)
        );
    }

    #[test]
    fn an_end_is_said_by_a_whole_line() {
        let console = b"ok\nthe end 12\r\n";
        for (seen, end, status) in [
            (0, 12, None),
            (3, 14, None),
            (3, 15, Some(12)),
            (9, 15, Some(12)),
            (15, 15, None),
        ] {
            assert_eq!(
                said_end(&console[..end], seen, "the end "),
                status,
                "{seen} {end}"
            );
        }
        assert_eq!(said_end(b"not the end 12\n", 0, "the end "), None);
    }

    #[test]
    fn lines_are_sent_once_they_are_whole() {
        let (sender, lines) = mpsc::channel();
        let console = b"one\r\ntwo\nthr";
        for (seen, end) in [(0, 2), (2, 7), (7, 12)] {
            send_lines(&sender, &console[..end], seen);
        }
        assert_eq!(lines.try_iter().collect::<Vec<_>>(), ["one", "two"]);
    }

    #[test]
    fn a_refusal_of_qemu_is_not_a_guests_success() {
        let error = guest_end(Arch::X86_64, exit(1), "qemu: no such CPU\n", false).unwrap_err();
        assert!(error.to_string().contains("no such CPU"));
    }

    #[test]
    fn a_reset_and_a_crash_are_errors() {
        assert!(guest_end(Arch::X86_64, exit(0), "", true)
            .unwrap_err()
            .to_string()
            .contains("reset"));
        assert!(guest_end(Arch::X86_64, ExitStatus::from_raw(11), "", true).is_err());
    }
}
