//! User memory that the kernel touches: IPC buffers, by raw copies of words.

use core::ptr;

use super::{Kind, Memory, PhysAddr, Tagged};
use crate::arch::{self, Platform};
use crate::cells::Owner;

/// Bytes of an IPC buffer (01, section 3).
pub const BUFFER_BYTES: u64 = 1024;
const BUFFER_WORDS: usize = BUFFER_BYTES as usize / 8;

/// An IPC buffer inside a frame of RAM. Its contents are the user's claims.
#[derive(Clone, Copy)]
pub struct Buffer {
    start: PhysAddr,
}

impl Buffer {
    /// The buffer at user address `vaddr`, aligned to its size, in the frame that `frame` names;
    /// `None` if that is not a frame of RAM. Where the frame is mapped is irrelevant.
    #[inline(always)]
    pub fn in_frame(frame: Tagged, vaddr: u64) -> Option<Buffer> {
        if !frame.is(Kind::Frame) {
            return None;
        }
        let (bits, device) = frame.extent();
        if device {
            return None;
        }
        let offset = vaddr & ((1 << bits) - 1) & !(BUFFER_BYTES - 1);
        Some(Buffer {
            start: frame.address().offset(offset),
        })
    }

    #[inline(always)]
    fn word(self, k: &Memory, i: usize) -> *mut u64 {
        let address = (self.start.get() as usize).wrapping_add((i & (BUFFER_WORDS - 1)) * 8);
        k.machine.base().wrapping_add(address).cast()
    }

    /// Word `i` (modulo the words of a buffer).
    #[inline(always)]
    pub fn read(self, k: &Memory, i: usize) -> u64 {
        // SAFETY: a frame of RAM lies below the end of the machine, and the buffer within it;
        // any bits are a word. No reference to user memory exists anywhere. Volatile, because
        // user code on another core may write at the same time: each word is read once.
        unsafe { ptr::read_volatile(self.word(k, i)) }
    }

    /// Copies the words from `first` to before `end` into `target`; those past the end of a buffer
    /// do not exist.
    #[inline(always)]
    pub fn copy(self, k: &(impl Owner + AsRef<Memory>), target: Buffer, first: usize, end: usize) {
        let end = end.min(BUFFER_WORDS);
        let Some(words) = end
            .checked_sub(first)
            .filter(|_| self.start != target.start)
        else {
            return;
        };
        // SAFETY: as for `read` and `write`. Buffers are aligned to their size, so two of them are
        // the same or apart.
        unsafe {
            arch::copy_words::<{ BUFFER_WORDS as u64 }>(
                self.word(k.as_ref(), first),
                target.word(k.as_ref(), first),
                words,
            )
        }
    }

    /// Sets word `i` (modulo the words of a buffer).
    #[inline(always)]
    pub fn write(self, k: &(impl Owner + AsRef<Memory>), i: usize, value: u64) {
        // SAFETY: as for `read`; frames of RAM hold no kernel object.
        unsafe { ptr::write_volatile(self.word(k.as_ref(), i), value) }
    }
}

/// Copies bytes of user memory at boot, when nothing of it is in use: `bytes` from `source`, cut
/// to the frame that `frame` names, to `offset` within it.
pub fn fill_frame(k: &mut Memory, frame: Tagged, offset: u64, source: &[u8]) {
    if !frame.is(Kind::Frame) {
        return;
    }
    let (bits, device) = frame.extent();
    let room = (1u64 << bits).saturating_sub(offset);
    if device {
        return;
    }
    let length = (source.len() as u64).min(room) as usize;
    let target = k
        .machine
        .base()
        .wrapping_add(frame.address().offset(offset).get() as usize);
    // SAFETY: `length` bytes at `offset` lie within the frame, which is RAM and holds no kernel
    // object; `source` is a borrow and hence outside of every frame.
    unsafe { ptr::copy_nonoverlapping(source.as_ptr(), target, length) }
}
