//! Memory that the storm's threads and their supervisor share, and where it is mapped in the
//! storm's address spaces. The supervisor takes nothing in it for granted: the storm can write it.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::arch::code::PADDING;
use crate::catalogue::Node;
use crate::instructions::batch::{Batch, Scratch};
use crate::tally::Tally;

/// Threads that the supervisor makes and keeps going.
pub const THREADS: usize = 8;
/// Areas: one for each of these threads, and some for threads that the storm itself starts.
pub const AREAS: usize = THREADS + 2;

/// Address of the areas in every address space of the storm: one frame of 2 MiB.
pub const AREAS_ADDRESS: u64 = 0x2000_0000;
/// Distance of areas, bytes.
pub const AREA_BYTES: u64 = 0x1_0000;
/// Address of the [`crate::catalogue::Catalogue`], in the same frame behind the areas.
pub const CATALOGUE_ADDRESS: u64 = AREAS_ADDRESS + CATALOGUE_OFFSET;
/// Bytes from the start of the frame.
pub const CATALOGUE_OFFSET: u64 = 0x1f_0000;
const _: () = assert!(AREAS as u64 * AREA_BYTES <= CATALOGUE_OFFSET);
/// Address of the first thread's IPC buffer; the others follow, a page each.
pub const BUFFERS_ADDRESS: u64 = 0x3000_0000;
/// The highest page that can be mapped. In the storm of calls its last bytes are the instruction of a
/// system call, behind which the return address is the first one that is not the user's; in that of
/// instructions the threads write to it what they like.
pub const EDGE_ADDRESS: u64 = sandglass::arch::vspace::HIGHEST_PAGE;

/// Where the storm of instructions has [`crate::instructions::low`].
pub const LOW_ADDRESS: u64 = 0;
/// Bytes of it: a frame of 2 MiB.
pub const LOW_BYTES: u64 = 0x20_0000;

/// What a thread of the storm works with.
#[repr(C, align(4096))]
pub struct Area {
    pub control: Control,
    pub tally: Tally,
    pub batch: Batch,
    pub scratch: Scratch,
    pub code: CodePages,
    pub stack: [u8; STACK_BYTES],
}
const STACK_BYTES: usize = 0x8000;
const _: () = assert!(size_of::<Area>() as u64 <= AREA_BYTES);

impl Area {
    /// System calls that the thread has made, or instructions that it has begun.
    pub fn made(&self) -> u64 {
        let made = self.control.made.load(Relaxed);
        made.wrapping_add(self.batch.unsettled())
    }
}

/// Machine code that the thread writes and executes: two pages.
#[repr(C, align(4096))]
pub struct CodePages(pub [AtomicU64; CODE_BYTES / WORD]);
pub const CODE_BYTES: usize = 0x2000;
const WORD: usize = size_of::<u64>();

impl CodePages {
    /// Writes `bytes` from byte `at` on, which is rounded down to a word; what does not fit is
    /// dropped. Whole words, since each write to a page with code that runs costs the emulator much.
    pub fn write(&self, at: usize, bytes: impl Iterator<Item = u8>) {
        write_words(self.0.iter().skip(at / WORD), bytes);
    }
}

/// Writes `bytes` to `words`, as far as they go.
pub fn write_words<'a>(
    words: impl Iterator<Item = &'a AtomicU64>,
    mut bytes: impl Iterator<Item = u8>,
) {
    for word in words {
        let Some(first) = bytes.next() else { break };
        let mut buffer = [PADDING; WORD];
        buffer[0] = first;
        for (byte, next) in buffer[1..].iter_mut().zip(bytes.by_ref()) {
            *byte = next;
        }
        word.store(u64::from_le_bytes(buffer), Relaxed);
    }
}

/// What the supervisor sets when it builds an arena.
#[repr(C, align(64))]
pub struct Control {
    /// Seed of the thread's random choices: with the number of its starts, so that a thread
    /// that starts anew does not do the same again.
    pub seed: u64,
    pub starts: AtomicU64,
    /// System calls that the thread has made since, or instructions that it has begun.
    pub made: AtomicU64,
    /// Seed of the arena.
    pub arena: u64,
    /// Which area this is.
    pub index: u64,
    /// The CNode whose slots the thread's capability pointers name.
    pub home: Node,
    /// The thread's CSpace has the shelf and the deep path to the main CNode.
    pub has_shelf: bool,
    /// There is one core only.
    pub is_alone: bool,
}

/// Address of area `index` in the storm's address spaces.
pub const fn area_address(index: usize) -> u64 {
    AREAS_ADDRESS + index as u64 * AREA_BYTES
}

/// Where the stack of area `index` ends.
pub const fn stack_top(index: usize) -> u64 {
    area_address(index) + size_of::<Area>() as u64
}

/// Address of the IPC buffer of thread `index`.
pub const fn buffer_address(index: usize) -> u64 {
    BUFFERS_ADDRESS + ((index as u64) << 12)
}
