//! Addresses that batches load: of data, of code, of memory of their own.

use crate::actor::Dice;
use crate::area::{
    stack_top, Area, AREAS, AREA_BYTES, CODE_BYTES, EDGE_ADDRESS, LOW_ADDRESS, LOW_BYTES,
};

use super::batch::SCRATCH_BYTES;
use super::PAGE;

/// Nothing is mapped here.
const BEHIND_AREAS: u64 = 0x2800_0000;
/// Of the page at the edge: here ends the part for data.
const EDGE_DATA: u64 = 0x800;

/// An address of data: mostly of memory that is there, seldom of [`code`]'s.
pub fn data(area: &Area, dice: &mut Dice) -> u64 {
    let index = area.control.index as usize;
    match dice.below(16) {
        0..5 => scratch(area, dice, 16).0,
        5..8 => EDGE_ADDRESS + dice.below(EDGE_DATA),
        8 => EDGE_ADDRESS + PAGE as u64 + dice.below(16),
        9 | 10 => stack_top(index) - 0x2000 - dice.below(0x2000),
        11 => {
            // Another thread's.
            let other = dice.index(AREAS) as u64;
            let areas = other.wrapping_sub(area.control.index);
            let (own, _) = scratch(area, dice, 16);
            own.wrapping_add(areas.wrapping_mul(AREA_BYTES))
        }
        _ => match dice.wild() {
            low @ 0..LOW_BYTES => low + BEHIND_AREAS,
            address => address,
        },
    }
}

/// An address to go to: mostly of code, often the `summit`, where ways out of user level would lead to; and not of memory
/// that is written otherwise than as code, but by chance.
pub fn code(area: &Area, dice: &mut Dice, summit: u64) -> u64 {
    match dice.below(8) {
        0 => EDGE_ADDRESS + 0xff0 + dice.below(32),
        1 | 2 => LOW_ADDRESS + dice.below(0x1_0000),
        3 => area.code.0.as_ptr() as u64 + dice.below(CODE_BYTES as u64),
        4 => summit + dice.below(64),
        5 => dice.wild(),
        _ => summit,
    }
}

/// Memory of the area for `bytes` bytes, aligned to 16: its address, and the index of its first word.
pub fn scratch(area: &Area, dice: &mut Dice, bytes: usize) -> (u64, usize) {
    let places = (SCRATCH_BYTES - bytes) / 16 + 1;
    let offset = 16 * dice.index(places);
    let first = area.scratch.words.as_ptr() as u64;
    (first + offset as u64, offset / 8)
}
