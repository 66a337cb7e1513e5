//! One component's lines.

use alloc::string::String;
use core::fmt::{self, Display, Write};

use sandglass::logging::level_of;
use sandglass::logging::ring::{Line, Reader, Ring};
use sandglass::time::Tsc;
use sandglass::{console, println, Environment};
use sandglass_description::log_memory;

pub struct Source {
    name: String,
    ring: &'static Ring,
    reader: Reader,
    /// Of its last line: its lines' times never go back.
    last_ticks: u64,
    /// Lines that it may have written before others get their turn.
    pub turn: u32,
}

impl Source {
    pub fn find(env: &Environment, name: String) -> Self {
        let memory = env.memory(&log_memory(&name));
        // SAFETY: the loader mapped it for good, as long as a ring; any content is a ring.
        let ring = unsafe { &*memory.as_mut_ptr().cast::<Ring>() };
        Self {
            name,
            ring,
            reader: Reader::new(),
            last_ticks: 0,
            turn: 0,
        }
    }

    /// When its next line was written, ticks, if there is one. What the line claims is believed as far as it can be.
    pub fn next_ticks(&self, now: u64) -> Option<u64> {
        let claimed = self.reader.next_ticks(self.ring)?;
        Some(claimed.clamp(self.last_ticks, now.max(self.last_ticks)))
    }

    /// Writes the next line, if there is one.
    pub fn write_next(&mut self, now: u64, tsc: Option<Tsc>) {
        let ticks = self.next_ticks(now).unwrap_or(now);
        let line = self.reader.next(self.ring);
        let stamp = |ticks, level| Stamp {
            ticks,
            tsc,
            level,
            name: &self.name,
        };
        let dropped = self.reader.newly_dropped(self.ring);
        if dropped > 0 {
            let stamp = stamp(now, "WARN");
            println!("{stamp}{dropped} lines were dropped: it logs faster than they are written");
        }
        if let Some(line) = line {
            // What a program that was restarted has left half written has no level.
            if let Some(level) = level_of(line.level) {
                write(&stamp(ticks, level.as_str()), &line);
            }
            self.last_ticks = ticks;
        }
    }
}

/// Prints a line; what is no printable text in it is replaced.
fn write(stamp: &Stamp<'_>, line: &Line) {
    let mut out = String::new();
    // A string takes everything.
    let _ = write!(out, "{stamp}");
    for chunk in line.text().utf8_chunks() {
        let valid = chunk.valid().chars();
        out.extend(valid.map(|c| {
            if c.is_control() && c != '\t' {
                '\u{fffd}'
            } else {
                c
            }
        }));
        if !chunk.invalid().is_empty() {
            out.push('\u{fffd}');
        }
    }
    out.push('\n');
    console::write_bytes(out.as_bytes());
}

/// What stands before each line.
struct Stamp<'a> {
    ticks: u64,
    tsc: Option<Tsc>,
    level: &'a str,
    name: &'a str,
}

impl Display for Stamp<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tsc.map(|tsc| tsc.ticks_to_us(self.ticks)) {
            Some(us) => {
                let (seconds, rest) = (us / 1_000_000, us % 1_000_000);
                write!(f, "[{seconds:5}.{rest:06}] ")?;
            }
            None => write!(f, "[{} ticks] ", self.ticks)?,
        }
        write!(f, "{:<5} {}: ", self.level, self.name)
    }
}
