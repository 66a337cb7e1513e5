//! What the checks of this page share.

use sandglass::cap::{IoApicPin, PageDirectory, PageTable, Pdpt};
use sandglass::testing::TestResult;

use crate::prelude::*;

/// Kinds of capabilities, as far as their behaviour tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Null or a zombie.
    Nothing,
    Untyped,
    Tcb,
    Endpoint,
    Notification,
    CNode,
    SchedContext,
    Reply,
    Pdpt,
    /// Understands no label.
    Pml4,
    Frame,
    PageTable,
    PageDirectory,
    SchedControl,
    Domain,
    IrqControl,
    IrqHandler,
    AsidControl,
    AsidPool,
    IoPortControl,
    IoPort,
}

/// One label of each kind that, sent without words and capabilities, is truncated (ABI page 03).
const TRUNCATED: &[(u64, Kind)] = &[
    (label::UNTYPED_RETYPE, Kind::Untyped),
    (label::TCB_READ_REGISTERS, Kind::Tcb),
    (label::CNODE_DELETE, Kind::CNode),
    (label::SCHED_CONTEXT_BIND, Kind::SchedContext),
    (label::SCHED_CONTROL_CONFIGURE_FLAGS, Kind::SchedControl),
    (label::DOMAIN_SET, Kind::Domain),
    (label::IRQ_HANDLER_SET_NOTIFICATION, Kind::IrqHandler),
    (arch_label::PDPT_MAP, Kind::Pdpt),
    (arch_label::PAGE_DIRECTORY_MAP, Kind::PageDirectory),
    (arch_label::PAGE_TABLE_MAP, Kind::PageTable),
    (arch_label::PAGE_MAP, Kind::Frame),
    (arch_label::ASID_CONTROL_MAKE_POOL, Kind::AsidControl),
    (arch_label::ASID_POOL_ASSIGN, Kind::AsidPool),
    (arch_label::IO_PORT_CONTROL_ISSUE, Kind::IoPortControl),
    (arch_label::IO_PORT_IN8, Kind::IoPort),
    (arch_label::IRQ_CONTROL_GET_IOAPIC, Kind::IrqControl),
];

/// The kind of a capability. Endpoints must have all rights; notifications must be new.
pub fn kind_of(f: &mut Fixture, cap: impl Capability) -> Result<Kind, Failure> {
    if f.slot_of(cap).cancel_badged_sends().is_ok() {
        return Ok(Kind::Endpoint);
    }
    let context = f.unconfigured_context(7)?;
    let bind = Invocation::new(context, label::SCHED_CONTEXT_BIND, &[], &[cap.cptr()]);
    if bind.call().label == 0 {
        bind.with_label(label::SCHED_CONTEXT_UNBIND_OBJECT).ok()?;
        let authority = Invocation::new(f.tcb()?, label::TCB_SET_PRIORITY, &[0], &[cap.cptr()]);
        let is_thread = authority.call().label == 0;
        return Ok(if is_thread {
            Kind::Tcb
        } else {
            Kind::Notification
        });
    }
    let mut understood = Vec::new();
    for &(label, kind) in TRUNCATED {
        let answer = Invocation::new(cap, label, &[], &[]).call();
        match ErrorNumber::from_raw(answer.label) {
            Some(NoError) => return Ok(Kind::Reply),
            Some(InvalidCapability) => {
                ensure_eq!(answer.words, [0]);
                return Ok(Kind::Nothing);
            }
            Some(TruncatedMessage) => understood.push(kind),
            Some(IllegalOperation) => {}
            _ => return Err(Failure::from(format!("label {label} answered {answer}"))),
        }
    }
    ensure!(
        understood.len() <= 1,
        "behaves as all of {understood:?} at once"
    );
    Ok(understood.first().copied().unwrap_or(Kind::Pml4))
}

/// Bytes left in an untyped: asks for more than there can be.
pub fn free_bytes(f: &mut Fixture, untyped: Untyped) -> Result<u64, Failure> {
    let slot = f.empty_slot()?;
    let answer = retype(untyped, object::UNTYPED, 47, slot, 1).call();
    f.process.resources.free_slot(slot);
    ensure!(
        answer.label == NotEnoughMemory as u64 && answer.words.len() == 1,
        "an untyped of 2^47 bytes answered {answer}"
    );
    Ok(answer.words[0])
}

/// Retype into slots of the root CNode.
pub fn retype(untyped: Untyped, kind: u64, size: u64, first: Slot, count: u64) -> Invocation {
    Invocation::new(
        untyped,
        label::UNTYPED_RETYPE,
        &[kind, size, 0, 0, first.index(), count],
        &[boot::CNODE.cptr()],
    )
}

/// Which of these slots of the root CNode hold something.
pub fn alive<const N: usize>(f: &mut Fixture, caps: [CPtr; N]) -> Result<[bool; N], Failure> {
    let mut alive = [false; N];
    for (alive, cap) in alive.iter_mut().zip(caps) {
        let slot = f.slot_of(cap);
        *alive = !f.is_empty(slot)?;
    }
    Ok(alive)
}

/// Revokes a capability of the root CNode.
pub fn revoke(f: &Fixture, cap: impl Capability) -> TestResult {
    Ok(f.slot_of(cap).revoke()?)
}

/// Deletes a capability of the root CNode.
pub fn delete(f: &Fixture, cap: impl Capability) -> TestResult {
    Ok(f.slot_of(cap).delete()?)
}

/// An operation of the root CNode on the slots of two capabilities: index and depth of the
/// destination, index and depth of the source, and more words.
pub fn operation(label: u64, destination: Slot, source: Slot, more: &[u64]) -> Invocation {
    let mut words = vec![
        destination.index(),
        u64::from(destination.depth()),
        source.index(),
        u64::from(source.depth()),
    ];
    words.extend(more);
    Invocation::new(destination.root(), label, &words, &[source.root().cptr()])
}

/// An interrupt of the IOAPIC that nothing raises, by its vector.
pub fn irq_handler(f: &mut Fixture, vector: u64) -> Result<CPtr, Failure> {
    let slot = f.empty_slot()?;
    conformance_kit::arch::issue_irq(boot::IRQ_CONTROL, vector, slot)?;
    Ok(slot.capability())
}

/// A pin that no device drives.
pub const fn unused_pin(vector: u64) -> IoApicPin {
    IoApicPin {
        ioapic: 0,
        pin: 22,
        level: false,
        active_low: false,
        vector,
    }
}

/// Ports that no device listens to.
pub fn io_ports(f: &mut Fixture, first: u16, last: u16) -> Result<CPtr, Failure> {
    let slot = f.empty_slot()?;
    boot::IO_PORT_CONTROL.issue(first, last, slot)?;
    Ok(slot.capability())
}

/// Whether the first capability to an object of this kind is a parent of its copies: all are but a
/// pool of MakePool, which is inserted like a copy of its memory's (02, section 5.1).
pub fn has_children(kind: Kind) -> bool {
    kind != Kind::AsidPool
}

/// An original capability of every kind that can be copied and that the root task can make. The
/// paging structures are mapped.
pub fn originals(f: &mut Fixture, number: u16) -> Result<Vec<(Kind, CPtr)>, Failure> {
    let root = f.vspace()?.root();
    let (pdpt, directory): (Pdpt, PageDirectory) = (
        f.process.resources.pdpt()?,
        f.make(ObjectType::PageDirectory)?,
    );
    let table: PageTable = f.make(ObjectType::PageTable)?;
    pdpt.map(root, 0, Attributes::WriteBack)?;
    directory.map(root, 0, Attributes::WriteBack)?;
    table.map(root, 0, Attributes::WriteBack)?;
    let pool_memory = f.untyped(12)?;
    let pool = f.empty_slot()?;
    boot::ASID_CONTROL.make_pool(pool_memory, pool)?;
    let port = 0x5000 + number * 16;
    Ok(vec![
        (Kind::Tcb, f.tcb()?.cptr()),
        (Kind::Endpoint, f.endpoint()?.cptr()),
        (Kind::Notification, f.notification()?.cptr()),
        (Kind::CNode, f.cnode(1)?.cptr()),
        (Kind::SchedContext, f.unconfigured_context(7)?.cptr()),
        (Kind::Reply, f.reply()?.cptr()),
        (Kind::Frame, f.frame(FrameSize::Small)?.cptr()),
        (Kind::Pml4, root.cptr()),
        (Kind::Pdpt, pdpt.cptr()),
        (Kind::PageDirectory, directory.cptr()),
        (Kind::PageTable, table.cptr()),
        (Kind::AsidPool, pool.capability()),
        (Kind::IrqHandler, irq_handler(f, 90 + u64::from(number))?),
        (Kind::IoPort, io_ports(f, port, port + 7)?),
    ])
}

/// Addresses of `pages` pages where nothing is mapped, but the paging structures are there.
pub fn unmapped_pages(f: &mut Fixture, pages: u64) -> Result<u64, Failure> {
    let (frame, space) = (f.frame(FrameSize::Small)?, f.process.space.vspace());
    let address = f.process.space.reserve(pages << 12, 12)?;
    for page in [0, pages - 1] {
        let at = address + (page << 12);
        let resources = &mut f.process.resources;
        space.map(resources, frame, at, Rights::ALL, Attributes::WriteBack)?;
        frame.unmap()?;
    }
    f.process.resources.delete(frame)?;
    Ok(address)
}
