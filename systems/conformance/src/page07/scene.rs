//! Frames of every size, and address spaces with the structures that they need.

use sandglass::cap::Pml4;

use crate::page03::levels::{Level, LEVELS};
use crate::prelude::*;

/// Where the checks map: aligned for every level, and used by nothing else.
pub use crate::page03::levels::VADDR;

/// The sizes, and how many levels of structures lead to a page.
pub const SIZES: [(FrameSize, usize); 3] = [
    (FrameSize::Small, 3),
    (FrameSize::Large, 2),
    (FrameSize::Huge, 1),
];

pub const READ: u64 = 2;
pub const READ_WRITE: u64 = 3;

/// A frame of this size. The largest may be more than the machine's memory: it is of addresses
/// at which there is nothing, whose words may be loaded but say nothing.
pub fn frame_of(f: &mut Fixture, size: FrameSize) -> Result<Frame, Failure> {
    if size != FrameSize::Huge {
        return Ok(f.frame(size)?);
    }
    let nothing = f.boot.untypeds().filter(|initial| {
        initial.is_device && initial.size_bits >= size.bits() && initial.paddr >= 1 << 32
    });
    let lowest = nothing.min_by_key(|initial| initial.paddr);
    let lowest = lowest.ok_or_else(|| Failure::from("there is no device memory of 1 GiB"))?;
    let slot = f.empty_slot()?;
    lowest.untyped.retype(size.object_type(), slot, 1)?;
    Ok(slot.capability())
}

/// A frame of 4 KiB whose first word is `mark`.
pub fn marked(f: &mut Fixture, mark: u64) -> Result<Frame, Failure> {
    Ok(f.code_frame(&mark.to_le_bytes())?)
}

/// Page_Map at [`VADDR`], readable and writable.
pub fn map(frame: Frame, root: Pml4) -> Invocation {
    map_at(frame, root, VADDR)
}

/// Page_Map, readable and writable.
pub fn map_at(frame: Frame, root: Pml4, vaddr: u64) -> Invocation {
    let words = [vaddr, READ_WRITE, Attributes::WriteBack.raw()];
    Invocation::new(frame, arch_label::PAGE_MAP, &words, &[root.cptr()])
}

/// Page_Unmap.
pub fn unmap(frame: Frame) -> Invocation {
    Invocation::new(frame, arch_label::PAGE_UNMAP, &[], &[])
}

/// The check's own address space and another.
pub fn spaces(f: &mut Fixture) -> Result<[Pml4; 2], Failure> {
    Ok([boot::VSPACE, f.vspace()?.root()])
}

/// Map of a new structure of `level` around `vaddr`, which has been made.
pub fn add_table(
    f: &mut Fixture,
    level: Level,
    root: Pml4,
    vaddr: u64,
) -> Result<Invocation, Failure> {
    let table: CPtr = f.make(level.kind)?;
    let map = Invocation::new(table, level.map, &[vaddr, 0], &[root.cptr()]);
    map.expect_ok(&[])?;
    Ok(map)
}

/// Makes the first `depth` levels of structures around [`VADDR`]; returns their Map invocations.
pub fn add_tables(f: &mut Fixture, root: Pml4, depth: usize) -> Result<Vec<Invocation>, Failure> {
    let levels = LEVELS[..depth].iter();
    levels
        .map(|&level| add_table(f, level, root, VADDR))
        .collect()
}

/// The Unmap of the structure that `map` maps.
pub fn unmap_table(map: &Invocation) -> Invocation {
    // Labels of the two follow each other (03, section 2).
    map.with_label(map.label + 1)
        .with_length(0)
        .with_cap_count(0)
}
