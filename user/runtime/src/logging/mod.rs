//! The log: what a component says goes, line by line, to a ring of its own, and from there to the console when the
//! writer of the log gets to it. Saying something costs the component some hundred instructions and never waits.
//!
//! Programs use the macros of the crate [`log`] (`log::info!` and so on; here [`crate::log`]), or `println!`, whose
//! lines have the level *info*. A component with a log finds the memory `log.NAME`, with its own name, the capability
//! `log`, which it signals, and the parameter `log.level`: what is less urgent is not said at all.
//!
//! Without a log, but with a console, the macros print there.

pub mod ring;

use core::fmt::{self, Write};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::cap::Notification;
use crate::console::{self, Output};
use crate::env::{Environment, MAX_NAME};
use crate::time;
use ring::{Ring, MOST_TEXT};

/// Name of the capability that tells the writer, and prefix of the name of the memory.
pub const NAME: &str = "log";
/// Name of the parameter with the least urgent level, as a number of [`level_of`].
pub const LEVEL: &str = "log.level";

/// The ring, or null.
static RING: AtomicPtr<Ring> = AtomicPtr::new(ptr::null_mut());
/// Capability pointer of what is signalled.
static SIGNAL: AtomicU64 = AtomicU64::new(0);

/// The level with this number, from 1 for errors to 5.
pub const fn level_of(number: u8) -> Option<Level> {
    Some(match number {
        1 => Level::Error,
        2 => Level::Warn,
        3 => Level::Info,
        4 => Level::Debug,
        5 => Level::Trace,
        _ => return None,
    })
}

/// Lets the component's lines go where its environment says. To be called once, before there are other threads.
pub(crate) fn start(env: &'static Environment) {
    let level = env.find_parameter(LEVEL);
    let level = level.map_or(Some(Level::Info), |number| level_of(number as u8));
    let mut name = Text::<MAX_NAME>::new();
    // A name that is too long is no log's.
    let _ = write!(name, "{NAME}.{}", env.name());
    let memory = env.find_memory(name.as_str());
    let signal = env.find_capability::<Notification>(NAME);
    if let (Some(memory), Some(signal)) = (memory, signal) {
        if memory.len < ring::BYTES as u64 {
            return;
        }
        // SAFETY: the loader mapped the memory, as long as a ring, for good; any content is a ring.
        let ring = unsafe { &*memory.as_mut_ptr().cast::<Ring>() };
        ring.recover();
        SIGNAL.store(signal.address(), Ordering::Relaxed);
        RING.store(ptr::from_ref(ring).cast_mut(), Ordering::Release);
    } else if console::output() == Output::Silent {
        return;
    }
    let filter = level.map_or(LevelFilter::Off, |level| level.to_level_filter());
    if log::set_logger(&Logger).is_ok() {
        log::set_max_level(filter);
    }
}

/// The ring of this program, if it has one.
fn ring() -> Option<&'static Ring> {
    let ring = RING.load(Ordering::Acquire);
    // SAFETY: `start` stored it, and it stays mapped.
    unsafe { ring.as_ref() }
}

/// Whether this program's lines go to a log.
pub fn is_open() -> bool {
    ring().is_some()
}

/// Writes a line to the log, if there is one.
fn write_line(level: Level, text: &[u8]) {
    let Some(ring) = ring() else { return };
    ring.write(level as u8, time::ticks(), text);
    // Also if there was no room: the writer says so.
    Notification::at(SIGNAL.load(Ordering::Relaxed)).signal();
}

struct Logger;

impl Log for Logger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        if is_open() {
            let mut line = Text::<MOST_TEXT>::new();
            // What does not fit is cut off.
            let _ = line.write_fmt(*record.args());
            write_line(record.level(), line.as_bytes());
        } else {
            console::print(format_args!("{:<5} {}\n", record.level(), record.args()));
        }
    }

    fn flush(&self) {}
}

/// Text of at most `N` bytes; what does not fit is cut off.
pub(crate) struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    pub const fn new() -> Self {
        Self {
            bytes: [0; N],
            len: 0,
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Empty if a character was cut in two.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(self.as_bytes()).unwrap_or("")
    }

    fn push(&mut self, bytes: &[u8]) {
        let count = bytes.len().min(N - self.len);
        self.bytes[self.len..self.len + count].copy_from_slice(&bytes[..count]);
        self.len += count;
    }
}

impl<const N: usize> Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

/// The begin of a line whose end has not been printed yet: `print!` without a line feed. One for all threads; who finds
/// it taken starts a line of its own.
struct Pending {
    taken: AtomicBool,
    text: core::cell::UnsafeCell<Text<{ MOST_TEXT }>>,
}

// SAFETY: only who has set `taken` uses the text.
unsafe impl Sync for Pending {}

static PENDING: Pending = Pending {
    taken: AtomicBool::new(false),
    text: core::cell::UnsafeCell::new(Text::new()),
};

/// Prints to the log, line by line.
pub(crate) fn print(arguments: fmt::Arguments<'_>) {
    if PENDING.taken.swap(true, Ordering::Acquire) {
        let mut lines = Lines(&mut Text::new());
        let _ = lines.write_fmt(arguments);
        lines.end();
        return;
    }
    // SAFETY: it was not taken, and is now.
    let text = unsafe { &mut *PENDING.text.get() };
    let _ = Lines(text).write_fmt(arguments);
    PENDING.taken.store(false, Ordering::Release);
}

/// Sends lines as they end.
struct Lines<'a>(&'a mut Text<MOST_TEXT>);

impl Lines<'_> {
    fn end(&mut self) {
        if self.0.len > 0 {
            write_line(Level::Info, self.0.as_bytes());
            self.0.len = 0;
        }
    }
}

impl Write for Lines<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut parts = text.split('\n');
        self.0.push(parts.next().unwrap_or("").as_bytes());
        for part in parts {
            self.end();
            self.0.push(part.as_bytes());
        }
        Ok(())
    }
}
