//! A machine that is stopped at instructions of its kernel, before the first if need be (QEMU's stub for GDB, by
//! GDB's remote serial protocol).

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{ensure, Context, Result};

use super::session::retry;

/// The most bytes that are written at once: a packet of the stub has 4096 characters.
const PIECE: usize = 1024;

/// The digits of the instruction pointer among those of all registers: behind sixteen of eight bytes.
const RIP: Range<usize> = 256..272;

/// The machine, by its socket. It is stopped whenever nobody waits for it.
pub struct Gdb {
    requests: UnixStream,
    answers: BufReader<UnixStream>,
}

impl Gdb {
    /// Connects to a machine that is being started (`-gdb unix:PATH,server=on,wait=off`), which stops.
    ///
    /// # Errors
    /// It does not answer.
    pub fn connect(socket: &Path) -> Result<Self> {
        let requests = retry(|| UnixStream::connect(socket).ok())
            .context("QEMU does not answer on its debugger's socket")?;
        let answers = BufReader::new(requests.try_clone().context("a socket")?);
        let mut gdb = Self { requests, answers };
        gdb.ask("?")?;
        Ok(gdb)
    }

    /// Lets the machine go on, until a processor comes to the instruction at the virtual address `address`, before which it
    /// stops. Returns which one: they count from 0.
    ///
    /// # Errors
    /// The machine ends before.
    pub fn run_to(&mut self, address: u64) -> Result<u32> {
        self.order(&format!("Z1,{address:x},1"))?;
        let stop = self.ask("c")?;
        let thread = stop
            .split_once("thread:")
            .and_then(|(_, rest)| u32::from_str_radix(rest.split(';').next()?, 16).ok());
        // They count from 1 there.
        let processor = thread.and_then(|thread| thread.checked_sub(1));
        let processor =
            processor.with_context(|| format!("the machine does not stop: QEMU says `{stop}`"))?;
        self.order(&format!("z1,{address:x},1"))?;
        Ok(processor)
    }

    /// Executes one instruction. Interrupts wait.
    ///
    /// # Errors
    /// The machine ends.
    pub fn step(&mut self) -> Result<()> {
        let stop = self.ask("s")?;
        ensure!(stop.starts_with('T'), "the machine does not stop: {stop}");
        Ok(())
    }

    /// Lets the machine go on, and does not wait.
    ///
    /// # Errors
    /// It has ended.
    pub fn go_on(mut self) -> Result<()> {
        self.send("c")
    }

    /// The instruction pointer, of a processor in 64-bit mode.
    ///
    /// # Errors
    /// The answer is none.
    pub fn instruction(&mut self) -> Result<u64> {
        let registers = self.ask("g")?;
        let digits = registers.get(RIP).unwrap_or_default();
        let value = u64::from_str_radix(digits, 16)
            .with_context(|| format!("QEMU says `{registers}` of the registers"))?;
        Ok(value.swap_bytes())
    }

    /// Has it go on at `address`, as soon as it goes on.
    ///
    /// # Errors
    /// The stub does not take it.
    pub fn jump(&mut self, address: u64) -> Result<()> {
        // Of registers behind it, the stub would read others than it writes outside of 64-bit mode.
        let registers = self.ask("g")?;
        let before = registers.get(..RIP.start).context("no registers")?;
        let digits = format!("{:016x}", address.swap_bytes());
        self.order(&format!("G{before}{digits}"))
    }

    /// Writes memory, which is RAM, at a virtual address.
    ///
    /// # Errors
    /// Nothing is mapped there.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        for (i, piece) in bytes.chunks(PIECE).enumerate() {
            let at = address + (i * PIECE) as u64;
            let mut order = format!("M{at:x},{:x}:", piece.len());
            for byte in piece {
                write!(order, "{byte:02x}")?;
            }
            self.order(&order)?;
        }
        Ok(())
    }

    fn order(&mut self, order: &str) -> Result<()> {
        let answer = self.ask(order)?;
        ensure!(answer == "OK", "QEMU answers `{order}` by `{answer}`");
        Ok(())
    }

    fn ask(&mut self, request: &str) -> Result<String> {
        self.send(request)?;
        let mut answer = Vec::new();
        self.answers.read_until(b'#', &mut answer)?;
        let mut sum = [0; 2];
        self.answers
            .read_exact(&mut sum)
            .context("QEMU has closed its debugger's socket")?;
        self.requests.write_all(b"+")?;
        let answer = String::from_utf8(answer).context("an answer of QEMU's debugger")?;
        // Before it, that the request has arrived.
        let answer = answer.trim_end_matches('#').trim_start_matches('+');
        Ok(answer.trim_start_matches('$').to_owned())
    }

    fn send(&mut self, request: &str) -> Result<()> {
        let sum = request.bytes().fold(0u8, u8::wrapping_add);
        write!(self.requests, "${request}#{sum:02x}").context("QEMU's debugger has gone")
    }
}
