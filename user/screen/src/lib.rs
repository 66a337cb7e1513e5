//! Text on a linear framebuffer: where it goes, and what pixels it is made of.
//!
//! The screen is written from top to bottom and then from the top again, and the line after the
//! newest is always empty, so that one sees which the newest is. So nothing is ever read back or
//! moved, which framebuffers are slow at; a byte costs at most a cell and the clearing of a line;
//! and the only state is a *cursor*, one number. Several writers may share it: who is interrupted
//! between reading and writing it draws over another, and nothing worse, since a cursor is a claim
//! that is brought into the screen before use.
//!
//! Text is white on black: all ones and all zeros, whatever the order of colours.

#![no_std]
#![forbid(unsafe_code)]

use font8x8::legacy::BASIC_LEGACY;

/// Pixels of a character. The font's are 8 by 8, each of whose lines is shown twice.
const CELL_WIDTH: usize = 8;
const CELL_HEIGHT: usize = 16;

/// Lines of text at the top that are the debug kernel's.
const KERNEL_ROWS: u16 = 6;

/// What is known of a framebuffer, as firmware says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Bytes from a line of pixels to the next.
    pub pitch: u32,
    /// Pixels.
    pub width: u32,
    pub height: u32,
    pub bits_per_pixel: u8,
}

/// Memory of a screen.
pub trait Pixels {
    /// Sets the `count` bytes from `offset` on, which lie within [`Screen::bytes`], to `value`.
    fn fill(&mut self, offset: usize, count: usize, value: u8);
}

/// Where text goes on a framebuffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    columns: u16,
    /// Lines of text above it, which are left alone.
    first: u16,
    rows: u16,
    /// Bytes.
    pitch: usize,
    pixel: usize,
}

/// A place for a character.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    row: u16,
    column: u16,
}

impl Screen {
    /// The screen of a framebuffer whose pixels are colours and not indices of a palette. `None`
    /// for one that cannot be, or that is too small for two lines of text.
    pub fn new(mode: Mode) -> Option<Self> {
        if !(15..=32).contains(&mode.bits_per_pixel) {
            return None;
        }
        let pixel = usize::from(mode.bits_per_pixel).div_ceil(8);
        let pitch = usize::try_from(mode.pitch).ok()?;
        let width = usize::try_from(mode.width).ok()?;
        let height = usize::try_from(mode.height).ok()?;
        if width.checked_mul(pixel)? > pitch {
            return None;
        }
        let columns = u16::try_from(width / CELL_WIDTH).ok()?;
        let rows = u16::try_from(height / CELL_HEIGHT).ok()?;
        usize::from(rows)
            .checked_mul(CELL_HEIGHT)?
            .checked_mul(pitch)?;
        (columns > 0 && rows > 1).then_some(Screen {
            columns,
            first: 0,
            rows,
            pitch,
            pixel,
        })
    }

    /// The same without the first lines, which the debug kernel writes to: its few words should
    /// not cover those of the system. `None` if there is not enough left.
    pub fn below_the_kernel(self) -> Option<Self> {
        let rows = self.rows.checked_sub(KERNEL_ROWS)?;
        (rows > 1).then_some(Screen {
            first: self.first.checked_add(KERNEL_ROWS)?,
            rows,
            ..self
        })
    }

    /// Bytes of the framebuffer that text is written to, from the framebuffer's start on.
    pub const fn bytes(&self) -> usize {
        (self.first as usize + self.rows as usize) * CELL_HEIGHT * self.pitch
    }

    /// Makes everything black. The cursor is 0 then.
    pub fn clear(&self, pixels: &mut impl Pixels) {
        for row in 0..self.rows {
            self.clear_row(row, pixels);
        }
    }

    /// Writes one byte of text at `cursor`; returns where the next one goes. A line feed goes to
    /// the next line's begin, a carriage return to this one's; of other control characters and
    /// the rest of a character beyond ASCII there is nothing to see.
    pub fn put(&self, cursor: u32, byte: u8, pixels: &mut impl Pixels) -> u32 {
        let place = self.place(cursor);
        let next = match byte {
            b'\n' => self.next_row(place, pixels),
            b'\r' => Place { column: 0, ..place },
            b' '..=b'~' => self.print(place, byte, pixels),
            // The first byte of a character that the font does not have.
            0xc0.. => self.print(place, b'?', pixels),
            _ => place,
        };
        u32::from(next.row) << 16 | u32::from(next.column)
    }

    /// The place that `cursor` says, or one that there is.
    fn place(&self, cursor: u32) -> Place {
        Place {
            row: ((cursor >> 16) as u16).min(self.rows.wrapping_sub(1)),
            column: (cursor as u16).min(self.columns),
        }
    }

    /// Draws a character of ASCII, in the next line if this one is full.
    fn print(&self, place: Place, character: u8, pixels: &mut impl Pixels) -> Place {
        let place = if place.column < self.columns {
            place
        } else {
            self.next_row(place, pixels)
        };
        let glyph = BASIC_LEGACY
            .get(usize::from(character))
            .copied()
            .unwrap_or([0; 8]);
        let corner =
            self.row_offset(place.row) + usize::from(place.column) * CELL_WIDTH * self.pixel;
        for (line, bits) in glyph.iter().flat_map(|bits| [bits, bits]).enumerate() {
            for column in 0..CELL_WIDTH {
                let value = if bits >> column & 1 == 1 { 0xff } else { 0 };
                let offset = corner + line * self.pitch + column * self.pixel;
                pixels.fill(offset, self.pixel, value);
            }
        }
        Place {
            column: place.column + 1,
            ..place
        }
    }

    /// The begin of the next line, which is empty already; the one after it is cleared.
    fn next_row(&self, place: Place, pixels: &mut impl Pixels) -> Place {
        let row = self.row_after(place.row);
        self.clear_row(self.row_after(row), pixels);
        Place { row, column: 0 }
    }

    fn row_after(&self, row: u16) -> u16 {
        let next = row.wrapping_add(1);
        if next < self.rows {
            next
        } else {
            0
        }
    }

    fn clear_row(&self, row: u16, pixels: &mut impl Pixels) {
        pixels.fill(self.row_offset(row), CELL_HEIGHT * self.pitch, 0);
    }

    fn row_offset(&self, row: u16) -> usize {
        (usize::from(self.first) + usize::from(row)) * CELL_HEIGHT * self.pitch
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::String;
    use std::vec;
    use std::vec::Vec;

    const MODE: Mode = Mode {
        pitch: 4 * 40,
        width: 35,
        height: 50,
        bits_per_pixel: 32,
    };

    struct Memory(Vec<u8>);

    impl Pixels for Memory {
        fn fill(&mut self, offset: usize, count: usize, value: u8) {
            self.0[offset..offset + count].fill(value);
        }
    }

    fn dirty(screen: &Screen) -> Memory {
        Memory(vec![0x55; screen.bytes()])
    }

    /// What can be read: the characters whose glyphs are there.
    fn read(screen: &Screen, memory: &Memory) -> Vec<String> {
        let character = |row: usize, column: usize| {
            let bit = |line: usize, x: usize| {
                let offset = (row * 16 + line) * screen.pitch + (column * 8 + x) * screen.pixel;
                match memory.0[offset..offset + screen.pixel] {
                    ref pixel if pixel.iter().all(|&b| b == 0xff) => 1u8 << x,
                    ref pixel if pixel.iter().all(|&b| b == 0) => 0,
                    _ => panic!("a pixel is neither black nor white"),
                }
            };
            let line = |line| (0..8).map(|x| bit(line, x)).sum::<u8>();
            let glyph: [u8; 8] = core::array::from_fn(|i| {
                assert_eq!(line(2 * i), line(2 * i + 1));
                line(2 * i)
            });
            let found = (b' '..=b'~').find(|&c| BASIC_LEGACY[usize::from(c)] == glyph);
            char::from(found.expect("a glyph of the font"))
        };
        (0..usize::from(screen.rows))
            .map(|row| {
                let text: String = (0..usize::from(screen.columns))
                    .map(|column| character(row, column))
                    .collect();
                text.trim_end().into()
            })
            .collect()
    }

    fn show(mode: Mode, text: &[u8]) -> Vec<String> {
        let screen = Screen::new(mode).unwrap();
        let mut memory = dirty(&screen);
        screen.clear(&mut memory);
        text.iter()
            .fold(0, |cursor, &byte| screen.put(cursor, byte, &mut memory));
        read(&screen, &memory)
    }

    #[test]
    fn text_is_shown_in_lines() {
        for bits_per_pixel in [15, 16, 24, 32] {
            let mode = Mode {
                bits_per_pixel,
                ..MODE
            };
            assert_eq!(show(mode, b"Ab\r\n~ c"), ["Ab", "~ c", ""]);
        }
        assert_eq!(show(MODE, b"ab\rc"), ["cb", "", ""]);
        assert_eq!(show(MODE, "1\u{b5}s\x07\x1b".as_bytes()), ["1?s", "", ""]);
    }

    #[test]
    fn long_lines_go_on_in_the_next_and_the_last_line_in_the_first() {
        assert_eq!(show(MODE, b"abcd"), ["abcd", "", ""]);
        assert_eq!(show(MODE, b"abcde"), ["abcd", "e", ""]);
        assert_eq!(show(MODE, b"abcd\ne"), ["abcd", "e", ""]);
        assert_eq!(show(MODE, b"a\nb\nc"), ["", "b", "c"]);
        assert_eq!(show(MODE, b"a\nb\nc\nd"), ["d", "", "c"]);
    }

    /// Other writers of the cursor can do no harm.
    #[test]
    fn any_cursor_stays_on_the_screen() {
        let screen = Screen::new(MODE).unwrap();
        let mut memory = dirty(&screen);
        for cursor in [u32::MAX, 0xffff, 0xffff_0000, 4, 5, 2 << 16 | 4] {
            for byte in 0..=255 {
                let next = screen.put(cursor, byte, &mut memory);
                assert!(next >> 16 < 3 && next & 0xffff <= 4);
            }
        }
    }

    #[test]
    fn the_kernels_lines_are_left_alone() {
        let mode = Mode {
            height: 9 * 16,
            ..MODE
        };
        let whole = Screen::new(mode).unwrap();
        let below = whole.below_the_kernel().unwrap();
        assert_eq!(whole.bytes(), below.bytes());
        let mut memory = dirty(&whole);
        whole.clear(&mut memory);
        whole.put(0, b'k', &mut memory);
        below.clear(&mut memory);
        b"a\nb\nc\nd"
            .iter()
            .fold(0, |cursor, &byte| below.put(cursor, byte, &mut memory));
        let lines = ["k", "", "", "", "", "", "d", "", "c"];
        assert_eq!(read(&whole, &memory), lines);
        assert_eq!(Screen::new(MODE).unwrap().below_the_kernel(), None);
    }

    #[test]
    fn what_cannot_be_a_screen_is_none() {
        for mode in [
            Mode { pitch: 139, ..MODE },
            Mode { width: 7, ..MODE },
            Mode { height: 31, ..MODE },
            Mode {
                bits_per_pixel: 8,
                ..MODE
            },
            Mode {
                bits_per_pixel: 33,
                ..MODE
            },
            Mode {
                width: u32::MAX,
                ..MODE
            },
            Mode {
                height: u32::MAX,
                ..MODE
            },
        ] {
            assert_eq!(Screen::new(mode), None, "{mode:?}");
        }
        let most = Mode {
            pitch: u32::MAX,
            height: 0xf_fff0,
            ..MODE
        };
        assert_eq!(
            Screen::new(most).unwrap().bytes(),
            0xf_fff0 * u32::MAX as usize
        );
    }
}
