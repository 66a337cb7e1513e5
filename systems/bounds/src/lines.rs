//! Where objects lie in a data cache: which of its sets their lines want. A set has room for few lines, so who makes
//! objects such that many of them want the same set makes the kernel wait for a line that it has had before.

use alloc::vec::Vec;

use sandglass::cap::{Capability, ObjectType, Untyped};
use sandglass::resources::Resources;
use sandglass::SetupError;

/// A line, log2 bytes.
const LINE_BITS: u32 = 6;
/// Neighbouring lines that are all in different sets, log2: memory is used as one row of these after the other.
const ROW_BITS: u32 = 7;
pub const ROW: u64 = 1 << ROW_BITS;

/// Lines of an object.
fn lines_of(kind: ObjectType) -> u64 {
    1 << kind.size_bits().saturating_sub(LINE_BITS)
}

/// `make` gets memory whose next object, up to `count` lines long, lies at this line of a row.
pub fn at<T>(
    resources: &mut Resources,
    line: u64,
    count: u64,
    make: impl FnOnce(&mut Resources, Untyped) -> Result<T, SetupError>,
) -> Result<T, SetupError> {
    let rows = (line + count).div_ceil(ROW);
    let memory = resources.untyped(LINE_BITS + ROW_BITS + rows.next_power_of_two().ilog2())?;
    let mut before = Vec::<Untyped>::new();
    // The largest first, so that each lies just behind the one before.
    for bit in (0..ROW_BITS).rev().filter(|bit| line & (1 << bit) != 0) {
        let kind = ObjectType::Untyped(LINE_BITS + bit);
        before.push(resources.fill_slot(|slot| memory.retype(kind, slot, 1))?);
    }
    let made = make(resources, memory)?;
    // What is behind them stays where it is.
    for unused in before {
        resources.delete(unused)?;
    }
    Ok(made)
}

/// An object at this line of a row, which it shares with no other.
pub fn object<C: Capability>(
    resources: &mut Resources,
    line: u64,
    kind: ObjectType,
) -> Result<C, SetupError> {
    at(resources, line, lines_of(kind), |resources, memory| {
        resources.fill_slot(|slot| memory.retype(kind, slot, 1))
    })
}
