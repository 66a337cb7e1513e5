//! A log's lines in memory that a component and the writer of the log share.
//!
//! The memory is [`SLOTS`] slots of [`SLOT_BYTES`] behind a header; a line takes up to [`MOST_SLOTS`] in a row. Any
//! number of threads of one program write; one reader reads. Neither waits for the other: a line that finds no room is
//! dropped and counted, so a component that says too much loses lines of its own, and nobody else's.
//!
//! Whoever maps the memory can write anything there at any time. The reader follows positions of its own, takes no
//! number for granted, and does a bounded amount of work for a line. All accesses are atomic, so none of this is
//! undefined.
//!
//! Memory that is all zero is an empty ring.

use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// Bytes of a ring: four pages.
pub const BYTES: usize = 4 * 4096;
/// Bytes of a slot, and of the header.
pub const SLOT_BYTES: usize = 128;
/// Slots of a ring.
pub const SLOTS: usize = BYTES / SLOT_BYTES - 1;
/// Bytes of text in a slot.
pub const SLOT_TEXT: usize = 8 * WORDS;
/// Most slots that a line takes.
pub const MOST_SLOTS: usize = 9;
/// Longest line, bytes; what is behind is cut off.
pub const MOST_TEXT: usize = MOST_SLOTS * SLOT_TEXT;

const WORDS: usize = 14;

/// What the memory holds.
#[repr(C)]
pub struct Ring {
    header: Header,
    slots: [Slot; SLOTS],
}
const _: () = assert!(size_of::<Ring>() == BYTES);

#[repr(C, align(128))]
struct Header {
    /// Position of the next line; positions count slots from the beginning on.
    head: AtomicU64,
    /// Lines that found no room, since the beginning.
    dropped: AtomicU32,
}

#[repr(C)]
struct Slot {
    /// Twice the number of times that the slot was emptied; one more while it is full.
    turn: AtomicU32,
    /// See [`Tag`].
    tag: AtomicU32,
    /// When the line was written, ticks of the time-stamp counter.
    ticks: AtomicU64,
    text: [AtomicU64; WORDS],
}

/// What a slot holds, beside text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tag {
    /// Bytes of text.
    len: u8,
    level: u8,
    /// The line goes on in the next slot.
    continues: bool,
}

impl Tag {
    fn word(self) -> u32 {
        u32::from_le_bytes([self.len, self.level, u8::from(self.continues), 0])
    }

    fn of_word(word: u32) -> Self {
        let [len, level, continues, _] = word.to_le_bytes();
        Self {
            len: len.min(SLOT_TEXT as u8),
            level,
            continues: continues != 0,
        }
    }
}

/// A line as the reader finds it: what its writer claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Ticks of the time-stamp counter.
    pub ticks: u64,
    /// As [`log::Level`] counts, from 1 for errors; or any other number.
    pub level: u8,
    text: [u8; MOST_TEXT],
    len: usize,
}

impl Line {
    /// The line's bytes, of any values.
    pub fn text(&self) -> &[u8] {
        &self.text[..self.len]
    }
}

/// The slot at a position, and the turn at which it is empty for it.
const fn place(position: u64) -> (usize, u32) {
    let index = (position % SLOTS as u64) as usize;
    (index, ((position / SLOTS as u64) as u32).wrapping_mul(2))
}

impl Ring {
    /// Writes a line, and returns whether there was room for it.
    pub fn write(&self, level: u8, ticks: u64, text: &[u8]) -> bool {
        let text = &text[..text.len().min(MOST_TEXT)];
        let count = text.len().div_ceil(SLOT_TEXT).max(1) as u64;
        let Some(first) = self.reserve(count) else {
            self.header.dropped.fetch_add(1, Relaxed);
            return false;
        };
        // From the last on: when the first is full, the whole line is there.
        for number in (0..count).rev() {
            let from = number as usize * SLOT_TEXT;
            let part = &text[from..text.len().min(from + SLOT_TEXT)];
            let (index, empty) = place(first + number);
            let slot = &self.slots[index];
            for (word, bytes) in slot.text.iter().zip(part.chunks(8)) {
                let mut value = [0; 8];
                value[..bytes.len()].copy_from_slice(bytes);
                word.store(u64::from_le_bytes(value), Relaxed);
            }
            let tag = Tag {
                len: part.len() as u8,
                level,
                continues: number + 1 < count,
            };
            slot.tag.store(tag.word(), Relaxed);
            slot.ticks.store(ticks, Relaxed);
            slot.turn.store(empty.wrapping_add(1), Release);
        }
        true
    }

    /// Takes `count` slots in a row; the position of the first.
    fn reserve(&self, count: u64) -> Option<u64> {
        // Another thread of the program that comes first makes us try again; as many times as there are slots at most,
        // since each takes one.
        for _ in 0..=SLOTS {
            let head = self.header.head.load(Relaxed);
            // Slots are emptied in turn, so if the last is empty, all are.
            let (last, empty) = place(head.wrapping_add(count - 1));
            if self.slots[last].turn.load(Acquire) != empty {
                return None;
            }
            let next = head.wrapping_add(count);
            let taken = self
                .header
                .head
                .compare_exchange(head, next, AcqRel, Relaxed);
            if taken.is_ok() {
                return Some(head);
            }
        }
        None
    }

    /// Fills slots that were taken and not filled, with nothing: the program has started anew, and who took them does not
    /// run any more. To be called before any thread of the program writes.
    pub fn recover(&self) {
        let head = self.header.head.load(Relaxed);
        for position in head.saturating_sub(SLOTS as u64)..head {
            let (index, empty) = place(position);
            let slot = &self.slots[index];
            if slot.turn.load(Acquire) == empty {
                slot.tag.store(0, Relaxed);
                slot.turn.store(empty.wrapping_add(1), Release);
            }
        }
    }
}

/// Reads one ring.
#[derive(Debug, Default)]
pub struct Reader {
    position: u64,
    /// Of the lines that were dropped, those that the reader has been told of.
    dropped: u32,
}

impl Reader {
    /// A reader of a ring that nobody has read from.
    pub const fn new() -> Self {
        Self {
            position: 0,
            dropped: 0,
        }
    }

    /// When the next line was written, as its writer claims, if there is one.
    pub fn next_ticks(&self, ring: &Ring) -> Option<u64> {
        let (index, empty) = place(self.position);
        let slot = &ring.slots[index];
        (slot.turn.load(Acquire) == empty.wrapping_add(1)).then(|| slot.ticks.load(Relaxed))
    }

    /// Takes the next line, if there is one.
    pub fn next(&mut self, ring: &Ring) -> Option<Line> {
        let mut line = Line {
            ticks: 0,
            level: 0,
            text: [0; MOST_TEXT],
            len: 0,
        };
        for number in 0..MOST_SLOTS {
            let (index, empty) = place(self.position);
            let slot = &ring.slots[index];
            if slot.turn.load(Acquire) != empty.wrapping_add(1) {
                // At the begin of a line: there is none yet. Else its writer has written nonsense.
                return (number > 0).then_some(line);
            }
            let tag = Tag::of_word(slot.tag.load(Relaxed));
            if number == 0 {
                line.ticks = slot.ticks.load(Relaxed);
                line.level = tag.level;
            }
            let mut bytes = [0; SLOT_TEXT];
            for (part, word) in bytes.chunks_exact_mut(8).zip(&slot.text) {
                part.copy_from_slice(&word.load(Relaxed).to_le_bytes());
            }
            let len = usize::from(tag.len);
            line.text[line.len..line.len + len].copy_from_slice(&bytes[..len]);
            line.len += len;
            slot.turn.store(empty.wrapping_add(2), Release);
            self.position += 1;
            if !tag.continues {
                break;
            }
        }
        Some(line)
    }

    /// Lines that were dropped since the last time.
    pub fn newly_dropped(&mut self, ring: &Ring) -> u32 {
        let dropped = ring.header.dropped.load(Relaxed);
        let new = dropped.wrapping_sub(self.dropped);
        self.dropped = dropped;
        new
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;
    use std::vec::Vec;

    use super::*;

    fn ring() -> Box<Ring> {
        // SAFETY: all zero is an empty ring; atomics have no invalid values.
        unsafe { Box::new(core::mem::zeroed()) }
    }

    #[test]
    fn lines_come_whole_and_in_order_whatever_their_length() {
        let ring = ring();
        let mut reader = Reader::new();
        let text: Vec<u8> = (0..MOST_TEXT + 50).map(|i| i as u8).collect();
        for len in (0..text.len()).step_by(37) {
            assert!(ring.write(3, len as u64, &text[..len]));
            let line = reader.next(&ring).unwrap();
            assert_eq!(line.text(), &text[..len.min(MOST_TEXT)]);
            assert_eq!((line.level, line.ticks), (3, len as u64));
            assert_eq!(reader.next(&ring), None);
        }
    }

    #[test]
    fn a_full_ring_drops_and_counts_what_is_written_then_and_nothing_else() {
        let ring = ring();
        let mut reader = Reader::new();
        for number in 0..SLOTS as u64 {
            assert!(ring.write(1, number, b"x"));
        }
        assert!(!ring.write(1, 0, b"y"));
        assert!(!ring.write(1, 0, b"z"));
        assert_eq!(reader.newly_dropped(&ring), 2);
        assert_eq!(reader.newly_dropped(&ring), 0);
        let read: Vec<u64> = std::iter::from_fn(|| reader.next(&ring))
            .map(|line| line.ticks)
            .collect();
        assert_eq!(read, (0..SLOTS as u64).collect::<Vec<_>>());
        assert!(ring.write(1, 7, &[b'a'; 3 * SLOT_TEXT]));
        assert_eq!(reader.next(&ring).unwrap().text().len(), 3 * SLOT_TEXT);
    }

    #[test]
    fn nonsense_in_the_memory_is_read_in_bounded_time() {
        let ring = ring();
        let mut random = 1_u64;
        let mut next = || {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
            random >> 32
        };
        let mut reader = Reader::new();
        for _ in 0..10_000 {
            let slot = &ring.slots[next() as usize % SLOTS];
            match next() % 4 {
                0 => slot.tag.store(next() as u32, Relaxed),
                1 => slot.turn.store(next() as u32 % 8, Relaxed),
                2 => ring.header.head.store(next(), Relaxed),
                _ => drop(ring.write(2, 0, b"honest")),
            }
            if let Some(line) = reader.next(&ring) {
                assert!(line.text().len() <= MOST_TEXT);
            }
        }
    }

    #[test]
    fn what_a_dead_thread_left_half_written_holds_up_nothing_after_a_restart() {
        let ring = ring();
        let mut reader = Reader::new();
        assert!(ring.write(1, 0, b"before"));
        ring.reserve(2).unwrap();
        assert!(ring.write(1, 0, b"behind"));
        ring.recover();
        assert!(ring.write(1, 0, b"anew"));
        let lines: Vec<Vec<u8>> = std::iter::from_fn(|| reader.next(&ring))
            .map(|line| line.text().to_vec())
            .collect();
        let expected: [&[u8]; 5] = [b"before", b"", b"", b"behind", b"anew"];
        assert_eq!(lines, expected);
    }

    #[test]
    fn threads_write_at_the_same_time() {
        let ring = &*ring();
        let mut reader = Reader::new();
        let mut read = [0; 4];
        let mut dropped = 0;
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for number in 0..2_000 {
                        let text = [b'a' + thread; 300];
                        ring.write(thread + 1, number, &text[..number as usize % 300]);
                    }
                });
            }
            while read.iter().sum::<u32>() + dropped < 8_000 {
                dropped += reader.newly_dropped(ring);
                if let Some(line) = reader.next(ring) {
                    let thread = line.level - 1;
                    assert_eq!(line.text().len(), line.ticks as usize % 300);
                    assert!(line.text().iter().all(|&byte| byte == b'a' + thread));
                    read[usize::from(thread)] += 1;
                }
            }
        });
    }
}
