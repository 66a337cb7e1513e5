//! Allocation of untyped memory: which untyped the next object comes from.
//!
//! The kernel places objects in an untyped one after the other, each aligned to its size
//! (ABI 03, section 3); a [`Region`] mirrors that watermark. Objects below a page come from small
//! regions ("chunks"), so that they do not tear holes into the memory of pages; unless so many are
//! made at once that they fill more than a chunk.

use alloc::vec::Vec;

use crate::boot::InitialUntyped;
use crate::cap::Untyped;

/// Regions of up to 2^`CHUNK_BITS` bytes serve objects below a page first.
pub const CHUNK_BITS: u32 = 16;
const PAGE_BITS: u32 = 12;

/// Whether `count` objects of 2^`size_bits` bytes belong into a chunk.
pub(super) fn fits_chunk(size_bits: u32, count: u64) -> bool {
    size_bits < PAGE_BITS && count <= 1 << (CHUNK_BITS - size_bits)
}

/// An untyped and the kernel's watermark in it.
#[derive(Clone, Copy, Debug)]
struct Region {
    untyped: Untyped,
    paddr: u64,
    size_bits: u32,
    /// Bytes from the start that are in use.
    used: u64,
}

impl Region {
    const fn new(untyped: Untyped, paddr: u64, size_bits: u32) -> Self {
        Self {
            untyped,
            paddr,
            size_bits,
            used: 0,
        }
    }

    const fn bytes(&self) -> u64 {
        1 << self.size_bits
    }

    /// Watermark after `count` more objects of 2^`size_bits` bytes, if they fit.
    fn after(&self, size_bits: u32, count: u64) -> Option<u64> {
        let start = self.used.checked_next_multiple_of(1 << size_bits)?;
        let end = start.checked_add(count.checked_mul(1 << size_bits)?)?;
        (end <= self.bytes()).then_some(end)
    }

    const fn is_small(&self) -> bool {
        self.size_bits <= CHUNK_BITS
    }
}

/// Where to make objects: to be passed back to [`UntypedAllocator::commit`] once it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    pub untyped: Untyped,
    region: usize,
    device: bool,
    used_after: u64,
}

/// A device untyped that must be cut before the wanted address: make an untyped of
/// 2^`size_bits` bytes there, and pass it to [`UntypedAllocator::add_device`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    pub placement: Placement,
    pub paddr: u64,
    pub size_bits: u32,
}

/// How to get at a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceStep {
    /// The next object of this placement lies at the wanted address.
    Take(Placement),
    /// First cut off what lies before it.
    Cut(Cut),
}

/// All untyped memory that a program may allocate from.
#[derive(Clone, Debug, Default)]
pub struct UntypedAllocator {
    memory: Vec<Region>,
    devices: Vec<Region>,
}

impl UntypedAllocator {
    pub fn new(untypeds: impl Iterator<Item = InitialUntyped>) -> Self {
        let mut allocator = Self::default();
        for initial in untypeds {
            if initial.is_device {
                allocator.add_device(initial.untyped, initial.paddr, initial.size_bits);
            } else {
                allocator.add(initial.untyped, initial.paddr, initial.size_bits);
            }
        }
        allocator
    }

    /// Adds memory; `untyped` must have no children.
    pub fn add(&mut self, untyped: Untyped, paddr: u64, size_bits: u32) {
        self.memory.push(Region::new(untyped, paddr, size_bits));
    }

    /// Adds device memory; `untyped` must have no children.
    pub fn add_device(&mut self, untyped: Untyped, paddr: u64, size_bits: u32) {
        self.devices.push(Region::new(untyped, paddr, size_bits));
    }

    /// Where `count` objects of 2^`size_bits` bytes fit.
    ///
    /// A region in use is preferred to a fresh one, which the kernel must zero as a whole first;
    /// then the one that loses least to alignment; then the smallest.
    pub fn place(&self, size_bits: u32, count: u64) -> Option<Placement> {
        let wants_small = fits_chunk(size_bits, count);
        self.memory
            .iter()
            .enumerate()
            .filter(|(_, region)| !wants_small || region.is_small())
            .filter_map(|(i, region)| Some((i, region, region.after(size_bits, count)?)))
            .min_by_key(|(_, region, after)| {
                let waste = after - region.used;
                (
                    region.is_small() != wants_small,
                    region.used == 0,
                    waste,
                    region.size_bits,
                )
            })
            .map(|(i, region, used_after)| Placement {
                untyped: region.untyped,
                region: i,
                device: false,
                used_after,
            })
    }

    /// How to make an object of 2^`size_bits` bytes at the physical address `paddr` of a device;
    /// `None` if there is no such memory, or it is in use. `paddr` must be aligned to the size.
    pub fn place_device(&self, paddr: u64, size_bits: u32) -> Option<DeviceStep> {
        let end = paddr.checked_add(1 << size_bits)?;
        let (i, region) = self.devices.iter().enumerate().find(|(_, region)| {
            let fresh = region.paddr + region.used;
            region.size_bits >= size_bits && fresh <= paddr && end <= region.paddr + region.bytes()
        })?;
        let fresh = region.paddr + region.used;
        let placement = |after: u64| Placement {
            untyped: region.untyped,
            region: i,
            device: true,
            used_after: after - region.paddr,
        };
        if fresh == paddr {
            return Some(DeviceStep::Take(placement(end)));
        }
        // The largest aligned untyped that starts at the watermark and does not pass `paddr`.
        let aligned = if region.used == 0 {
            region.size_bits
        } else {
            region.used.trailing_zeros()
        };
        let cut_bits = (paddr - fresh).ilog2().min(aligned);
        Some(DeviceStep::Cut(Cut {
            placement: placement(fresh + (1 << cut_bits)),
            paddr: fresh,
            size_bits: cut_bits,
        }))
    }

    /// Records that the objects of `placement` were made.
    pub fn commit(&mut self, placement: Placement) {
        let regions = if placement.device {
            &mut self.devices
        } else {
            &mut self.memory
        };
        if let Some(region) = regions.get_mut(placement.region) {
            region.used = placement.used_after;
        }
    }

    /// Bytes that are not in use, device memory aside. Alignment may make less of it usable.
    pub fn free_bytes(&self) -> u64 {
        self.memory
            .iter()
            .map(|region| region.bytes() - region.used)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocator(sizes: &[u32]) -> UntypedAllocator {
        let mut allocator = UntypedAllocator::default();
        for (i, &bits) in sizes.iter().enumerate() {
            allocator.add(Untyped::at(100 + i as u64), (i as u64) << 32, bits);
        }
        allocator
    }

    fn take(allocator: &mut UntypedAllocator, size_bits: u32) -> Option<u64> {
        let placement = allocator.place(size_bits, 1)?;
        allocator.commit(placement);
        Some(placement.untyped.address())
    }

    #[test]
    fn every_byte_is_given_out_once_and_then_no_more() {
        let mut allocator = allocator(&[14, 20]);
        let mut pages = 0;
        while take(&mut allocator, 12).is_some() {
            pages += 1;
        }
        assert_eq!(pages, 4 + 256);
        assert_eq!((allocator.free_bytes(), allocator.place(4, 1)), (0, None));
    }

    #[test]
    fn alignment_is_mirrored_as_the_kernel_does_it() {
        let mut allocator = allocator(&[12]);
        assert_eq!(take(&mut allocator, 4), Some(100));
        // 16 bytes are used: one object of 2 KiB starts at 2 KiB, a second does not fit.
        assert_eq!(allocator.place(11, 2), None);
        assert_eq!(take(&mut allocator, 11), Some(100));
        assert_eq!(allocator.place(4, 1), None);
    }

    #[test]
    fn small_objects_never_touch_large_regions() {
        let mut allocator = allocator(&[20, 13]);
        assert_eq!(take(&mut allocator, 4), Some(101));
        assert_eq!(take(&mut allocator, 12), Some(100));
        assert_eq!(allocator.place(11, 4), None, "only a new chunk would do");
        assert_eq!(
            allocator.place(11, 33).map(|p| p.untyped),
            Some(Untyped::at(100))
        );
        // The last resort of a page is a chunk.
        assert_eq!(allocator.place(12, 256), None);
        while take(&mut allocator, 12) == Some(100) {}
        assert_eq!(allocator.memory[1].used, 1 << 13);
    }

    #[test]
    fn a_fresh_region_is_opened_only_when_needed_and_the_smallest_first() {
        let mut allocator = allocator(&[24, 18, 20]);
        assert_eq!(take(&mut allocator, 12), Some(101));
        for _ in 1..64 {
            assert_eq!(take(&mut allocator, 12), Some(101));
        }
        assert_eq!(take(&mut allocator, 12), Some(102));
    }

    #[test]
    fn device_memory_is_cut_up_to_the_wanted_address() {
        let mut allocator = UntypedAllocator::default();
        allocator.add_device(Untyped::at(1), 0xfe80_0000, 23);
        let wanted = 0xfed0_5000;
        let mut cuts = 0;
        loop {
            match allocator.place_device(wanted, 12).unwrap() {
                DeviceStep::Cut(cut) => {
                    assert_eq!(cut.paddr % (1 << cut.size_bits), 0);
                    assert!(cut.paddr + (1 << cut.size_bits) <= wanted);
                    allocator.commit(cut.placement);
                    cuts += 1;
                    allocator.add_device(Untyped::at(1 + cuts), cut.paddr, cut.size_bits);
                }
                DeviceStep::Take(placement) => {
                    assert_eq!(placement.untyped, Untyped::at(1));
                    allocator.commit(placement);
                    break;
                }
            }
        }
        assert_eq!(allocator.place_device(wanted, 12), None, "it is in use");
        // What was cut off is still there.
        assert!(allocator.place_device(0xfe80_0000, 12).is_some());
        assert!(allocator.place_device(0xfed0_4000, 12).is_some());
        assert_eq!(allocator.place_device(0x1000, 12), None);
    }
}
