//! What outlives the arenas: the storm's shared memory, the capabilities lent to it, and the
//! memory that every arena is made of.

use alloc::vec::Vec;
use core::slice;
use core::sync::atomic::AtomicU64;

use sandglass::abi::boot::SlotRegion;
use sandglass::cap::{
    Attributes, CNode, Endpoint, Frame, FrameSize, Notification, Reply, Rights, SchedControl,
    Untyped,
};
use sandglass::resources::{Resources, SlotAllocator, UntypedAllocator};
use sandglass::{boot, BootInfo, Process, SetupError};

use crate::arch::instructions::low;
use crate::arch::SYSTEM_CALL;
use crate::area::{Area, AREAS, CATALOGUE_OFFSET, LOW_BYTES, THREADS};
use crate::catalogue::Catalogue;

/// Log2 bytes of the memory of an arena.
const ARENA_BITS: u32 = 22;
/// Slots of the supervisor's CSpace that an arena may take.
const ARENA_SLOTS: u64 = 1024;
/// Address spaces of the storm.
pub const SPACES: usize = 3;
/// Badges of the capabilities through which threads' faults come: the thread's number plus one;
/// with this bit, its timeouts.
pub const TIMEOUT: u64 = 1 << 8;

const PAGE: u64 = 4096;

extern "C" {
    /// Start of the image, and end of its part in the file: code and constants.
    static __executable_start: u8;
    static __bss_start: u8;
}

/// What outlives the arenas.
pub struct Ground {
    memory: Untyped,
    slots: SlotRegion,
    /// The supervisor's endpoint, bound to its notification, and its reply object.
    pub endpoint: Endpoint,
    pub reply: Reply,
    /// Of each thread, the capabilities that its faults and its timeouts come through.
    pub fault_handlers: [Endpoint; THREADS],
    pub timeout_handlers: [Endpoint; THREADS],
    /// Of each address space, the image's pages with their addresses, the areas, and the page at
    /// the edge of user memory.
    pub images: [Vec<(u64, Frame)>; SPACES],
    pub areas: [Frame; SPACES],
    pub edges: [Frame; SPACES],
    /// For the storm of instructions, of each address space: the memory at address 0, which is one,
    /// and a page at the edge that can be written.
    pub low: [Frame; SPACES],
    pub tops: [Frame; SPACES],
    /// Where the memory at address 0 is mapped for the supervisor.
    low_address: u64,
    /// IPC buffers, and their copies for each address space.
    pub buffers: Vec<Frame>,
    pub buffer_copies: [Vec<Frame>; SPACES],
    /// A frame of 2 MiB to give to the storm: too large for an arena.
    pub large: Frame,
    /// Where the areas are mapped for the supervisor.
    address: u64,
    /// Holds the authority over interrupts, which can be neither copied nor got back once the
    /// storm has deleted it. CSpaces of the storm lead to it in a way that does not give the
    /// CNode itself away.
    pub shelf: CNode,
    /// The authority over the time of each core that runs.
    pub controls: Vec<SchedControl>,
}

/// Radix of [`Ground::shelf`].
pub const SHELF_RADIX: u8 = 1;

impl Ground {
    pub fn new(
        process: &mut Process,
        boot: &BootInfo,
        signals: Notification,
    ) -> Result<Self, SetupError> {
        let resources = &mut process.resources;
        let memory = resources.untyped(ARENA_BITS)?;
        let first = resources.allocate_slots(ARENA_SLOTS)?.index();
        let endpoint = resources.endpoint()?;
        boot::TCB.bind_notification(signals)?;
        let shelf = resources.cnode(SHELF_RADIX.into())?;
        let irq_control = resources.slot_of(boot::IRQ_CONTROL);
        shelf.slot_at(0, SHELF_RADIX).move_from(irq_control)?;

        let area_frame = resources.frame(FrameSize::Large)?;
        let large = resources.frame(FrameSize::Large)?;
        let edge_frame = resources.frame(FrameSize::Small)?;
        let low_frame = resources.frame(FrameSize::Large)?;
        let mut images: [Vec<(u64, Frame)>; SPACES] = Default::default();
        for image in &mut images {
            for address in image_pages() {
                let frame = boot.image_frame(address).expect("the image has frames");
                image.push((address, resources.copy(frame, Rights::READ)?));
            }
        }
        let mut buffers = Vec::new();
        for _ in 0..AREAS {
            buffers.push(resources.frame(FrameSize::Small)?);
        }
        let mut buffer_copies: [Vec<Frame>; SPACES] = Default::default();
        for copies in &mut buffer_copies {
            for &buffer in &buffers {
                copies.push(resources.copy(buffer, Rights::ALL)?);
            }
        }
        let fault_handlers = handlers(resources, endpoint, 1)?;
        let timeout_handlers = handlers(resources, endpoint, TIMEOUT + 1)?;
        let areas = copies(resources, area_frame, Rights::ALL)?;
        let edges = copies(resources, edge_frame, Rights::READ)?;
        let low = copies(resources, low_frame, Rights::ALL)?;
        let mut tops = edges;
        for top in &mut tops {
            *top = resources.frame(FrameSize::Small)?;
        }
        let reply = resources.reply()?;

        let Process {
            resources, space, ..
        } = process;
        let address = space.map_frame(
            resources,
            area_frame,
            FrameSize::Large,
            Rights::READ_WRITE,
            Attributes::WriteBack,
        )?;
        let low_address = space.map_frame(
            resources,
            low_frame,
            FrameSize::Large,
            Rights::READ_WRITE,
            Attributes::WriteBack,
        )?;
        space.fill_frame(resources, edge_frame, |page| {
            let end = page.len() - SYSTEM_CALL.len();
            page[end..].copy_from_slice(&SYSTEM_CALL);
        })?;
        let ground = Self {
            memory,
            slots: SlotRegion {
                start: first,
                end: first + ARENA_SLOTS,
            },
            endpoint,
            reply,
            fault_handlers,
            timeout_handlers,
            images,
            areas,
            edges,
            low,
            tops,
            low_address,
            buffers,
            buffer_copies,
            large,
            address,
            shelf,
            controls: (0..boot.cores())
                .map_while(|core| boot.sched_control(core))
                .collect(),
        };
        low::fill(ground.low_memory());
        Ok(ground)
    }

    /// The first area, as the supervisor sees it; the others follow at [`crate::area::AREA_BYTES`].
    pub fn first_area(&self) -> *mut Area {
        self.address as *mut Area
    }

    /// The memory at address 0 of the storm's address spaces, in words.
    pub fn low_memory(&self) -> &'static [AtomicU64] {
        // SAFETY: mapped for good, zero at first; all access is atomic.
        unsafe {
            slice::from_raw_parts(self.low_address as *const AtomicU64, LOW_BYTES as usize / 8)
        }
    }

    pub fn catalogue(&self) -> &'static Catalogue {
        // SAFETY: mapped for good, zero at first; all access is atomic.
        unsafe { &*((self.address + CATALOGUE_OFFSET) as *const Catalogue) }
    }

    /// Takes everything back that an arena was made of, and everything that the storm made.
    pub fn clear(&self) -> Result<(), SetupError> {
        self.shelf.slot_at(0, SHELF_RADIX).revoke()?;
        boot::CNODE.slot(self.memory.address()).revoke()?;
        Ok(())
    }

    /// Resources for the next arena, after [`Self::clear`].
    pub fn resources(&self) -> Resources {
        let mut memory = UntypedAllocator::default();
        memory.add(self.memory, 0, ARENA_BITS);
        Resources::new(boot::CNODE, SlotAllocator::new(self.slots), memory)
    }
}

/// Addresses of the pages of the image's code and constants.
fn image_pages() -> impl Iterator<Item = u64> {
    let start = &raw const __executable_start as u64 & !(PAGE - 1);
    let end = &raw const __bss_start as u64;
    (start..end).step_by(PAGE as usize)
}

/// Capabilities of `endpoint` with consecutive badges.
fn handlers(
    resources: &mut Resources,
    endpoint: Endpoint,
    first_badge: u64,
) -> Result<[Endpoint; THREADS], SetupError> {
    let mut handlers = [endpoint; THREADS];
    for (handler, badge) in handlers.iter_mut().zip(first_badge..) {
        *handler = resources.mint(endpoint, Rights::ALL, badge)?;
    }
    Ok(handlers)
}

/// A copy of `frame` for each address space.
fn copies(
    resources: &mut Resources,
    frame: Frame,
    rights: Rights,
) -> Result<[Frame; SPACES], SetupError> {
    let mut copies = [frame; SPACES];
    for copy in &mut copies {
        *copy = resources.copy(frame, rights)?;
    }
    Ok(copies)
}
