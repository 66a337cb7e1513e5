//! Page 06: what aarch64 has of it.

mod chunks;
mod console;
mod devices;
pub mod tree;

use sandglass::abi::boot::extra as id;

use crate::page02::support::Kind;
use crate::page06::extra::required;
use crate::page06::image::PAGE;
use crate::page06::untypeds::{range, Range};
use crate::prelude::*;

use tree::Tree;

/// The checks, file by file.
pub const CHECKS: &[&[Check]] = &[chunks::CHECKS, console::CHECKS, devices::CHECKS];

/// Chunks of extra boot information in their order (06, section 4), and those that every boot has.
pub const CHUNKS: &[u64] = &[id::DEVICE_TREE];
pub const REQUIRED: &[u64] = &[id::DEVICE_TREE];

/// Bytes of a chunk, if there is one of this id: those that the tree says that it has, and the head.
pub fn chunk_length(id: u64, payload: &[u8]) -> Option<usize> {
    (id == 6).then(|| Tree::new(payload).map_or(0, |tree| tree.bytes()) + 16)
}

/// The device tree.
pub fn tree(f: &Fixture) -> Result<Tree<'static>, Failure> {
    Tree::new(required(f, id::DEVICE_TREE)?)
}

/// What fixed slots hold that differs between architectures (06, section 1.2), and which are empty.
pub const FIXED: &[(u64, Kind)] = &[(16, Kind::PageTable)];
pub const NULL_SLOTS: &[u64] = &[7];

/// The regions of boot information in their order, by number: authorities over time are 0, paging structures 1, pages of extra
/// boot information 2.
pub const REGIONS: [usize; 3] = [1, 2, 0];

/// Pages of extra boot information that have capabilities: those that it covers (06, section 3).
pub fn extra_pages(f: &Fixture) -> u64 {
    f.boot.raw().extra_len.div_ceil(PAGE)
}

/// The attributes of the frames of buffer and boot information: cacheable, and never executed.
pub const OTHER_ATTRIBUTES: u64 = 7;

/// Flags at the first instruction (06, section 1.1), as far as they are seen: of SPSR those that a program reads.
pub const FIRST_FLAGS: u64 = 0;

/// The highest page that can be mapped (06, section 8).
pub const HIGHEST_PAGE: u64 = 0x7fff_ffff_f000;

/// Above all devices.
pub const DEVICE_TOP: u64 = 1 << 40;

/// The interrupt controller, withheld: of a GICv2 a page of its distributor and one of its interface, of a GICv3 its
/// distributor and its redistributors.
pub fn reserved_devices(f: &Fixture) -> Result<Vec<Range>, Failure> {
    let tree = tree(f)?;
    if let Some(parts) = tree.registers("arm,gic-v3") {
        return Ok(parts[..2]
            .iter()
            .map(|&(at, bytes)| range(at, at + bytes))
            .collect());
    }
    // Those of `xlnx-zcu102` appear again in all that they take.
    if let Some(parts) = tree.registers("arm,gic-400") {
        let parts = parts[..2].iter();
        let whole = parts.map(|&(at, bytes)| range(at, at + bytes));
        return Ok(whole.collect());
    }
    let parts = tree.registers("arm,cortex-a15-gic");
    let parts = parts.ok_or_else(|| Failure::from("no interrupt controller in the device tree"))?;
    Ok(parts[..2]
        .iter()
        .map(|&(at, _)| range(at, at + PAGE))
        .collect())
}

/// Whether a frame of the initial address space is mapped: one that is not has no caches to be maintained (03, section 9.3).
pub fn is_mapped(frame: u64, _address: u64) -> bool {
    let label = arch_label::PAGE_CLEAN_DATA;
    Invocation::new(CPtr::new(frame), label, &[0, 1], &[])
        .call()
        .label
        == 0
}

/// Memory as the device tree has it, ascending.
pub fn memory(f: &Fixture) -> Result<Vec<Range>, Failure> {
    let mut memory: Vec<Range> = tree(f)?
        .memory()
        .into_iter()
        .map(|(at, bytes)| range(at, at + bytes))
        .collect();
    memory.sort_unstable_by_key(|range| range.start);
    ensure!(!memory.is_empty(), "no memory in the device tree");
    Ok(memory)
}
