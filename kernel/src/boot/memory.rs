//! Dividing the machine's RAM: the root task's image, the first objects, and the rest.

use super::elf::Program;
use super::{List, Range, Refusal, MAX_RAM};
use crate::arch::Machine;
use crate::mem::objects::Ram;

/// Free RAM in ascending order; neighbours are joined.
pub struct FreeRam {
    pieces: List<Ram, MAX_RAM>,
}

impl FreeRam {
    /// The pieces of `ram`, which ascend.
    pub fn new(ram: &mut List<Ram, MAX_RAM>) -> Self {
        let mut free = FreeRam {
            pieces: List::new(),
        };
        for piece in ram.drain() {
            free.append(piece);
        }
        free
    }

    /// The addresses of the pieces.
    pub fn ranges(&self) -> impl Iterator<Item = Range> + '_ {
        self.pieces.iter().map(|piece| Range {
            start: piece.start(),
            end: piece.end(),
        })
    }

    /// Takes all pieces, ascending.
    pub fn drain(&mut self) -> impl Iterator<Item = Ram> + '_ {
        self.pieces.drain()
    }

    /// Takes the first `bytes` of the lowest piece that has them: what comes first behind the
    /// kernel's image, unless the loader or the firmware left something in the way.
    ///
    /// # Errors
    /// [`Refusal::TooLittleMemory`] if there are not so many in one piece.
    pub fn take_lowest(&mut self, bytes: u64) -> Result<Ram, Refusal> {
        let (lowest, _) = self.with_room(bytes, 0)?;
        self.take(lowest.start, bytes)
    }

    /// Takes `bytes` from the top of the last piece that has them, from an address that is a
    /// multiple of 2^`align_bits`, as high as possible (06, section 5).
    ///
    /// # Errors
    /// [`Refusal::TooLittleMemory`] if there is no such piece.
    pub fn take_top(&mut self, bytes: u64, align_bits: u8) -> Result<Ram, Refusal> {
        let mask = (1u64 << align_bits) - 1;
        let (_, last) = self.with_room(bytes, mask)?;
        self.take(last.end.saturating_sub(bytes) & !mask, bytes)
    }

    /// The first and the last piece that have `bytes` behind their first address of which no bit is in `mask`.
    ///
    /// # Errors
    /// [`Refusal::TooLittleMemory`] if there is none.
    #[inline(never)]
    fn with_room(&self, bytes: u64, mask: u64) -> Result<(Range, Range), Refusal> {
        let mut found: Option<(Range, Range)> = None;
        let mut available = 0;
        for piece in self.ranges() {
            let first = piece.start.saturating_add(mask) & !mask;
            let room = piece.end.saturating_sub(first);
            available = room.max(available);
            if room >= bytes {
                found = Some((found.map_or(piece, |(first, _)| first), piece));
            }
        }
        found.ok_or(Refusal::TooLittleMemory {
            needed: bytes,
            available,
        })
    }

    /// Takes the `bytes` from the address `start` on, which one of the pieces has.
    #[inline(never)]
    fn take(&mut self, start: u64, bytes: u64) -> Result<Ram, Refusal> {
        let mut taken = None;
        let mut left = FreeRam {
            pieces: List::new(),
        };
        for piece in self.pieces.drain() {
            let (below, rest) = piece.split(start);
            let (wanted, above) = rest.split(start + bytes);
            left.append(below);
            left.append(above);
            if wanted.length() > 0 {
                taken = Some(wanted);
            }
        }
        *self = left;
        taken.ok_or(Refusal::TooLittleMemory {
            needed: bytes,
            available: 0,
        })
    }

    /// Gives `ram`, which is in none of the pieces, back.
    pub fn give(&mut self, ram: Ram) {
        let mut rest = Some(ram);
        let mut all = FreeRam {
            pieces: List::new(),
        };
        for piece in self.pieces.drain() {
            if let Some(ram) = rest.take_if(|ram| ram.start() < piece.start()) {
                all.append(ram);
            }
            all.append(piece);
        }
        if let Some(ram) = rest {
            all.append(ram);
        }
        *self = all;
    }

    /// Adds `piece`, which lies above all others. A list that is full, which the number of
    /// entries of a memory map excludes, forgets it.
    fn append(&mut self, piece: Ram) {
        if piece.length() == 0 {
            return;
        }
        let joined = match self.pieces.pop() {
            Some(last) => last.join(piece),
            None => Ok(piece),
        };
        match joined {
            Ok(piece) => self.pieces.push(piece).unwrap_or_else(drop),
            Err((last, piece)) => {
                self.pieces.push(last).unwrap_or_else(drop);
                self.pieces.push(piece).unwrap_or_else(drop);
            }
        }
    }
}

/// Fills `image` with the image of `program`: its segments, and zeroes elsewhere.
pub fn load(machine: &Machine, program: Program, image: &mut Ram) {
    image.clear(machine);
    for segment in program.segments() {
        image.write(machine, segment.offset, segment.bytes);
    }
}
