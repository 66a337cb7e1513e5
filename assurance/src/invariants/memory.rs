//! Untyped memory: what is used, and what is free (ABI 03, section 3).

use sandglass_kernel::mem::objects::region::UntypedMemory;
use sandglass_kernel::mem::Kind;

use super::objects::extent;
use super::{require, Finding};
use crate::census::{Census, Site};

/// Every site of untyped memory, with its index.
fn untyped<'a>(
    census: &'a Census<'_>,
) -> impl Iterator<Item = (usize, &'a Site, UntypedMemory)> + use<'a> {
    let sites = census.sites.iter().enumerate();
    sites.filter_map(|(i, site)| Some((i, site, site.view.cap.untyped()?)))
}

/// What was made of untyped memory lies below its watermark, and comes behind it in its derivation
/// list; what was not made of it does not lie in it, unless it contains it.
pub fn objects_lie_below_the_watermark(census: &Census) -> Finding {
    let is_untyped = |site: &Site| site.view.cap.is(Kind::Untyped);
    let named: Vec<Option<(u64, u64)>> = census.sites.iter().map(piece).collect();
    let pieces = census.sites.iter().zip(&named);
    let pieces =
        pieces.filter_map(|(site, piece)| piece.map(|(at, bytes)| (at, bytes, is_untyped(site))));
    let mut pieces: Vec<(u64, u64, bool)> = pieces.collect();
    pieces.sort_unstable();
    let next = census.next();
    for (i, site, memory) in untyped(census) {
        let start = memory.start().get();
        let (size, used) = (memory.size(), start + memory.watermark());
        let behind = std::iter::successors(Some(i), |&at| next[at]);
        let made = behind.skip(1).take(census.sites.len()).map_while(|child| {
            let (at, bytes) = named[child]?;
            let child = &census.sites[child];
            (at >= start && at + bytes <= start + size).then_some((child, at, bytes))
        });
        let mut inside = 0;
        for (child, at, bytes) in made {
            require!(
                at + bytes <= used,
                "{:?} at {at:#x} lies beyond the watermark {used:#x} of {:?}",
                child.id,
                site.id
            );
            inside += usize::from(bytes < size || !is_untyped(child));
        }
        // All memory is aligned to its size: what overlaps and does not contain begins inside.
        let first = pieces.partition_point(|&(at, ..)| at < start);
        let end = pieces.partition_point(|&(at, ..)| at < start + size);
        let contains = |&&(_, bytes, is_untyped): &&(u64, u64, bool)| is_untyped && bytes >= size;
        let lying = end - first - pieces[first..end].iter().filter(contains).count();
        require!(
            lying == inside,
            "{lying} capabilities name memory of {:?}, of which {inside} come behind it",
            site.id
        );
    }
    Ok(())
}

/// (start, bytes) of what a capability names in RAM or in device memory.
fn piece(site: &Site) -> Option<(u64, u64)> {
    let cap = site.view.cap;
    if let Some(memory) = cap.untyped() {
        return Some((memory.start().get(), memory.size()));
    }
    if let Some(frame) = cap.frame() {
        return Some((frame.start().get(), 1 << frame.bits()));
    }
    extent(site).map(|(start, bits)| (start, 1 << bits))
}

/// RAM beyond the watermark of untyped memory is zero.
pub fn free_memory_is_zero(census: &Census) -> Finding {
    for (_, site, memory) in untyped(census) {
        if memory.is_device() {
            continue;
        }
        // Objects are aligned to 16 bytes.
        let free = memory.start().get() + memory.watermark();
        let bytes = memory.size() - memory.watermark();
        let is_zero = census.k.machine.look_at(free, bytes / 8, |words| {
            words.iter().fold(0, |used, word| used | word) == 0
        });
        require!(
            is_zero,
            "the {bytes} bytes from {free:#x} on are free in {:?}, but not zero",
            site.id
        );
    }
    Ok(())
}
