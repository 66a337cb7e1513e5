//! Untyped memory: what is used, and what is free (ABI 03, section 3).

use sandglass_kernel::cap::UntypedMemory;
use sandglass_kernel::mem::Kind;

use super::objects::extent;
use super::{require, Finding};
use crate::census::{Census, Site};

fn untyped<'a>(
    census: &'a Census<'_>,
) -> impl Iterator<Item = (&'a Site, UntypedMemory)> + use<'a> {
    let sites = census.sites.iter();
    sites.filter_map(|site| Some((site, site.view.cap.untyped()?)))
}

/// What was made of untyped memory lies below its watermark, and comes behind it in its derivation
/// list; what was not made of it does not lie in it, unless it contains it.
pub fn objects_lie_below_the_watermark(census: &Census) -> Finding {
    for (site, memory) in untyped(census) {
        let start = memory.start().get();
        let (end, used) = (start + memory.size(), start + memory.watermark());
        let mut made = std::iter::successors(Some(site), |site| census.site(site.view.next?));
        let mut inside = 0;
        for child in made.by_ref().skip(1).take(census.sites.len()) {
            let Some((at, size)) = piece(child) else {
                break;
            };
            if at < start || at + size > end {
                break;
            }
            inside += 1;
            require!(
                at + size <= used,
                "{:?} at {at:#x} lies beyond the watermark {used:#x} of {:?}",
                child.id,
                site.id
            );
        }
        let lying = census.sites.iter().filter(|other| {
            piece(other).is_some_and(|(at, size)| {
                let overlaps = at < end && at + size > start;
                let contains = other.view.cap.is(Kind::Untyped) && at <= start && at + size >= end;
                overlaps && !contains
            })
        });
        let same = std::iter::successors(Some(site), |site| census.site(site.view.next?))
            .skip(1)
            .take(inside)
            .filter(|child| child.view.cap.is(Kind::Untyped) && piece(child) == piece(site))
            .count();
        let lying = lying.count() + same;
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
    for (site, memory) in untyped(census) {
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
