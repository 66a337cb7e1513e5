//! Writes what components log to the console: whole lines, each with its time and its component, taken from the
//! components in turn. What is in their memory are claims: only the name in front of a line is the writer's own.

#![no_std]
#![no_main]

extern crate alloc;

mod source;

use alloc::vec::Vec;
use core::convert::Infallible;

use sandglass::cap::Notification;
use sandglass::logging::ring;
use sandglass::time::{self, Tsc};
use sandglass::Environment;
use sandglass_description::policy::log::{badge, names, Log};
use sandglass_description::policy::Table;

use source::Source;

sandglass::entry!(main, stack = 0x8000, heap = 0x2_0000);

fn main(env: &'static Environment) -> Infallible {
    let wake: Notification = env.capability(names::WAKE);
    let done: Notification = env.capability(names::DONE);
    // SAFETY: the loader mapped the table, which never changes.
    let table = unsafe { env.memory(Log::NAME).as_bytes() };
    let table = Log::decode(table).expect("the builder made this table");
    let mut writer = Writer {
        sources: table
            .sources
            .into_iter()
            .map(|name| Source::find(env, name))
            .collect(),
        tsc: env.tsc(),
        wake,
    };
    env.ready().signal();
    loop {
        let mut why = wake.wait();
        while why != 0 {
            why = writer.write(why, done);
        }
    }
}

struct Writer {
    sources: Vec<Source>,
    tsc: Option<Tsc>,
    wake: Notification,
}

/// Lines that a source may have written before others that have some, too, get their turn, whatever times it claims.
const TURN: u32 = 16;

impl Writer {
    /// Writes what is there. Returns why to begin again, or 0.
    fn write(&mut self, why: u64, done: Notification) -> u64 {
        if why & badge::END != 0 {
            // As much as there can be now: who goes on writing does not keep the system from its end.
            for _ in 0..self.sources.len() * ring::SLOTS {
                if !self.write_line() {
                    break;
                }
            }
            done.signal();
            return 0;
        }
        while self.write_line() {
            let why = self.wake.poll();
            if why & badge::END != 0 {
                return why;
            }
        }
        0
    }

    /// Writes the earliest line of those whose turn it is. Returns whether there was one.
    fn write_line(&mut self) -> bool {
        let now = time::ticks();
        let next = self.earliest(now).or_else(|| {
            for source in &mut self.sources {
                source.turn = TURN;
            }
            self.earliest(now)
        });
        let Some(source) = next.and_then(|number| self.sources.get_mut(number)) else {
            return false;
        };
        source.turn -= 1;
        source.write_next(now, self.tsc);
        true
    }

    /// The source with the earliest line of those whose turn is not over.
    fn earliest(&self, now: u64) -> Option<usize> {
        let sources = self.sources.iter().enumerate();
        sources
            .filter(|(_, source)| source.turn > 0)
            .filter_map(|(number, source)| Some((source.next_ticks(now)?, number)))
            .min()
            .map(|(_, number)| number)
    }
}
