//! [`Ram`]: memory that nothing uses yet, while the kernel boots.
//!
//! The machine's part of the boot finds out what RAM there is and vouches for it once; from then
//! on every byte belongs to exactly one `Ram`, which is not copied but split, joined, and at last
//! used up: for regions with kernel objects and frames, and for untyped memory.

use super::region::Region;
use crate::arch::{Machine, Platform};
use crate::mem::{Memory, PhysAddr, Tagged};

/// The physical addresses `start..end`: RAM that nothing uses, with any contents.
#[derive(Debug, PartialEq, Eq)]
pub struct Ram {
    start: u64,
    end: u64,
}

impl Ram {
    /// # Safety
    /// The bytes `start..end` are RAM of this machine which the kernel reaches at
    /// [`Platform::base`], and nothing uses them but what is made of this value; no other `Ram`
    /// covers any of them.
    pub unsafe fn vouch(start: u64, end: u64) -> Ram {
        Ram {
            start,
            end: end.max(start),
        }
    }

    /// First byte, a physical address.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// End, a physical address.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// What lies below the physical address `at`, and the rest.
    pub fn split(self, at: u64) -> (Ram, Ram) {
        let at = at.max(self.start).min(self.end);
        (
            Ram {
                start: self.start,
                end: at,
            },
            Ram {
                start: at,
                end: self.end,
            },
        )
    }

    /// One piece, if `next` starts where `self` ends; else both again.
    pub fn join(self, next: Ram) -> Result<Ram, (Ram, Ram)> {
        if self.end == next.start {
            Ok(Ram {
                start: self.start,
                end: next.end,
            })
        } else {
            Err((self, next))
        }
    }

    /// Bytes.
    pub fn length(&self) -> u64 {
        self.end - self.start
    }

    /// The contents, as firmware or loader left them.
    pub fn bytes<'a>(&'a self, machine: &'a Machine) -> &'a [u8] {
        let first = machine.base().wrapping_add(self.start as usize);
        // SAFETY: RAM of this machine (`vouch`), and initialised as far as Rust is concerned: the
        // machine put something there. Nothing writes it while `self` is borrowed, because every
        // use of it takes `self` by value or `&mut`.
        unsafe { core::slice::from_raw_parts(first, self.length() as usize) }
    }

    /// Makes every byte 0.
    pub fn clear(&mut self, machine: &Machine) {
        let first = machine.base().wrapping_add(self.start as usize);
        // SAFETY: RAM of this machine (`vouch`), and `&mut self` excludes any borrow of it.
        unsafe { first.write_bytes(0, self.length() as usize) }
    }

    /// Copies `bytes` to `offset`, as far as there is room.
    pub fn write(&mut self, machine: &Machine, offset: u64, bytes: &[u8]) {
        let room = self.length().saturating_sub(offset);
        let length = room.min(bytes.len() as u64) as usize;
        let target = machine
            .base()
            .wrapping_add(self.start.wrapping_add(offset) as usize);
        // SAFETY: `length` bytes of this RAM (`vouch`), which `&mut self` has alone; so `bytes` is
        // elsewhere.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), target, length) }
    }

    /// Takes the first 2^`bits` bytes and zeroes them. `None`, and nothing taken, if there are
    /// fewer or the start is not aligned to that size.
    pub fn take(&mut self, k: &mut Memory, bits: u8) -> Option<Region> {
        let start = self.advance(bits)?;
        // SAFETY: RAM that nothing uses (`vouch`), taken from this value once and for all;
        // aligned, as `advance` checks.
        Some(unsafe { Region::claim(k, PhysAddr::new(start), bits) })
    }

    /// Takes the first 2^`bits` bytes, with what is in them, as a frame of user memory. `None`, and
    /// nothing taken, as for [`take`](Self::take).
    pub fn take_frame(&mut self, bits: u8) -> Option<Tagged> {
        let start = self.advance(bits)?;
        // SAFETY: as for `take`; a frame may have any contents.
        Some(unsafe { Region::with_contents(PhysAddr::new(start), bits) }.into_frame())
    }

    /// Takes the first 2^`bits` bytes, with what is in them, as untyped memory: as that is not zero,
    /// its watermark must say that all of it is in use. `None`, and nothing taken, as for
    /// [`take`](Self::take).
    pub fn take_untyped(&mut self, bits: u8) -> Option<Tagged> {
        let start = self.advance(bits)?;
        // SAFETY: as for `take`; it is reset before an object is placed in it.
        Some(unsafe { Region::with_contents(PhysAddr::new(start), bits) }.into_untyped())
    }

    #[inline(never)]
    fn advance(&mut self, bits: u8) -> Option<u64> {
        let size = 1u64.checked_shl(bits.into())?;
        let start = self.start;
        let end = start.checked_add(size)?;
        if start & (size - 1) != 0 || end > self.end {
            return None;
        }
        self.start = end;
        Some(start)
    }
}
