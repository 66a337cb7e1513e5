//! A running machine that is asked for its state (QEMU's machine protocol, QMP): stopped while user code
//! runs on all of its cores, or as it is.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use serde_json::{json, Value};

use crate::workspace;

/// How often, and how long, things are waited for.
const LOOKS: u32 = 600;
const PAUSE: Duration = Duration::from_millis(50);
/// Bytes a second of a migration: as fast as it goes.
const BANDWIDTH: u64 = 1 << 33;

/// What QEMU says of a processor that runs user code, of each architecture.
const USER: [&str; 2] = ["CPL=3", " EL0t"];

/// The machine, by its socket.
pub struct Session {
    commands: UnixStream,
    answers: BufReader<UnixStream>,
    /// Where files of this session are.
    folder: PathBuf,
}

impl Session {
    /// Connects to the socket of a machine that is being started.
    pub fn connect(socket: &Path) -> Result<Self> {
        let commands = retry(|| UnixStream::connect(socket).ok())
            .context("QEMU does not answer on its socket")?;
        Self::over(commands, socket)
    }

    /// Connects to the socket of a machine that runs, or may have ended.
    pub fn of_running(socket: &Path) -> Result<Self> {
        let commands = UnixStream::connect(socket).context("QEMU does not answer")?;
        Self::over(commands, socket)
    }

    fn over(commands: UnixStream, socket: &Path) -> Result<Self> {
        let answers = BufReader::new(commands.try_clone().context("a socket")?);
        let mut session = Self {
            commands,
            answers,
            folder: socket.parent().context("a socket's folder")?.to_owned(),
        };
        session.line()?;
        session.ask("qmp_capabilities", json!({}))?;
        Ok(session)
    }

    fn line(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.answers
            .read_line(&mut line)
            .context("QEMU has closed its socket")?;
        serde_json::from_str(&line).with_context(|| format!("QEMU says `{}`", line.trim()))
    }

    /// Performs a command; events are skipped.
    pub fn ask(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let text = json!({ "execute": command, "arguments": arguments }).to_string();
        writeln!(self.commands, "{text}").context("cannot write to QEMU")?;
        loop {
            let mut answer = self.line()?;
            if let Some(error) = answer.get("error") {
                bail!("QEMU refuses `{command}`: {error}");
            }
            if let Some(result) = answer.get_mut("return") {
                return Ok(result.take());
            }
        }
    }

    /// The registers of all processors, as QEMU prints them.
    pub fn registers(&mut self) -> Result<String> {
        self.monitor("info registers -a")
    }

    /// What QEMU's monitor says to a line of a human.
    pub fn monitor(&mut self, line: &str) -> Result<String> {
        let line = json!({ "command-line": line });
        let text = self.ask("human-monitor-command", line)?;
        Ok(text.as_str().context("a text")?.to_owned())
    }

    /// The registers of all processors of a machine that runs, and continues to. What QEMU prints of one that is not
    /// stopped is made up halfway through an instruction, and printing it may change the processor's state.
    pub fn halted_registers(&mut self) -> Result<String> {
        self.ask("stop", json!({}))?;
        let registers = self.registers();
        self.ask("cont", json!({}))?;
        registers
    }

    /// Stops the machine while `cores` processors run user code, and all others nothing.
    pub fn stop_in_user_code(&mut self, cores: usize) -> Result<()> {
        let mut seen = String::new();
        for _ in 0..LOOKS {
            self.ask("stop", json!({}))?;
            seen = self.registers()?;
            if USER
                .map(|level| seen.matches(level).count())
                .contains(&cores)
            {
                return Ok(());
            }
            self.ask("cont", json!({}))?;
            thread::sleep(PAUSE);
        }
        bail!("user code never runs on all {cores} cores at once:\n{seen}")
    }

    /// The migration stream of the machine, which does not go on.
    pub fn migrate(&mut self) -> Result<Vec<u8>> {
        let path = self.folder.join("stream");
        let bandwidth = json!({ "max-bandwidth": BANDWIDTH });
        self.ask("migrate-set-parameters", bandwidth)?;
        let target = format!("exec:cat >'{}'", path.display());
        self.ask("migrate", json!({ "uri": target }))?;
        for _ in 0..LOOKS {
            let status = self.ask("query-migrate", json!({}))?;
            match status["status"].as_str() {
                Some("completed") => return fs::read(&path).context("cannot read the stream"),
                Some("failed" | "cancelled") => bail!("QEMU's migration failed: {status}"),
                _ => thread::sleep(PAUSE),
            }
        }
        bail!("QEMU's migration does not end")
    }

    /// Memory as the processor `cpu` sees it.
    pub fn memory(&mut self, cpu: u32, address: u64, bytes: u64) -> Result<Vec<u8>> {
        self.save("memsave", json!({ "cpu-index": cpu }), address, bytes)
    }

    /// Memory at a physical address.
    pub fn physical(&mut self, address: u64, bytes: u64) -> Result<Vec<u8>> {
        self.save("pmemsave", json!({}), address, bytes)
    }

    fn save(
        &mut self,
        command: &str,
        mut what: Value,
        address: u64,
        bytes: u64,
    ) -> Result<Vec<u8>> {
        let path = self.folder.join("memory");
        // QEMU's numbers have a sign.
        what["val"] = address.cast_signed().into();
        what["size"] = bytes.into();
        what["filename"] = json!(path);
        self.ask(command, what)
            .with_context(|| format!("{bytes} bytes at {address:#x}"))?;
        fs::read(&path).context("cannot read the memory")
    }

    /// What CPUID tells about the features of the first processor: the register `register` of a leaf,
    /// sub-leaf 0.
    pub fn features(&mut self, leaf: u64, register: &str) -> Result<u32> {
        let cpus = self.ask("query-cpus-fast", json!({}))?;
        let path = cpus[0]["qom-path"].clone();
        let words = self.ask(
            "qom-get",
            json!({ "path": path, "property": "feature-words" }),
        )?;
        let words = words.as_array().context("a list of features")?;
        let word = words.iter().find(|word| {
            word["cpuid-input-eax"] == leaf
                && word["cpuid-register"] == register
                && word["cpuid-input-ecx"].as_u64().unwrap_or(0) == 0
        });
        word.and_then(|word| u32::try_from(word["features"].as_u64()?).ok())
            .with_context(|| format!("QEMU does not tell {register} of CPUID leaf {leaf:#x}"))
    }
}

/// Asks until there is an answer, for a while.
pub fn retry<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    (0..LOOKS).find_map(|_| {
        let answer = ask();
        if answer.is_none() {
            thread::sleep(PAUSE);
        }
        answer
    })
}

/// A folder for a session, which goes with it.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Result<Self> {
        let folder = workspace::target_dir()
            .join("machine")
            .join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
        // A socket's name has some 100 bytes.
        let socket = folder.join("socket");
        ensure!(
            socket.as_os_str().len() < 100,
            "the path `{}` is too long for a socket: set CARGO_TARGET_DIR to a shorter one",
            socket.display()
        );
        Ok(Self(folder))
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays costs room, nothing else.
        let _ = fs::remove_dir_all(&self.0);
    }
}
