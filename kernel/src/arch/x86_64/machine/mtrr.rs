//! The memory-type range registers of the core that executes.

use super::cpu;
use super::memory_types::{self, CAPABILITIES, DEFAULT};
use crate::arch::bounds::turns;
use crate::boot::Range;

/// The fixed ranges of the first MiB: numbers of their registers, of which eight are one behind the other.
const FIXED: [u32; 3] = [0x250, 0x258, 0x259];
const FIXED_4_KIB: u32 = 0x268;
/// Of the capabilities: there are fixed ranges.
const HAS_FIXED: u64 = 1 << 8;
/// Registers from the first of the first variable range on, at most: two for each.
const MOST: u64 = 510;

#[inline(never)]
fn register(number: u32) -> u64 {
    // SAFETY: asked for below only of processors that have these registers.
    unsafe { cpu::read_numbered_msr(number) }
}

/// Whether the registers say anything. Where they are off, all memory is uncached; but an emulator or a hypervisor can have
/// left them so, or have switched them off at an INIT, which no processor does, and means nothing by it.
fn count() -> bool {
    cpu::has_mtrrs() && (memory_types::are_on(&register) || !cpu::is_virtual())
}

/// Refuses RAM of which something is not write-back.
///
/// # Errors
/// What is wrong, for a message.
pub fn judge(mut ram: impl Iterator<Item = Range>) -> Result<(), &'static str> {
    if !count() {
        return Ok(());
    }
    if !memory_types::are_on(&register) {
        return Err("the firmware has left the memory-type range registers (MTRRs) off: all memory is uncached");
    }
    if ram.all(|range| memory_types::are_write_back(&register, range.start, range.end)) {
        Ok(())
    } else {
        Err("the memory-type range registers (MTRRs) make RAM another type than write-back: the firmware must not")
    }
}

/// Whether this core's registers, if they say anything, are as those of one that has this [`digest`].
pub fn agree(with: u64) -> bool {
    !count() || digest() == with
}

/// A number that differs between cores whose registers differ, as good as always.
#[inline(never)]
pub fn digest() -> u64 {
    if !count() {
        return 0;
    }
    let capabilities = register(CAPABILITIES);
    let mut digest = capabilities;
    let mut add = |number| {
        digest = digest.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ register(number);
    };
    add(DEFAULT);
    let variable = (capabilities as u32 & 0xff).wrapping_mul(2);
    for i in turns::<MOST, _>(0..variable) {
        add(memory_types::BASE.wrapping_add(i));
    }
    if capabilities & HAS_FIXED != 0 {
        for number in FIXED {
            add(number);
        }
        for i in turns::<8, _>(0..8) {
            add(FIXED_4_KIB.wrapping_add(i));
        }
    }
    digest
}
