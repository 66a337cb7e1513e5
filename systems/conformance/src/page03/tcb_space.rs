//! 03, sections 4.4, 4.8 and 4.9: what Configure, SetIPCBuffer and SetSpace refuse, and in which
//! order.

use crate::prelude::*;

use super::common::truncated;

pub const CHECKS: &[Check] = &[
    check("03/4.4/1-truncated", configure_truncated),
    check("03/4.4/2-buffers-refused", configure_buffer),
    check(
        "03/4.4/2-address-0-ignores-the-capability",
        configure_no_buffer,
    ),
    check("03/4.4/3-final-cnode-in-the-slot", configure_final),
    check("03/4.4/4-cspaces-refused", configure_cspace),
    check("03/4.4/5-vspaces-refused", configure_vspace),
    check("03/4.4/order-of-the-checks", configure_order),
    check("03/4.8/refusals", set_ipc_buffer_refusals),
    check("03/4.9/refusals", set_space_refusals),
    check("03/4.9/3-final-cnode-in-the-slot", set_space_final),
    check("03/4.9/order-of-the-checks", set_space_order),
    check("03/4.9/fault-handlers", set_space_handlers),
];

const RADIX: u32 = 4;
/// The largest guard that fits the radix, and one more bit.
const LARGEST_GUARD: GuardData = GuardData::new(0, 64 - RADIX);
const TOO_LARGE_GUARD: GuardData = GuardData::new(0, 65 - RADIX);

/// Arguments that are right.
struct Scene {
    tcb: Tcb,
    cnode: CNode,
    vspace: CPtr,
    frame: Frame,
    /// An untyped with a child: whatever derives a capability of it reports RevokeFirst.
    parent: Untyped,
}

impl Scene {
    fn new(f: &mut Fixture) -> Result<Self, Failure> {
        let parent = f.untyped(12)?;
        let child = f.empty_slot()?;
        parent.retype(ObjectType::Endpoint, child, 1)?;
        Ok(Self {
            tcb: f.tcb()?,
            cnode: f.cnode(RADIX)?,
            vspace: f.vspace()?.root().cptr(),
            frame: f.frame(FrameSize::Small)?,
            parent,
        })
    }

    fn configure(&self) -> Invocation {
        let caps = [self.cnode.cptr(), self.vspace, self.frame.cptr()];
        Invocation::new(self.tcb, label::TCB_CONFIGURE, &[0, 0, 0x1000], &caps)
    }

    fn set_ipc_buffer(&self) -> Invocation {
        let caps = [self.frame.cptr()];
        Invocation::new(self.tcb, label::TCB_SET_IPC_BUFFER, &[0x1000], &caps)
    }

    fn set_space(&self, handler: impl Capability) -> Invocation {
        let caps = [handler.cptr(), self.cnode.cptr(), self.vspace];
        Invocation::new(self.tcb, label::TCB_SET_SPACE, &[0, 0], &caps)
    }

    /// Leaves the last capability to a CNode in the CSpace slot of the thread.
    fn make_cspace_final(&self, f: &mut Fixture) -> TestResult {
        let cnode = f.cnode(RADIX)?;
        self.configure().with_cap(0, cnode).expect_ok(&[])?;
        f.slot_of(cnode).delete()?;
        Ok(())
    }
}

/// What is no buffer, whatever its address, and the error.
fn bad_buffers(f: &mut Fixture, scene: &Scene) -> Result<Vec<(CPtr, ErrorNumber)>, Failure> {
    let device = f.device_untyped(12)?;
    let device_frame = f.empty_slot()?;
    device.retype(ObjectType::Page, device_frame, 1)?;
    Ok(vec![
        (f.null()?, IllegalOperation),
        (f.endpoint()?.cptr(), IllegalOperation),
        (scene.tcb.cptr(), IllegalOperation),
        (boot::IRQ_CONTROL.cptr(), IllegalOperation),
        (device_frame.capability(), IllegalOperation),
        // Those that cannot be derived.
        (f.make(ObjectType::PageTable)?, IllegalOperation),
        (scene.parent.cptr(), RevokeFirst),
    ])
}

/// What is no CSpace root, whatever the data, and the error.
fn bad_cspaces(f: &mut Fixture, scene: &Scene) -> Result<Vec<(CPtr, ErrorNumber)>, Failure> {
    let endpoint = f.endpoint()?;
    Ok(vec![
        (f.null()?, IllegalOperation),
        (endpoint.cptr(), IllegalOperation),
        (f.badged(endpoint, 5)?.cptr(), IllegalOperation),
        (scene.tcb.cptr(), IllegalOperation),
        (scene.vspace, IllegalOperation),
        (boot::IRQ_CONTROL.cptr(), IllegalOperation),
        (f.make(ObjectType::PageTable)?, IllegalOperation),
        (scene.parent.cptr(), RevokeFirst),
    ])
}

/// What is no VSpace root, whatever the data, and the error.
fn bad_vspaces(f: &mut Fixture, scene: &Scene) -> Result<Vec<(CPtr, ErrorNumber)>, Failure> {
    let endpoint = f.endpoint()?;
    Ok(vec![
        (f.null()?, IllegalOperation),
        (endpoint.cptr(), IllegalOperation),
        (f.badged(endpoint, 5)?.cptr(), IllegalOperation),
        (scene.cnode.cptr(), IllegalOperation),
        (scene.frame.cptr(), IllegalOperation),
        (boot::ASID_CONTROL.cptr(), IllegalOperation),
        // A root without an address space identifier.
        (f.pml4()?.cptr(), IllegalOperation),
        (f.make(ObjectType::Pdpt)?, IllegalOperation),
        (scene.parent.cptr(), RevokeFirst),
    ])
}

/// What is no fault handler (05, section 5).
pub fn bad_handlers(f: &mut Fixture) -> Result<Vec<CPtr>, Failure> {
    let endpoint = f.endpoint()?;
    let mut handlers = vec![
        f.notification()?.cptr(),
        f.reply()?.cptr(),
        f.me.cptr(),
        boot::CNODE.cptr(),
        boot::IRQ_CONTROL.cptr(),
    ];
    let neither = Rights::READ_WRITE;
    for rights in [neither, Rights::WRITE, Rights::READ] {
        handlers.push(f.with_rights(endpoint, rights)?.cptr());
    }
    // All but the right to send.
    handlers.push(f.with_rights(endpoint, Rights(0b1110))?.cptr());
    Ok(handlers)
}

/// What is one.
pub fn good_handlers(f: &mut Fixture) -> Result<Vec<CPtr>, Failure> {
    let endpoint = f.endpoint()?;
    let mut handlers = vec![endpoint.cptr(), f.badged(endpoint, 7)?.cptr(), f.null()?];
    for rights in [0b0101, 0b1001, 0b1101] {
        handlers.push(f.with_rights(endpoint, Rights(rights))?.cptr());
    }
    Ok(handlers)
}

fn configure_truncated(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    let configure = scene.configure();
    truncated(&configure)?;
    truncated(&configure.with_word(2, 1))?;
    // Also if the address says that there is no buffer.
    truncated(&configure.with_word(2, 0))?;
    configure.expect_ok(&[])
}

fn configure_buffer(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    let configure = scene.configure();
    for (cap, error) in bad_buffers(f, &scene)? {
        configure.with_cap(2, cap).expect_error(error, &[])?;
        // Before the alignment.
        configure
            .with_cap(2, cap)
            .with_word(2, 1)
            .expect_error(error, &[])?;
    }
    for address in [1, 8, 512, 0x1200, 0x13ff, u64::MAX] {
        configure
            .with_word(2, address)
            .expect_error(AlignmentError, &[])?;
    }
    for address in [0x400, 0x1000, 0x1c00, 1 << 63] {
        configure.with_word(2, address).expect_ok(&[])?;
    }
    Ok(())
}

fn configure_no_buffer(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    let configure = scene.configure().with_word(2, 0);
    for (cap, _) in bad_buffers(f, &scene)? {
        configure.with_cap(2, cap).expect_ok(&[])?;
    }
    Ok(())
}

fn configure_final(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    let configure = scene.configure();
    configure.expect_ok(&[])?;
    // While there is another capability to the CNode, it can be replaced.
    configure.expect_ok(&[])?;
    scene.make_cspace_final(f)?;
    configure.expect_error(IllegalOperation, &[])?;
    // The last capability to a VSpace root is no obstacle.
    let other = Scene::new(f)?;
    other.configure().expect_ok(&[])?;
    f.slot_of(other.vspace).delete()?;
    let vspace = f.vspace()?.root();
    other.configure().with_cap(1, vspace).expect_ok(&[])
}

fn configure_cspace(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    let configure = scene.configure();
    for (cap, error) in bad_cspaces(f, &scene)? {
        for data in [0, LARGEST_GUARD.raw()] {
            let bad = configure.with_cap(0, cap).with_word(0, data);
            bad.expect_error(error, &[])?;
        }
    }
    configure
        .with_word(0, TOO_LARGE_GUARD.raw())
        .expect_error(IllegalOperation, &[])?;
    configure.with_word(0, LARGEST_GUARD.raw()).expect_ok(&[])
}

fn configure_vspace(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    let configure = scene.configure();
    for (cap, error) in bad_vspaces(f, &scene)? {
        configure.with_cap(1, cap).expect_error(error, &[])?;
    }
    // Data are without effect on a root.
    for data in [0, 1, u64::MAX] {
        configure.with_word(1, data).expect_ok(&[])?;
    }
    Ok(())
}

fn configure_order(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    let configure = scene.configure();
    let (illegal, revoke_first) = (f.endpoint()?, scene.parent);
    // 2 before 4 before 5; each of the two errors can be that of the earlier check.
    for (first, second) in [(0, 1), (2, 0), (2, 1)] {
        let both = configure.with_cap(first, illegal);
        both.with_cap(second, revoke_first)
            .expect_error(IllegalOperation, &[])?;
        let both = configure.with_cap(first, revoke_first);
        both.with_cap(second, illegal)
            .expect_error(RevokeFirst, &[])?;
    }
    configure
        .with_word(2, 1)
        .with_cap(0, illegal)
        .expect_error(AlignmentError, &[])?;
    // 2 before 3 before 4.
    scene.make_cspace_final(f)?;
    configure
        .with_word(2, 1)
        .expect_error(AlignmentError, &[])?;
    configure
        .with_cap(0, revoke_first)
        .expect_error(IllegalOperation, &[])
}

fn set_ipc_buffer_refusals(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    let set = scene.set_ipc_buffer();
    truncated(&set)?;
    truncated(&set.with_word(0, 1))?;
    truncated(&set.with_word(0, 0))?;
    for (cap, error) in bad_buffers(f, &scene)? {
        for address in [0x1000, 1] {
            let bad = set.with_cap(0, cap).with_word(0, address);
            bad.expect_error(error, &[])?;
        }
        set.with_cap(0, cap).with_word(0, 0).expect_ok(&[])?;
    }
    for address in [1, 512, 0x1200, u64::MAX] {
        set.with_word(0, address)
            .expect_error(AlignmentError, &[])?;
    }
    set.expect_ok(&[])?;
    // What the thread's CSpace is does not matter here.
    scene.make_cspace_final(f)?;
    set.expect_ok(&[])
}

fn set_space_refusals(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    let set = scene.set_space(f.endpoint()?);
    truncated(&set)?;
    truncated(&set.with_cap(1, scene.tcb))?;
    for (cap, error) in bad_cspaces(f, &scene)? {
        set.with_cap(1, cap).expect_error(error, &[])?;
    }
    set.with_word(0, TOO_LARGE_GUARD.raw())
        .expect_error(IllegalOperation, &[])?;
    for (cap, error) in bad_vspaces(f, &scene)? {
        set.with_cap(2, cap).expect_error(error, &[])?;
    }
    for data in [0, 1, u64::MAX] {
        set.with_word(1, data).expect_ok(&[])?;
    }
    set.with_word(0, LARGEST_GUARD.raw()).expect_ok(&[])
}

fn set_space_final(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    let set = scene.set_space(f.endpoint()?);
    set.expect_ok(&[])?;
    scene.make_cspace_final(f)?;
    set.expect_error(IllegalOperation, &[])
}

fn set_space_order(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    let set = scene.set_space(f.endpoint()?);
    let (illegal, revoke_first) = (f.endpoint()?, scene.parent);
    set.with_cap(1, illegal)
        .with_cap(2, revoke_first)
        .expect_error(IllegalOperation, &[])?;
    set.with_cap(1, revoke_first)
        .with_cap(2, illegal)
        .expect_error(RevokeFirst, &[])?;
    // The handler last.
    let no_handler = f.notification()?;
    set.with_cap(0, no_handler)
        .with_cap(2, illegal)
        .expect_error(IllegalOperation, &[])?;
    set.with_cap(0, no_handler)
        .expect_error(InvalidCapability, &[1])?;
    scene.make_cspace_final(f)?;
    set.with_cap(1, revoke_first)
        .expect_error(IllegalOperation, &[])?;
    set.with_cap(0, no_handler)
        .expect_error(IllegalOperation, &[])
}

fn set_space_handlers(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    for cap in bad_handlers(f)? {
        scene.set_space(cap).expect_error(InvalidCapability, &[1])?;
    }
    for cap in good_handlers(f)? {
        scene.set_space(cap).expect_ok(&[])?;
    }
    Ok(())
}
