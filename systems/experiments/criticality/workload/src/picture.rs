//! The input of the two that look at pictures, drawn by numbers: a chessboard on a slope of grey,
//! with noise. Nobody owns it.

use alloc::vec::Vec;

/// A picture in grey.
pub struct Picture {
    pub width: usize,
    pub height: usize,
    /// Row by row.
    pub pixels: Vec<u8>,
}

/// Pixels in a row, and rows in a unit of work.
const WIDTH: usize = 160;
const UNIT_ROWS: usize = 8;
/// Pixels of a field of the chessboard.
const FIELD: usize = 20;

impl Picture {
    /// A picture of so many units.
    pub fn draw(units: usize) -> Self {
        let height = units * UNIT_ROWS;
        let mut noise = 0x2545_f491_4f6c_dd1du64;
        let pixel = |at: usize| {
            let (x, y) = (at % WIDTH, at / WIDTH);
            // Xorshift (Marsaglia).
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            let field = (x / FIELD + y / FIELD) % 2;
            (40 + 120 * field + (x + y) % 64 / 2 + (noise % 8) as usize) as u8
        };
        Self {
            width: WIDTH,
            height,
            pixels: (0..WIDTH * height).map(pixel).collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.pixels.is_empty()
    }
}
