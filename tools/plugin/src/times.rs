//! The witness of the oracle for time, from when there is something to be seen.

use crate::meter::Place;
use crate::ram::Ram;
use crate::watch::{Layout, Watch};
use crate::{complain, Known, Out};

/// Who executes on whose time.
pub enum Times {
    /// The machine has no memory yet; it will have it from this physical address on.
    Booting(Layout, u64),
    Watched(Box<Watch<Ram>>),
    /// There is nothing to be seen.
    Blind,
}

impl Times {
    /// `block` runs.
    pub fn run(&mut self, known: Known, out: &mut Out) {
        if let Times::Booting(layout, first) = self {
            // Before the kernel runs, nothing matters.
            if known.block.place == Place::User {
                return;
            }
            *self = match Ram::find(*first) {
                Ok(ram) => Times::Watched(Box::new(Watch::new(ram, *layout))),
                Err(error) => {
                    complain(&error);
                    Times::Blind
                }
            };
        }
        if let Times::Watched(watch) = self {
            watch.run(known.block, known.last);
            if watch.has_text() {
                out.write(&watch.take_text());
            }
        }
    }
}
