//! Slots and untyped memory, and the objects made of them.

mod memory;
mod slots;

pub use memory::{Cut, DeviceStep, Placement, UntypedAllocator, CHUNK_BITS};
pub use slots::SlotAllocator;

use core::fmt;

use sandglass_abi::boot::slot;

use crate::boot::{self, BootInfo};
use crate::cap::{
    CNode, Capability, Endpoint, Frame, FrameSize, GuardData, IoPort, IrqHandler, MessageSource,
    Notification, ObjectType, PageDirectory, PageTable, Pdpt, Pml4, Reply, Rights, SchedContext,
    Slot, Tcb, Untyped,
};
use crate::env::EnvironmentError;
use crate::error::{Error, ErrorKind};
use crate::image::ImageError;

/// Why something could not be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// The kernel refused.
    Invocation(Error),
    /// The CSpace has fewer free slots than this; see [`Resources::enlarge_cspace`].
    NoSlots {
        wanted: u64,
    },
    /// No untyped has room for this many objects of 2^`size_bits` bytes.
    NoMemory {
        size_bits: u32,
        count: u64,
    },
    /// No free device memory is at this physical address.
    NoDevice {
        paddr: u64,
    },
    /// The address space has no room for a region of this many bytes.
    NoAddresses {
        bytes: u64,
    },
    /// The CNode of a component has no free slot.
    ComponentSlots {
        radix: u32,
    },
    /// A component has further threads, but its program says nowhere where they start.
    NoThreadStart,
    /// The registers do not look like an HPET with a 64-bit counter.
    NoHpet {
        capabilities: u64,
    },
    /// No IOAPIC input can be chosen for the HPET's interrupt.
    NoHpetRoute,
    /// The device tree names no serial port that there is a driver for.
    NoConsole,
    /// The firmware tells no frequency of the processor's counter.
    NoFrequency,
    Image(ImageError),
    Environment(EnvironmentError),
}

impl From<Error> for SetupError {
    fn from(error: Error) -> Self {
        Self::Invocation(error)
    }
}

impl From<ImageError> for SetupError {
    fn from(error: ImageError) -> Self {
        Self::Image(error)
    }
}

impl From<EnvironmentError> for SetupError {
    fn from(error: EnvironmentError) -> Self {
        Self::Environment(error)
    }
}

impl core::error::Error for SetupError {}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invocation(error) => error.fmt(f),
            Self::NoSlots { wanted } => {
                write!(f, "the CSpace has fewer than {wanted} free slots left")
            }
            Self::NoHpet { capabilities } => write!(
                f,
                "no HPET with a 64-bit counter: its capability register reads {capabilities:#x}"
            ),
            Self::NoHpetRoute => write!(f, "HPET: timer 0 reaches no input of the IOAPIC"),
            Self::NoConsole => write!(
                f,
                "the device tree names no serial port that there is a driver for: PL011, Cadence's"
            ),
            Self::NoFrequency => write!(
                f,
                "timer: the firmware tells no frequency of the processor's counter, in CNTFRQ_EL0"
            ),
            Self::NoThreadStart => write!(
                f,
                "it has further threads, but its program has no symbol `__sandglass_thread`, where they start: \
                 `sandglass::entry!` defines it"
            ),
            Self::NoMemory { size_bits, count } => {
                write!(
                    f,
                    "no untyped memory has room for {count} objects of 2^{size_bits} bytes"
                )
            }
            Self::NoDevice { paddr } => {
                write!(f, "no free device memory is at physical address {paddr:#x}")
            }
            Self::NoAddresses { bytes } => {
                write!(f, "the address space has no room for {bytes} bytes")
            }
            Self::ComponentSlots { radix } => {
                write!(f, "the component's CNode of 2^{radix} slots is full")
            }
            Self::Image(error) => error.fmt(f),
            Self::Environment(error) => error.fmt(f),
        }
    }
}

/// The slots of the current CSpace's root CNode and the untyped memory behind them.
#[derive(Clone, Debug)]
pub struct Resources {
    slots: SlotAllocator,
    memory: UntypedAllocator,
    root: CNode,
}

impl Resources {
    /// Everything that the kernel gives the root task. To be called once.
    pub fn from_boot_info(boot: &BootInfo) -> Self {
        Self {
            slots: SlotAllocator::new(boot.empty_slots()),
            memory: UntypedAllocator::new(boot.untypeds()),
            root: boot::CNODE,
        }
    }

    /// A program's own share: empty slots of its CNode `root`, and untyped memory.
    pub const fn new(root: CNode, slots: SlotAllocator, memory: UntypedAllocator) -> Self {
        Self {
            slots,
            memory,
            root,
        }
    }

    pub fn memory(&mut self) -> &mut UntypedAllocator {
        &mut self.memory
    }

    pub const fn slots(&self) -> &SlotAllocator {
        &self.slots
    }

    /// The slot of a capability of this CSpace.
    pub fn slot_of<C: Capability>(&self, capability: C) -> Slot {
        self.root.slot(capability.cptr().raw())
    }

    /// A free slot.
    pub fn allocate_slot(&mut self) -> Result<Slot, SetupError> {
        let index = self
            .slots
            .allocate()
            .ok_or(SetupError::NoSlots { wanted: 1 })?;
        Ok(self.root.slot(index))
    }

    /// The first of `count` consecutive free slots.
    pub fn allocate_slots(&mut self, count: u64) -> Result<Slot, SetupError> {
        let none = SetupError::NoSlots { wanted: count };
        Ok(self
            .root
            .slot(self.slots.allocate_range(count).ok_or(none)?))
    }

    /// Gives back a slot that is empty by now.
    pub fn free_slot(&mut self, slot: Slot) {
        self.slots.free(slot.index());
    }

    /// Makes one object.
    pub fn create<C: Capability>(&mut self, kind: ObjectType) -> Result<C, SetupError> {
        let slot = self.allocate_slot()?;
        match self.retype(kind, slot, 1) {
            Ok(()) => Ok(slot.capability()),
            Err(error) => {
                self.free_slot(slot);
                Err(error)
            }
        }
    }

    /// Makes `count` objects, up to 256, in consecutive slots; returns the first.
    pub fn create_many<C: Capability>(
        &mut self,
        kind: ObjectType,
        count: u64,
    ) -> Result<C, SetupError> {
        let slot = self.allocate_slots(count)?;
        self.retype(kind, slot, count)?;
        Ok(slot.capability())
    }

    /// Makes objects in slots of any CNode that is reached from this CSpace by its capability.
    pub fn retype(&mut self, kind: ObjectType, first: Slot, count: u64) -> Result<(), SetupError> {
        let size_bits = kind.size_bits();
        let placement = match self.memory.place(size_bits, count) {
            Some(placement) => placement,
            None => {
                self.add_chunk(size_bits, count)?;
                let none = SetupError::NoMemory { size_bits, count };
                self.memory.place(size_bits, count).ok_or(none)?
            }
        };
        placement.untyped.retype(kind, first, count)?;
        self.memory.commit(placement);
        Ok(())
    }

    /// Makes a chunk for small objects of the memory of large ones.
    fn add_chunk(&mut self, size_bits: u32, count: u64) -> Result<(), SetupError> {
        let none = SetupError::NoMemory { size_bits, count };
        if !memory::fits_chunk(size_bits, count) {
            return Err(none);
        }
        let placement = self.memory.place(CHUNK_BITS, 1).ok_or(none)?;
        let slot = self.allocate_slot()?;
        placement
            .untyped
            .retype(ObjectType::Untyped(CHUNK_BITS), slot, 1)?;
        self.memory.commit(placement);
        self.memory.add(slot.capability(), 0, CHUNK_BITS);
        Ok(())
    }

    pub fn tcb(&mut self) -> Result<Tcb, SetupError> {
        self.create(ObjectType::Tcb)
    }

    pub fn endpoint(&mut self) -> Result<Endpoint, SetupError> {
        self.create(ObjectType::Endpoint)
    }

    pub fn notification(&mut self) -> Result<Notification, SetupError> {
        self.create(ObjectType::Notification)
    }

    pub fn reply(&mut self) -> Result<Reply, SetupError> {
        self.create(ObjectType::Reply)
    }

    /// 2^`radix` slots. The capability's guard is empty: see [`CNode::slot_at`].
    pub fn cnode(&mut self, radix: u32) -> Result<CNode, SetupError> {
        self.create(ObjectType::CNode(radix))
    }

    /// 2^`size_bits` bytes, at least 7 bits.
    pub fn sched_context(&mut self, size_bits: u32) -> Result<SchedContext, SetupError> {
        self.create(ObjectType::SchedContext(size_bits))
    }

    pub fn frame(&mut self, size: FrameSize) -> Result<Frame, SetupError> {
        self.create(size.object_type())
    }

    pub fn pml4(&mut self) -> Result<Pml4, SetupError> {
        self.create(ObjectType::Pml4)
    }

    pub fn pdpt(&mut self) -> Result<Pdpt, SetupError> {
        self.create(ObjectType::Pdpt)
    }

    pub fn page_directory(&mut self) -> Result<PageDirectory, SetupError> {
        self.create(ObjectType::PageDirectory)
    }

    pub fn page_table(&mut self) -> Result<PageTable, SetupError> {
        self.create(ObjectType::PageTable)
    }

    /// Splits off 2^`size_bits` bytes of untyped memory, for another owner to manage.
    pub fn untyped(&mut self, size_bits: u32) -> Result<Untyped, SetupError> {
        self.create(ObjectType::Untyped(size_bits))
    }

    /// The frame at the physical address `paddr`, aligned to its size, of a device.
    pub fn device_frame(&mut self, paddr: u64, size: FrameSize) -> Result<Frame, SetupError> {
        let none = SetupError::NoDevice { paddr };
        loop {
            let slot = self.allocate_slot()?;
            let step = self.memory.place_device(paddr, size.bits());
            match step.ok_or(none).inspect_err(|_| self.free_slot(slot))? {
                DeviceStep::Take(placement) => {
                    placement.untyped.retype(size.object_type(), slot, 1)?;
                    self.memory.commit(placement);
                    return Ok(slot.capability());
                }
                DeviceStep::Cut(cut) => {
                    let kind = ObjectType::Untyped(cut.size_bits);
                    cut.placement.untyped.retype(kind, slot, 1)?;
                    self.memory.commit(cut.placement);
                    self.memory
                        .add_device(slot.capability(), cut.paddr, cut.size_bits);
                }
            }
        }
    }

    /// A copy of a capability, with at most the rights given.
    pub fn copy<C: Capability>(&mut self, source: C, rights: Rights) -> Result<C, SetupError> {
        let from = self.slot_of(source);
        self.fill_slot(|slot| slot.copy_from(from, rights))
    }

    /// A copy of an unbadged endpoint or notification capability with a badge.
    pub fn mint<C: Capability>(
        &mut self,
        source: C,
        rights: Rights,
        badge: u64,
    ) -> Result<C, SetupError> {
        let from = self.slot_of(source);
        self.fill_slot(|slot| slot.mint_from(from, rights, badge))
    }

    /// As [`Self::mint`], of an endpoint that can be called, and not sent to ([`Slot::mint_call_from`]).
    pub fn mint_call(
        &mut self,
        source: Endpoint,
        rights: Rights,
        badge: u64,
    ) -> Result<Endpoint, SetupError> {
        let from = self.slot_of(source);
        self.fill_slot(|slot| slot.mint_call_from(from, rights, badge))
    }

    /// Deletes a capability and gives its slot back.
    pub fn delete<C: Capability>(&mut self, capability: C) -> Result<(), SetupError> {
        let slot = self.slot_of(capability);
        slot.delete()?;
        self.free_slot(slot);
        Ok(())
    }

    /// The I/O ports `first..=last`. Root task only.
    pub fn io_ports(&mut self, first: u16, last: u16) -> Result<IoPort, SetupError> {
        self.fill_slot(|slot| boot::IO_PORT_CONTROL.issue(first, last, slot))
    }

    /// The handler of an IOAPIC input. Root task only.
    pub fn ioapic_irq(&mut self, pin: crate::cap::IoApicPin) -> Result<IrqHandler, SetupError> {
        self.fill_slot(|slot| boot::IRQ_CONTROL.get_ioapic(pin, slot))
    }

    /// A handler for the interrupt messages of a device. Root task only.
    pub fn message_irq(&mut self, source: MessageSource) -> Result<IrqHandler, SetupError> {
        self.fill_slot(|slot| boot::IRQ_CONTROL.get_msi(source, slot))
    }

    /// Puts a capability into a fresh slot by `fill`.
    pub fn fill_slot<C: Capability>(
        &mut self,
        fill: impl FnOnce(Slot) -> Result<(), Error>,
    ) -> Result<C, SetupError> {
        let slot = self.allocate_slot()?;
        match fill(slot) {
            Ok(()) => Ok(slot.capability()),
            Err(error) => {
                self.free_slot(slot);
                Err(error.into())
            }
        }
    }

    /// Replaces the root task's CSpace by one of 2^`radix` slots. Every capability keeps its
    /// address. The old CNode is not reclaimed. Root task only; it must have no fault handler,
    /// and its other threads keep the old CSpace, which is empty afterwards.
    pub fn enlarge_cspace(&mut self, radix: u32) -> Result<(), SetupError> {
        let guard = GuardData::new(0, 64 - radix);
        let fresh = self.cnode(radix)?;
        let fresh_slot = self.slot_of(fresh);
        let new_slot = |index: u64| fresh.slot_at(index, radix as u8);
        new_slot(slot::CNODE).mint_from(fresh_slot, Rights::ALL, guard.raw())?;
        // The invocations below need these until the switch.
        for index in [slot::TCB, slot::VSPACE] {
            new_slot(index).copy_from(self.root.slot(index), Rights::ALL)?;
        }
        let kept = [
            slot::NULL,
            slot::TCB,
            slot::CNODE,
            slot::VSPACE,
            fresh_slot.index(),
        ];
        for index in (0..self.slots.high_water_mark()).filter(|index| !kept.contains(index)) {
            match new_slot(index).move_from(self.root.slot(index)) {
                // An empty slot.
                Err(Error {
                    kind: ErrorKind::FailedLookup { source: true, .. },
                    ..
                }) => {}
                moved => moved?,
            }
        }
        boot::TCB.set_space(None, fresh, guard, boot::VSPACE)?;
        self.free_slot(fresh_slot);
        self.slots.extend(1 << radix);
        Ok(())
    }
}
