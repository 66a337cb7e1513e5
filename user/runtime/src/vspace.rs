//! Address spaces: mapping, with the paging structures that are missing, and the root task's own.

use core::slice;

use crate::boot;
use crate::cap::{Attributes, Frame, FrameSize, Pml4, Rights};
use crate::image::PAGE;
use crate::resources::{Resources, SetupError};

/// Bits that MissingCapability reports for each missing structure (ABI 03, section 8.3).
const MISSING_PDPT: u64 = 39;
const MISSING_PAGE_DIRECTORY: u64 = 30;
/// Most paging structures between the root and a page.
const LEVELS: usize = 3;

/// An address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VSpace {
    root: Pml4,
}

impl VSpace {
    /// The root task's.
    pub const fn initial() -> Self {
        Self { root: boot::VSPACE }
    }

    /// An existing one that has an address space identifier.
    pub const fn from_root(root: Pml4) -> Self {
        Self { root }
    }

    /// A new, empty one, with an identifier of the root task's pool (511 of them).
    pub fn new(resources: &mut Resources) -> Result<Self, SetupError> {
        let root = resources.pml4()?;
        boot::ASID_POOL.assign(root)?;
        Ok(Self { root })
    }

    pub const fn root(self) -> Pml4 {
        self.root
    }

    /// Maps a frame, making paging structures as needed.
    pub fn map(
        self,
        resources: &mut Resources,
        frame: Frame,
        vaddr: u64,
        rights: Rights,
        attributes: Attributes,
    ) -> Result<(), SetupError> {
        for _ in 0..LEVELS {
            match frame.map(self.root, vaddr, rights, attributes) {
                Ok(()) => return Ok(()),
                Err(error) => match error.missing_table() {
                    Some(bits) => self.add_table(resources, vaddr, bits)?,
                    None => return Err(error.into()),
                },
            }
        }
        Ok(frame.map(self.root, vaddr, rights, attributes)?)
    }

    /// Makes the paging structure whose absence left `bits` bits unresolved.
    fn add_table(self, resources: &mut Resources, vaddr: u64, bits: u64) -> Result<(), SetupError> {
        let attributes = Attributes::WriteBack;
        match bits {
            MISSING_PDPT => resources.pdpt()?.map(self.root, vaddr, attributes)?,
            MISSING_PAGE_DIRECTORY => resources
                .page_directory()?
                .map(self.root, vaddr, attributes)?,
            // 21, or something that is no paging structure: the kernel then says what.
            _ => resources.page_table()?.map(self.root, vaddr, attributes)?,
        }
        Ok(())
    }
}

/// The current address space, and the addresses of it that are given out to new mappings: from
/// [`OwnSpace::FIRST`] on, with a page between any two regions that stays unmapped.
#[derive(Clone, Debug)]
pub struct OwnSpace {
    vspace: VSpace,
    next: u64,
    end: u64,
}

/// Memory that was mapped into the current address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    address: u64,
    bytes: u64,
    /// The first of its frames, which are in consecutive slots.
    first_frame: Frame,
}

impl Region {
    /// Virtual address, aligned to a page.
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// A multiple of the page size.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub const fn as_mut_ptr(&self) -> *mut u8 {
        self.address as *mut u8
    }

    /// Its frames of 4 KiB, by ascending address.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = Frame> {
        let first = self.first_frame.address();
        (0..(self.bytes / PAGE) as usize).map(move |i| Frame::at(first + i as u64))
    }
}

impl OwnSpace {
    /// The first address given out: far above any image, below any other use.
    pub const FIRST: u64 = 0x10_0000_0000;
    const END: u64 = 0x7000_0000_0000;
    /// Where frames are mapped for a moment to be filled.
    const WINDOW: u64 = Self::FIRST - PAGE;

    /// The root task's.
    pub const fn initial() -> Self {
        Self::new(VSpace::initial(), Self::FIRST, Self::END)
    }

    /// That of a component with its own resources; `vspace` must be the current one, and the
    /// page below `first` and the addresses up to `end` unused.
    pub const fn new(vspace: VSpace, first: u64, end: u64) -> Self {
        Self {
            vspace,
            next: first,
            end,
        }
    }

    pub const fn vspace(&self) -> VSpace {
        self.vspace
    }

    /// Addresses for `bytes` bytes, aligned to 2^`align_bits`, with an unused page before them.
    pub fn reserve(&mut self, bytes: u64, align_bits: u32) -> Result<u64, SetupError> {
        let none = SetupError::NoAddresses { bytes };
        let start = self.next.checked_add(PAGE).ok_or(none)?;
        let start = start
            .checked_next_multiple_of(1 << align_bits.max(12))
            .ok_or(none)?;
        let end = bytes
            .checked_next_multiple_of(PAGE)
            .and_then(|len| start.checked_add(len));
        let end = end.filter(|&end| end <= self.end).ok_or(none)?;
        self.next = end;
        Ok(start)
    }

    /// Maps new, zeroed memory of at least `bytes` bytes, in frames of 4 KiB.
    pub fn map_new(&mut self, resources: &mut Resources, bytes: u64) -> Result<Region, SetupError> {
        const BATCH: u64 = 256;
        let pages = bytes.div_ceil(PAGE).max(1);
        let address = self.reserve(pages * PAGE, 12)?;
        let first = resources.allocate_slots(pages)?;
        for start in (0..pages).step_by(BATCH as usize) {
            let count = BATCH.min(pages - start);
            let slot = first.root().slot(first.index() + start);
            resources.retype(FrameSize::Small.object_type(), slot, count)?;
        }
        let region = Region {
            address,
            bytes: pages * PAGE,
            first_frame: first.capability(),
        };
        for (frame, i) in region.frames().zip(0..) {
            let vaddr = address + i * PAGE;
            self.vspace.map(
                resources,
                frame,
                vaddr,
                Rights::READ_WRITE,
                Attributes::WriteBack,
            )?;
        }
        Ok(region)
    }

    /// Maps a frame where there is room; returns its address.
    pub fn map_frame(
        &mut self,
        resources: &mut Resources,
        frame: Frame,
        size: FrameSize,
        rights: Rights,
        attributes: Attributes,
    ) -> Result<u64, SetupError> {
        let address = self.reserve(size.bytes(), size.bits())?;
        self.vspace
            .map(resources, frame, address, rights, attributes)?;
        Ok(address)
    }

    /// Maps a page of a device, uncached; returns its frame and address.
    pub fn map_device(
        &mut self,
        resources: &mut Resources,
        paddr: u64,
    ) -> Result<(Frame, u64), SetupError> {
        let frame = resources.device_frame(paddr, FrameSize::Small)?;
        let address = self.map_frame(
            resources,
            frame,
            FrameSize::Small,
            Rights::READ_WRITE,
            Attributes::Uncached,
        )?;
        Ok((frame, address))
    }

    /// Maps a frame of 4 KiB for the duration of `fill`, which gets its memory. The frame may be
    /// mapped elsewhere: a copy of the capability is used.
    pub fn fill_frame(
        &self,
        resources: &mut Resources,
        frame: Frame,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), SetupError> {
        let copy = resources.copy(frame, Rights::ALL)?;
        let mapped = self.vspace.map(
            resources,
            copy,
            Self::WINDOW,
            Rights::READ_WRITE,
            Attributes::WriteBack,
        );
        if mapped.is_ok() {
            // SAFETY: the window is mapped to the frame now, and nothing else uses it.
            fill(unsafe { slice::from_raw_parts_mut(Self::WINDOW as *mut u8, PAGE as usize) });
        }
        // Deleting the copy unmaps it.
        resources.delete(copy)?;
        mapped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_never_touch() {
        let mut space = OwnSpace::new(VSpace::initial(), 0x1000, 0x10_0000);
        let first = space.reserve(0x1001, 12).unwrap();
        let second = space.reserve(1, 12).unwrap();
        assert_eq!((first, second), (0x2000, 0x5000));
        assert_eq!(space.reserve(0x1000, 16).unwrap(), 0x1_0000);
        assert_eq!(
            space.reserve(0x10_0000, 12),
            Err(SetupError::NoAddresses { bytes: 0x10_0000 })
        );
        assert!(space.reserve(u64::MAX, 12).is_err());
    }
}
