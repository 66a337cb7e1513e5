//! 06, section 5.1: the devices of the reference.

use crate::page06::untypeds::initial;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[check(
    "06/5.1/the-devices-below-and-above-memory",
    reference_devices,
)];

/// Those of a GICv2, below the memory and above 2 GiB.
fn reference_devices(f: &mut Fixture) -> TestResult {
    const MEMORY: core::ops::Range<u64> = 0x4000_0000..0x8000_0000;
    if super::tree(f)?.registers("arm,cortex-a15-gic").is_none() {
        return Err(Failure::skip("the reference has a GICv2"));
    }
    let mut expected: Vec<(u64, u32)> = vec![(0, 27)];
    let doubling = |start: u64, sizes: core::ops::RangeInclusive<u32>| {
        sizes.map(move |bits| (start + (1 << bits), bits))
    };
    expected.extend(doubling(0x800_0000, 12..=15));
    expected.extend(doubling(0x801_0000, 12..=15));
    expected.extend(doubling(0x800_0000, 17..=23));
    expected.extend(doubling(0x800_0000, 24..=26));
    expected.extend([(0x1000_0000, 28), (0x2000_0000, 29)]);
    expected.push((0x8000_0000, 31));
    expected.extend((32..=39).map(|bits| (1 << bits, bits)));
    let seen: Vec<(u64, u32)> = initial(f, true)
        .iter()
        .map(|untyped| (untyped.paddr, untyped.size_bits))
        .filter(|(paddr, _)| !MEMORY.contains(paddr))
        .collect();
    ensure_eq!(seen, expected);
    Ok(())
}
