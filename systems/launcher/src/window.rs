//! A page of the launcher's address space through which it sees the memory of components.

use core::slice;

use sandglass::cap::{Attributes, CPtr, Capability, Frame, FrameSize, Rights, Slot};
use sandglass::component::Component;
use sandglass::image::PAGE;
use sandglass::{boot, Process};

use crate::failure::{Context, Failure};

pub struct Window {
    address: u64,
    /// Of the capability that is mapped.
    slot: Slot,
}

impl Window {
    /// Makes all that looking takes, so that it cannot fail for want of memory.
    pub fn open(process: &mut Process) -> Result<Self, Failure> {
        let what = "cannot make a window on components' memory";
        let address = process.space.reserve(PAGE, 12).context(what)?;
        let frame = process.resources.frame(FrameSize::Small).context(what)?;
        // So the paging structures are there; they stay.
        let (rights, attributes) = (Rights::READ_WRITE, Attributes::WriteBack);
        let space = process.space.vspace();
        space
            .map(&mut process.resources, frame, address, rights, attributes)
            .context(what)?;
        frame.unmap().context(what)?;
        let slot = process.resources.allocate_slot().context(what)?;
        Ok(Self { address, slot })
    }

    /// Lets `look` see a page. `None` if it cannot be mapped.
    pub fn with<R>(&mut self, frame: Frame, look: impl FnOnce(&mut [u8]) -> R) -> Option<R> {
        let source = self.slot.root().slot(frame.cptr().raw());
        self.slot.copy_from(source, Rights::ALL).ok()?;
        let copy = Frame::from_cptr(CPtr::new(self.slot.index()));
        let (rights, attributes) = (Rights::READ_WRITE, Attributes::WriteBack);
        let mapped = copy.map(boot::VSPACE, self.address, rights, attributes);
        let result = mapped.ok().map(|()| {
            // SAFETY: the window is mapped to the frame, and nothing else uses it; who else writes to the frame has
            // been stopped, or is not relied on.
            look(unsafe { slice::from_raw_parts_mut(self.address as *mut u8, PAGE as usize) })
        });
        // This unmaps it.
        let _ = self.slot.delete();
        result
    }

    /// The two words at `address` of a component's memory, if they are in one page: so are those that a function's frame
    /// pointer points to, on a stack that is aligned as the ABI says.
    pub fn two_words(&mut self, component: &Component, address: u64) -> Option<[u64; 2]> {
        let offset = (address % PAGE) as usize;
        let frame = component.frame_at(address)?;
        self.with(frame, |page| {
            let mut words = page.get(offset..)?.chunks_exact(8);
            let mut next = || Some(u64::from_le_bytes(words.next()?.try_into().ok()?));
            Some([next()?, next()?])
        })?
    }
}
