//! Deletion and revocation of as much as there can be.

use sandglass::abi::syscall::Syscall;
use sandglass::cap::{
    Attributes, CNode, CPtr, Capability, Endpoint, Frame, FrameSize, ObjectType, PageTable, Rights,
    SchedParams, Slot,
};
use sandglass::vspace::VSpace;
use sandglass::{println, SetupError};

use crate::crowd::{nth, Crowd};
use crate::lab::{many, single, Cost, Lab};
use crate::program::{spinning, Call};

/// Endpoints in the untyped memory that is revoked with threads queued.
const ENDPOINTS: u64 = 100;

/// Page tables that are revoked, and how many of them are full.
const TABLES: u64 = 256;
const FULL_TABLES: u64 = 200;
/// Entries of a table.
const ENTRIES: u64 = 512;

/// Where many pages are mapped.
const VADDR: u64 = 0x6000_0000_0000;
const TABLE_BYTES: u64 = 1 << 21;
const PAGE_BYTES: u64 = 1 << 12;

pub fn measure(lab: &mut Lab) -> Result<(), SetupError> {
    for size in lab.sizes.clone() {
        println!("bounds: deletion of {size}");
        revoke_endpoints(lab, size)?;
        copies(lab, size)?;
        full_cnode(lab, size)?;
        nested_cnodes(lab, size)?;
        mappings(lab, size)?;
        revoke_threads(lab, size)?;
    }
    println!("bounds: deletion of page tables");
    page_tables(lab)?;
    println!("bounds: a periodic thread above long operations");
    lateness(lab)
}

/// Untyped memory with endpoints at which the crowd waits is revoked.
fn revoke_endpoints(lab: &mut Lab, size: u64) -> Result<(), SetupError> {
    let resources = &mut lab.process.resources;
    let memory = resources.untyped(12)?;
    let slots = resources.allocate_slots(ENDPOINTS)?;
    memory.retype(ObjectType::Endpoint, slots, ENDPOINTS)?;
    for (member, i) in lab.crowd.first(size).iter().zip(0..) {
        let endpoint: Endpoint = nth(slots.capability(), i % ENDPOINTS);
        let call = Call::new(Syscall::Send, endpoint.address());
        member.start(&call.once())?;
    }
    lab.settle()?;
    let slot = lab.process.resources.slot_of(memory);
    many("revoke-100-endpoints", size, Cost::Stretch, || {
        slot.revoke()
    })?;
    slot.delete()?;
    lab.crowd.stop(size)
}

/// Slot `i` of the spare ones.
fn spare(lab: &Lab, i: u64) -> Slot {
    let first = lab.spare_slots;
    first.root().slot(first.index() + i)
}

/// An endpoint has many capabilities: another is added in their midst, removed and moved; then all
/// are revoked.
fn copies(lab: &mut Lab, size: u64) -> Result<(), SetupError> {
    let endpoint = lab.process.resources.endpoint()?;
    let from = lab.process.resources.slot_of(endpoint);
    for i in 0..size - 1 {
        spare(lab, i).mint_from(from, Rights::ALL, 1 + i)?;
    }
    let middle = spare(lab, size / 2);
    let free = spare(lab, size - 1);
    for _ in 0..4 {
        many("copies-copy", size, Cost::First, || {
            free.copy_from(middle, Rights::ALL)
        })?;
        many("copies-delete", size, Cost::Stretch, || free.delete())?;
        many("copies-move", size, Cost::First, || free.move_from(middle))?;
        middle.move_from(free)?;
    }
    many("copies-revoke", size, Cost::Stretch, || from.revoke())?;
    lab.process.resources.delete(endpoint)
}

/// A CNode full of capabilities is deleted.
fn full_cnode(lab: &mut Lab, size: u64) -> Result<(), SetupError> {
    let radix = size.next_power_of_two().ilog2();
    let resources = &mut lab.process.resources;
    let memory = resources.untyped(ObjectType::CNode(radix).size_bits())?;
    let slot = resources.allocate_slot()?;
    memory.retype(ObjectType::CNode(radix), slot, 1)?;
    let node: CNode = slot.capability();
    let endpoint = resources.endpoint()?;
    let from = resources.slot_of(endpoint);
    for i in 0..1 << radix {
        node.slot_at(i, radix as u8).copy_from(from, Rights::ALL)?;
    }
    many("delete-full-cnode", size, Cost::Stretch, || slot.delete())?;
    lab.process.resources.slot_of(memory).delete()?;
    lab.process.resources.delete(endpoint)
}

/// CNodes lie within each other, as deep as there are.
fn nested_cnodes(lab: &mut Lab, size: u64) -> Result<(), SetupError> {
    const KIND: ObjectType = ObjectType::CNode(1);
    let resources = &mut lab.process.resources;
    let bits = KIND.size_bits() + size.next_power_of_two().ilog2();
    let memory = resources.untyped(bits)?;
    let (outer, inner) = (resources.allocate_slot()?, resources.allocate_slot()?);
    memory.retype(KIND, inner, 1)?;
    for _ in 1..size {
        memory.retype(KIND, outer, 1)?;
        let node: CNode = outer.capability();
        node.slot_at(1, 1).move_from(inner)?;
        inner.move_from(outer)?;
    }
    many("delete-nested-cnodes", size, Cost::Stretch, || {
        inner.delete()
    })?;
    let slot = lab.process.resources.slot_of(memory);
    many("revoke-nested-cnodes", size, Cost::Stretch, || {
        slot.revoke()
    })?;
    Ok(slot.delete()?)
}

/// A frame is mapped at many addresses, each by a capability of its own; all are revoked.
fn mappings(lab: &mut Lab, size: u64) -> Result<(), SetupError> {
    let frame = lab.process.resources.frame(FrameSize::Small)?;
    let from = lab.process.resources.slot_of(frame);
    let vspace = lab.process.space.vspace();
    for i in 0..size {
        let slot = spare(lab, i);
        slot.copy_from(from, Rights::ALL)?;
        let copy: Frame = slot.capability();
        let vaddr = VADDR + i * PAGE_BYTES;
        map(lab, vspace, copy, vaddr)?;
    }
    many("revoke-mappings", size, Cost::Stretch, || from.revoke())?;
    lab.process.resources.delete(frame)
}

fn map(lab: &mut Lab, vspace: VSpace, frame: Frame, vaddr: u64) -> Result<(), SetupError> {
    vspace.map(
        &mut lab.process.resources,
        frame,
        vaddr,
        Rights::READ_WRITE,
        Attributes::WriteBack,
    )
}

/// Untyped memory with queued threads and their contexts is revoked.
fn revoke_threads(lab: &mut Lab, size: u64) -> Result<(), SetupError> {
    let is_all = size == lab.crowd.members().len() as u64;
    let other;
    let crowd = if is_all {
        // The last that is done with it.
        &lab.crowd
    } else {
        other = Crowd::new(&mut lab.process, lab.control, size)?;
        &other
    };
    let endpoint = lab.process.resources.endpoint()?;
    let send = Call::new(Syscall::Send, endpoint.address());
    for member in crowd.members() {
        member.start(&send.once())?;
    }
    lab.settle()?;
    let slot = lab.process.resources.slot_of(crowd.memory);
    many("revoke-threads", size, Cost::Stretch, || slot.revoke())?;
    lab.process.resources.delete(endpoint)
}

/// Many page tables, most of them full of mappings, are revoked.
fn page_tables(lab: &mut Lab) -> Result<(), SetupError> {
    let resources = &mut lab.process.resources;
    let memory = resources.untyped(20)?;
    let slots = resources.allocate_slots(TABLES)?;
    memory.retype(ObjectType::PageTable, slots, TABLES)?;
    let frame = resources.frame(FrameSize::Small)?;
    let from = resources.slot_of(frame);
    let vspace = lab.process.space.vspace();
    // Makes what is above the tables.
    let first = VADDR + (1 << 38);
    map(lab, vspace, frame, first)?;
    frame.unmap()?;
    let copies = lab.spare_slots;
    let room = lab.crowd_size();
    let mut used = 0;
    for i in 0..TABLES {
        let vaddr = first + (i + 1) * TABLE_BYTES;
        let table: PageTable = nth(slots.capability(), i);
        table.map(vspace.root(), vaddr, Attributes::WriteBack)?;
        let pages = if i < FULL_TABLES { ENTRIES } else { 0 };
        for page in 0..pages.min(room - used) {
            let slot = copies.root().slot(copies.index() + used);
            slot.copy_from(from, Rights::ALL)?;
            let copy = Frame::from_cptr(CPtr::new(slot.index()));
            copy.map(
                vspace.root(),
                vaddr + page * PAGE_BYTES,
                Rights::READ_WRITE,
                Attributes::WriteBack,
            )?;
            used += 1;
        }
    }
    let unmap: PageTable = nth(slots.capability(), 0);
    single("page-table-unmap-full", ENTRIES, Cost::First, || {
        unmap.unmap()
    })?;
    let slot = lab.process.resources.slot_of(memory);
    single("revoke-page-tables", TABLES, Cost::Stretch, || {
        slot.revoke()
    })?;
    single("revoke-mappings-of-tables", used, Cost::Stretch, || {
        from.revoke()
    })?;
    Ok(())
}

/// Long operations below a thread that the timer releases again and again: none of them delays it
/// by more than the stretch, whenever it comes.
fn lateness(lab: &mut Lab) -> Result<(), SetupError> {
    // The period is no multiple of anything, so that releases come everywhere.
    let context = lab.context(SchedParams::new(20, 37))?;
    let visitor = lab.visitors[0];
    visitor.tcb.suspend()?;
    visitor.context.unbind()?;
    context.bind(visitor.tcb)?;
    visitor.tcb.set_priority(lab.process.authority(), u8::MAX)?;
    visitor.start(&spinning())?;
    let resources = &mut lab.process.resources;
    let memory = resources.untyped(20)?;
    let slots = resources.allocate_slots(TABLES)?;
    let slot = resources.slot_of(memory);
    for kind in [ObjectType::Tcb, ObjectType::PageTable, ObjectType::CNode(4)] {
        for _ in 0..2 {
            single("periodic-above-retype", TABLES, Cost::Stretch, || {
                memory.retype(kind, slots, TABLES)
            })?;
            single("periodic-above-revoke", TABLES, Cost::Stretch, || {
                slot.revoke()
            })?;
        }
    }
    visitor.tcb.suspend()?;
    Ok(())
}
