//! 06, section 5.1: the devices of the reference.

use crate::page06::untypeds::initial;
use crate::prelude::*;

use super::memory;

pub const CHECKS: &[Check] = &[check(
    "06/5.1/the-devices-above-e0000000",
    reference_devices,
)];

fn reference_devices(f: &mut Fixture) -> TestResult {
    if memory(f)?.iter().any(|range| range.end > 0xe000_0000) {
        return Err(Failure::skip("this machine has memory above 0xe0000000"));
    }
    let mut expected: Vec<(u64, u32)> = vec![
        (0xe000_0000, 28),
        (0xf000_0000, 27),
        (0xf800_0000, 26),
        (0xfc00_0000, 25),
        (0xfe00_0000, 23),
        (0xfe80_0000, 22),
    ];
    let doubling = |start: u64, sizes: core::ops::RangeInclusive<u32>| {
        sizes.map(move |bits| (start + (1 << bits), bits))
    };
    expected.extend(doubling(0xfec0_0000, 12..=19));
    expected.push((0xfed0_0000, 20));
    expected.extend(doubling(0xfee0_0000, 12..=19));
    expected.push((0xfef0_0000, 20));
    // Halving towards the window of message-signalled interrupts.
    let halving = |end: u64, sizes: core::ops::RangeInclusive<u32>| {
        sizes.rev().map(move |bits| (end - (2 << bits), bits))
    };
    expected.extend(halving(0x1_0000_0000, 4..=23));
    expected.extend((32..=38).map(|bits| (1 << bits, bits)));
    expected.push((0x80_0000_0000, 46));
    expected.extend([
        (0x4080_0000_0000, 45),
        (0x6080_0000_0000, 44),
        (0x7080_0000_0000, 43),
        (0x7880_0000_0000, 42),
        (0x7c80_0000_0000, 41),
        (0x7e80_0000_0000, 40),
        (0x7f80_0000_0000, 39),
    ]);
    let seen: Vec<(u64, u32)> = initial(f, true)
        .iter()
        .map(|untyped| (untyped.paddr, untyped.size_bits))
        .filter(|&(paddr, _)| paddr >= 0xe000_0000)
        .collect();
    for (seen, expected) in seen.iter().zip(&expected) {
        ensure!(
            seen == expected,
            "(address, bits) {seen:x?} is in the list, not {expected:x?}"
        );
    }
    ensure_eq!(seen.len(), expected.len());
    Ok(())
}
