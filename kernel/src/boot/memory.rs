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
        let fits = |piece: &Ram| piece.length() >= bytes;
        if !self.pieces.iter().any(fits) {
            return Err(Refusal::TooLittleMemory {
                needed: bytes,
                available: self.pieces.iter().map(Ram::length).max().unwrap_or(0),
            });
        }
        self.take(fits, Ram::start, bytes)
    }

    /// Takes `bytes` from the top of the last piece that has them, from an address that is a
    /// multiple of 2^`align_bits`, as high as possible (06, section 5).
    ///
    /// # Errors
    /// [`Refusal::TooLittleMemory`] if there is no such piece.
    pub fn take_top(&mut self, bytes: u64, align_bits: u8) -> Result<Ram, Refusal> {
        let mask = (1u64 << align_bits) - 1;
        let start = |piece: &Ram| piece.end().saturating_sub(bytes) & !mask;
        // What a piece has from its first multiple of the alignment on.
        let room = |piece: &Ram| {
            let first = piece.start().saturating_add(mask) & !mask;
            piece.end().saturating_sub(first)
        };
        let last = self
            .pieces
            .iter()
            .filter(|piece| room(piece) >= bytes)
            .last()
            .map(Ram::start);
        let Some(last) = last else {
            return Err(Refusal::TooLittleMemory {
                needed: bytes,
                available: self.pieces.iter().map(room).max().unwrap_or(0),
            });
        };
        self.take(|piece| piece.start() == last, start, bytes)
    }

    /// Takes `bytes` from the address `start` on out of the first piece that `is_it`.
    fn take(
        &mut self,
        is_it: impl Fn(&Ram) -> bool,
        start: impl Fn(&Ram) -> u64,
        bytes: u64,
    ) -> Result<Ram, Refusal> {
        let mut taken = None;
        let mut left = FreeRam {
            pieces: List::new(),
        };
        for piece in self.pieces.drain() {
            if taken.is_none() && is_it(&piece) {
                let start = start(&piece);
                let (below, rest) = piece.split(start);
                let (wanted, above) = rest.split(start + bytes);
                left.append(below);
                left.append(above);
                taken = Some(wanted);
            } else {
                left.append(piece);
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
