//! What the checks of this page share.

use conformance_kit::arch;
use conformance_kit::arch::order::{R12, RDI};
use sandglass::testing::TestResult;

use crate::arch::page02::{MADE, ROOT_LABEL, TABLES, TRUNCATED};
use crate::page03::levels::LEVELS;
use crate::prelude::*;

/// Kinds of capabilities, as far as their behaviour tells them apart. Each architecture has some of them.
#[allow(dead_code)]
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
    /// Understands no label, or those of aarch64.
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
    SgiSignal,
}

/// One label of each kind of every architecture that, sent without words and capabilities, is truncated (ABI page 03).
const COMMON: &[(u64, Kind)] = &[
    (label::UNTYPED_RETYPE, Kind::Untyped),
    (label::TCB_READ_REGISTERS, Kind::Tcb),
    (label::CNODE_DELETE, Kind::CNode),
    (label::SCHED_CONTEXT_BIND, Kind::SchedContext),
    (label::SCHED_CONTROL_CONFIGURE_FLAGS, Kind::SchedControl),
    (label::DOMAIN_SET, Kind::Domain),
    (label::IRQ_HANDLER_SET_NOTIFICATION, Kind::IrqHandler),
    (arch_label::PAGE_TABLE_MAP, Kind::PageTable),
    (arch_label::PAGE_MAP, Kind::Frame),
    (arch_label::ASID_CONTROL_MAKE_POOL, Kind::AsidControl),
    (arch_label::ASID_POOL_ASSIGN, Kind::AsidPool),
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
    let root = ROOT_LABEL.map(|label| (label, Kind::Pml4));
    for (label, kind) in COMMON.iter().chain(TRUNCATED).copied().chain(root) {
        let answer = Invocation::new(cap, label, &[], &[]).call();
        match ErrorNumber::from_raw(answer.label) {
            Some(NoError) if is_reply(f, cap.cptr())? => return Ok(Kind::Reply),
            Some(NoError) => return Ok(Kind::SgiSignal),
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

/// Whether it serves as a reply object, of what no label of an object is wrong for.
fn is_reply(f: &mut Fixture, cap: CPtr) -> Result<bool, Failure> {
    let endpoint = f.endpoint()?;
    let named = [(RDI, endpoint.address()), (R12, cap.raw())];
    let stopped = f.caller(&entry(Syscall::NBRecv, &named))?.run(f)?;
    Ok(stopped.label != fault::CAP_FAULT)
}

/// An interrupt that nothing raises, by its vector.
pub fn irq_handler(f: &mut Fixture, vector: u64) -> Result<CPtr, Failure> {
    let slot = f.empty_slot()?;
    conformance_kit::arch::issue_irq(boot::IRQ_CONTROL, vector, slot)?;
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
    let mut originals = Vec::new();
    for (level, kind) in LEVELS.into_iter().zip(TABLES) {
        let map = level.map(f, root.cptr())?;
        map.expect_ok(&[])?;
        originals.push((kind, map.cap));
    }
    let pool_memory = f.untyped(12)?;
    let pool = f.empty_slot()?;
    boot::ASID_CONTROL.make_pool(pool_memory, pool)?;
    for (cap, _) in arch::made(f, number.into())? {
        originals.push((MADE, cap));
    }
    originals.extend([
        (Kind::Tcb, f.tcb()?.cptr()),
        (Kind::Endpoint, f.endpoint()?.cptr()),
        (Kind::Notification, f.notification()?.cptr()),
        (Kind::CNode, f.cnode(1)?.cptr()),
        (Kind::SchedContext, f.unconfigured_context(7)?.cptr()),
        (Kind::Reply, f.reply()?.cptr()),
        (Kind::Frame, f.frame(FrameSize::Small)?.cptr()),
        (Kind::Pml4, root.cptr()),
        (Kind::AsidPool, pool.capability()),
        (Kind::IrqHandler, irq_handler(f, 90 + u64::from(number))?),
    ]);
    Ok(originals)
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
