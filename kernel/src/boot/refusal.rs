//! Why the kernel does not start a system.

use crate::arch::{Console, Platform};

/// A reason, with the numbers that belong to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The machine lacks something; a full sentence.
    Machine(&'static str),
    /// The loader gave no root task.
    NoRootTask,
    /// The root task's file is not one that the kernel can load: what the number `found` in it
    /// is, and what would be right.
    File {
        what: &'static str,
        found: u64,
        right: &'static str,
    },
    /// The image of the root task has more pages than the root CNode has slots for.
    TooManyPages { pages: u64, slots: u64 },
    /// The image's many pages leave too few slots of the root CNode for the machine's memory.
    NoSlotsForMemory { pages: u64 },
    /// Image and first objects need more memory, in bytes, than there is in one piece.
    TooLittleMemory { needed: u64, available: u64 },
}

impl Refusal {
    /// Tells the reason on the console, in one line.
    pub fn report<P: Platform>(self, machine: &P) {
        let console = Console::new(machine);
        console.text("Sandglass cannot start: ");
        match self {
            Refusal::Machine(what) => console.text(what),
            Refusal::NoRootTask => {
                console.text("no root task was given (QEMU: -initrd FILE, an ELF file)")
            }
            Refusal::File { what, found, right } => console
                .text("the root task's file cannot be loaded: its ")
                .text(what)
                .text(" ")
                .hexadecimal(found)
                .text(", but ")
                .text(right),
            Refusal::TooManyPages { pages, slots } => console
                .text("the root task is too large: its image has ")
                .decimal(pages)
                .text(" pages of 4 KiB, but only ")
                .decimal(slots)
                .text(" slots of the root CNode are left for them"),
            Refusal::NoSlotsForMemory { pages } => console
                .text("the root task is too large: besides the ")
                .decimal(pages)
                .text(" pages of 4 KiB of its image, the root CNode has too few slots for the untyped memory"),
            Refusal::TooLittleMemory { needed, available } => console
                .text("the root task does not fit into memory: it needs ")
                .decimal(needed)
                .text(" bytes in one piece, of ")
                .decimal(available)
                .text(" available"),
        };
        console.text("\n");
    }
}
