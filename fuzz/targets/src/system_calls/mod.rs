//! Events of several threads over a prepared world, as any bytes.
//!
//! The bytes are a list of [`event::Event`]s. Whose registers a system call sets is the kernel's
//! choice: events happen to the thread that it chose to run.

pub mod event;
mod prepare;
mod slots;
mod world;

use std::fmt::Write;

use crate::bytes::Bytes;
use crate::Target;
use event::Event;
use world::World;

pub const TARGET: Target = Target {
    name: "system-calls",
    what: "events of several threads",
    run,
    explain,
};

/// Most events of an input.
const MAX_EVENTS: usize = 256;

/// Whatever threads do, the kernel does not panic and its invariants hold after every event.
fn run(input: &[u8]) {
    let mut world = World::new();
    for event in events(input) {
        world.apply(&event);
        if world.has_ended() {
            return;
        }
    }
}

/// The events that an input says.
pub fn events(input: &[u8]) -> impl Iterator<Item = Event> + use<'_> {
    let mut bytes = Bytes::new(input);
    std::iter::from_fn(move || (!bytes.is_empty()).then(|| Event::read(&mut bytes)))
        .take(MAX_EVENTS)
}

fn explain(input: &[u8]) -> String {
    let mut text = String::new();
    for (i, event) in events(input).enumerate() {
        writeln!(text, "{i:>4}  {event}").expect("a string takes everything");
    }
    text
}
