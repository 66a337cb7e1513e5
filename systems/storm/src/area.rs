//! Memory that the storm's threads and their supervisor share, and where it is mapped in the
//! storm's address spaces. The supervisor takes nothing in it for granted: the storm can write it.

use core::sync::atomic::{AtomicU64, AtomicU8};

use crate::catalogue::Node;
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
/// The highest page that can be mapped: its last two bytes are a SYSCALL instruction, behind
/// which the return address is the first one that is not the user's.
pub const EDGE_ADDRESS: u64 = sandglass::abi::vspace::x86_64::HIGHEST_PAGE;

/// What a thread of the storm works with.
#[repr(C, align(4096))]
pub struct Area {
    pub control: Control,
    pub tally: Tally,
    pub code: CodePage,
    pub stack: [u8; STACK_BYTES],
}
const STACK_BYTES: usize = 0xc000;
const _: () = assert!(size_of::<Area>() as u64 <= AREA_BYTES);

/// Machine code that the thread writes and executes.
#[repr(C, align(4096))]
pub struct CodePage(pub [AtomicU8; 64]);

/// What the supervisor sets when it builds an arena.
#[repr(C, align(64))]
pub struct Control {
    /// Seed of the thread's random choices: with the number of its starts, so that a thread
    /// that starts anew does not do the same again.
    pub seed: u64,
    pub starts: AtomicU64,
    /// System calls that the thread has made since.
    pub calls: AtomicU64,
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
