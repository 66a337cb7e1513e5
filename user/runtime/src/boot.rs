//! The root task's view of its boot information (ABI page 06).

use sandglass_abi::boot::{self as abi, extra, slot, SlotRegion, UntypedDesc};
use sandglass_abi::object;

use crate::cap::{
    AsidControl, AsidPool, CNode, Domain, Frame, IoPortControl, IrqControl, Pml4, SchedContext,
    SchedControl, Tcb, Untyped,
};
use crate::image::PAGE;
use crate::time::Tsc;

/// The root task's own thread, CSpace and address space, and the authorities it starts with.
pub const TCB: Tcb = Tcb::at(slot::TCB);
pub const CNODE: CNode = CNode::at(slot::CNODE);
pub const VSPACE: Pml4 = Pml4::at(slot::VSPACE);
pub const IRQ_CONTROL: IrqControl = IrqControl::at(slot::IRQ_CONTROL);
pub const ASID_CONTROL: AsidControl = AsidControl::at(slot::ASID_CONTROL);
pub const ASID_POOL: AsidPool = AsidPool::at(slot::ASID_POOL);
pub const IO_PORT_CONTROL: IoPortControl = IoPortControl::at(slot::IO_PORT_CONTROL);
pub const IPC_BUFFER: Frame = Frame::at(slot::IPC_BUFFER);
pub const DOMAIN: Domain = Domain::at(slot::DOMAIN);
pub const SCHED_CONTEXT: SchedContext = SchedContext::at(slot::SCHED_CONTEXT);

/// The boot information, as the kernel maps it: the page, and the extra chunks one page after.
#[repr(transparent)]
pub struct BootInfo(abi::BootInfo);

/// One chunk of extra boot information; `payload` follows the header and may be unaligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtraChunk<'a> {
    pub id: u64,
    pub payload: &'a [u8],
}

/// An initial untyped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialUntyped {
    pub untyped: Untyped,
    /// Physical address.
    pub paddr: u64,
    /// Log2 bytes.
    pub size_bits: u32,
    pub is_device: bool,
}

impl BootInfo {
    /// All fields as the ABI lays them out.
    pub const fn raw(&self) -> &abi::BootInfo {
        &self.0
    }

    /// Slots that are empty, in the root CNode.
    pub const fn empty_slots(&self) -> SlotRegion {
        self.0.empty
    }

    /// The authority over the time of core `core`.
    pub fn sched_control(&self, core: u64) -> Option<SchedControl> {
        let region = self.0.sched_control;
        (core < region.len()).then(|| SchedControl::at(region.start + core))
    }

    /// Cores found and booted.
    pub const fn cores(&self) -> u64 {
        self.0.num_nodes
    }

    /// The frames of the root task's image, in ascending order of addresses.
    pub const fn user_image_frames(&self) -> SlotRegion {
        self.0.user_image_frames
    }

    /// The frame of the root task's image that is mapped at `vaddr` (ABI 06, section 3: the image ends
    /// where the IPC buffer starts).
    pub fn image_frame(&self, vaddr: u64) -> Option<Frame> {
        let frames = self.0.user_image_frames;
        let pages = self.0.ipc_buffer.checked_sub(vaddr)?.div_ceil(PAGE);
        (1..=frames.len())
            .contains(&pages)
            .then(|| Frame::at(frames.end - pages))
    }

    /// Every initial untyped, in the kernel's order.
    pub fn untypeds(&self) -> impl Iterator<Item = InitialUntyped> + '_ {
        let region = self.0.untyped;
        let count = usize::try_from(region.len()).unwrap_or(usize::MAX);
        (region.start..)
            .zip(self.0.untyped_list.iter().take(count))
            .map(|(slot, desc)| initial_untyped(slot, desc))
    }

    /// Every chunk of extra boot information.
    pub fn extra(&self) -> ExtraChunks<'_> {
        let page = 1usize << abi::BOOT_INFO_FRAME_BITS;
        let len = usize::try_from(self.0.extra_len).unwrap_or(0);
        // SAFETY: the kernel maps `extra_len` bytes one page after this structure (ABI 06, section 3).
        let bytes = unsafe {
            let start = (&raw const self.0).cast::<u8>().add(page);
            core::slice::from_raw_parts(start, len)
        };
        ExtraChunks::new(bytes)
    }

    /// The frequency of the time-stamp counter, on aarch64 of the virtual counter, if the kernel reports it.
    pub fn tsc(&self) -> Option<Tsc> {
        let Some(chunk) = self.extra().find(|chunk| chunk.id == extra::X86_TSC_MHZ) else {
            return Tsc::from_hz(self.timing()?.frequency);
        };
        let mhz = chunk.payload.first_chunk::<4>()?;
        Tsc::new(u32::from_le_bytes(*mhz))
    }

    /// What the kernel says of its time, if it is this project's (ABI 06, section 4, has no such chunk).
    pub fn timing(&self) -> Option<extra::Timing> {
        let chunk = self.extra().find(|chunk| chunk.id == extra::TIMING)?;
        timing(chunk.payload)
    }

    /// How the kernel measured its clock, if it is this project's and on x86_64 (ABI 06, section 4, has no such
    /// chunk).
    pub fn clock(&self) -> Option<extra::Clock> {
        let chunk = self.extra().find(|chunk| chunk.id == extra::X86_CLOCK)?;
        clock(chunk.payload)
    }

    /// The framebuffer that the firmware offers, if the loader told of one.
    pub fn framebuffer(&self) -> Option<Framebuffer> {
        let mut extra = self.extra();
        let chunk = extra.find(|chunk| chunk.id == extra::X86_FRAMEBUFFER)?;
        Framebuffer::read(chunk.payload)
    }
}

/// The numbers of 64 bits that a chunk of this project consists of.
fn numbers(payload: &[u8]) -> impl Iterator<Item = u64> + '_ {
    payload.chunks_exact(8).map(|word| {
        let bytes = word.first_chunk().copied().unwrap_or_default();
        u64::from_le_bytes(bytes)
    })
}

fn clock(payload: &[u8]) -> Option<extra::Clock> {
    let mut words = numbers(payload);
    Some(extra::Clock {
        hz: words.next()?,
        least_hz: words.next()?,
        most_hz: words.next()?,
        sources: words.next()?,
        windows: words.next()?,
        repeated: words.next()?,
        flags: words.next()?,
    })
}

fn timing(payload: &[u8]) -> Option<extra::Timing> {
    let mut words = numbers(payload);
    Some(extra::Timing {
        frequency: words.next()?,
        kernel_wcet: words.next()?,
        min_budget: words.next()?,
        max_period: words.next()?,
        path: words.next()?,
        latency: words.next()?,
        path_ns: words.next()?,
        latency_ns: words.next()?,
    })
}

/// A linear framebuffer (ABI 06, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framebuffer {
    /// Physical address.
    pub paddr: u64,
    /// Bytes from a line of pixels to the next.
    pub pitch: u32,
    /// Pixels.
    pub width: u32,
    pub height: u32,
    pub bits_per_pixel: u8,
    /// 0: indices of a palette; 1: colours; 2: text.
    pub kind: u8,
}

impl Framebuffer {
    fn read(payload: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            let bytes = payload.get(at..)?.first_chunk()?;
            Some(u32::from_le_bytes(*bytes))
        };
        Some(Self {
            paddr: u64::from_le_bytes(*payload.first_chunk()?),
            pitch: word(8)?,
            width: word(12)?,
            height: word(16)?,
            bits_per_pixel: *payload.get(20)?,
            kind: *payload.get(21)?,
        })
    }

    /// Whether its pixels are colours.
    pub const fn has_colours(&self) -> bool {
        self.kind == 1
    }
}

fn initial_untyped(slot: u64, desc: &UntypedDesc) -> InitialUntyped {
    InitialUntyped {
        untyped: Untyped::at(slot),
        paddr: desc.paddr,
        size_bits: u32::from(desc.size_bits).min(object::MAX_UNTYPED_BITS),
        is_device: desc.is_device != 0,
    }
}

/// Iterates over the chunks of extra boot information; ends at a malformed one.
#[derive(Clone, Debug)]
pub struct ExtraChunks<'a> {
    rest: &'a [u8],
}

impl<'a> ExtraChunks<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for ExtraChunks<'a> {
    type Item = ExtraChunk<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let id = u64::from_le_bytes(*self.rest.first_chunk()?);
        let len = u64::from_le_bytes(*self.rest.get(8..)?.first_chunk()?);
        let len = usize::try_from(len).ok()?;
        let payload = self.rest.get(extra::HEADER_LEN..len)?;
        self.rest = self.rest.get(len..)?;
        Some(ExtraChunk { id, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn chunk(id: u64, payload: &[u8]) -> Vec<u8> {
        let mut bytes = id.to_le_bytes().to_vec();
        bytes.extend((16 + payload.len() as u64).to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn unaligned_chunks_are_found() {
        let mut bytes = chunk(extra::X86_ACPI_RSDP, &[1; 35]);
        bytes.extend(chunk(extra::X86_TSC_MHZ, &[0xe8, 3, 0, 0]));
        let ids: Vec<u64> = ExtraChunks::new(&bytes).map(|chunk| chunk.id).collect();
        assert_eq!(ids, [extra::X86_ACPI_RSDP, extra::X86_TSC_MHZ]);
        assert_eq!(
            ExtraChunks::new(&bytes).last().unwrap().payload,
            [0xe8, 3, 0, 0]
        );
    }

    #[test]
    fn what_is_told_of_time_is_read_as_a_whole_or_not_at_all() {
        let payload: Vec<u8> = (1u64..=8).flat_map(u64::to_le_bytes).collect();
        assert_eq!(payload.len() + extra::HEADER_LEN, extra::TIMING_LEN);
        let told = timing(&payload).unwrap();
        assert_eq!((told.frequency, told.kernel_wcet), (1, 2));
        assert_eq!((told.min_budget, told.max_period), (3, 4));
        assert_eq!((told.path, told.latency), (5, 6));
        assert_eq!((told.path_ns, told.latency_ns), (7, 8));
        assert_eq!(timing(&payload[..63]), None);
    }

    #[test]
    fn a_framebuffer_is_read_as_a_whole_or_not_at_all() {
        let mut payload = 0x8000_0000u64.to_le_bytes().to_vec();
        for word in [4096u32, 1024, 768] {
            payload.extend(word.to_le_bytes());
        }
        payload.extend([32, 1]);
        assert_eq!(
            payload.len() + extra::HEADER_LEN,
            extra::X86_FRAMEBUFFER_LEN
        );
        let found = Framebuffer::read(&payload).unwrap();
        assert_eq!((found.paddr, found.pitch), (0x8000_0000, 4096));
        assert_eq!((found.width, found.height), (1024, 768));
        assert!(found.bits_per_pixel == 32 && found.has_colours());
        assert_eq!(Framebuffer::read(&payload[..21]), None);
    }

    #[test]
    fn a_malformed_chunk_ends_the_walk() {
        let mut bytes = chunk(2, &[]);
        bytes.extend(7u64.to_le_bytes());
        bytes.extend(8u64.to_le_bytes());
        assert_eq!(ExtraChunks::new(&bytes).count(), 1);
        assert_eq!(ExtraChunks::new(&bytes[..20]).count(), 1);
        assert_eq!(ExtraChunks::new(&[]).count(), 0);
    }
}
