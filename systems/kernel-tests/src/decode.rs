//! A failed decode changes nothing: after every refused invocation of the list, what the
//! invocation could have changed is as it was. The errors are those of the first check that fails
//! (ABI 03).

use alloc::vec::Vec;

use sandglass::abi::error::ErrorNumber::{self, *};
use sandglass::abi::invocation::{self as label, x86_64 as x86};
use sandglass::abi::object;
use sandglass::cap::{
    Attributes, CNode, CPtr, Capability, Endpoint, Frame, FrameSize, Notification, ObjectType,
    Rights, SchedContext, Tcb, Untyped,
};
use sandglass::context::UserContext;
use sandglass::testing::{Suite, TestResult};
use sandglass::thread::ThreadParams;
use sandglass::{boot, ensure, ensure_eq, Message, SetupError};

use crate::fixture::{runs_on, Fixture, FULL};

const RADIX: u64 = 4;
const PRIORITY: u8 = 100;
const UNTYPED_BITS: u32 = 15;
/// Where the frame of the scene is mapped.
const MAPPED: u64 = 0x4800_0000_0000;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "decode",
        &[
            ("a_refused_invocation_changes_nothing", unchanged),
            ("a_failed_call_delivers_only_its_error", only_the_error),
            ("a_failed_send_delivers_nothing", send_delivers_nothing),
        ],
    );
}

/// Objects in a known state, for invocations to fail on.
struct Scene {
    untyped: Untyped,
    /// Slot 0: a badged endpoint capability. Slot 1: a page's. Others: empty.
    cnode: CNode,
    endpoint: Endpoint,
    notification: Notification,
    tcb: Tcb,
    other: Tcb,
    context: SchedContext,
    frame: Frame,
    null: CPtr,
}

/// What can be seen of the scene.
#[derive(Clone, PartialEq, Debug)]
struct Snapshot {
    registers: UserContext,
    empty: Vec<bool>,
    bound: bool,
    consumed_us: u64,
    word: u64,
    flags: u64,
    signalled: u64,
}

impl Scene {
    fn new(fixture: &mut Fixture) -> Result<Self, SetupError> {
        let context = fixture.context(FULL)?;
        let tcb = fixture.prepare(ThreadParams::new(PRIORITY, context), || ())?;
        let process = &mut fixture.process;
        let resources = &mut process.resources;
        let untyped = resources.untyped(UNTYPED_BITS)?;
        let cnode = resources.cnode(RADIX as u32)?;
        let endpoint = resources.endpoint()?;
        let slot = |index| cnode.slot_at(index, RADIX as u8);
        slot(0).mint_from(resources.slot_of(endpoint), Rights::ALL, 7)?;
        untyped.retype(ObjectType::Page, cnode.slot_at(1, RADIX as u8), 1)?;
        let frame = resources.frame(FrameSize::Small)?;
        process
            .space
            .fill_frame(resources, frame, |page| page.fill(0x77))?;
        let vspace = process.space.vspace();
        vspace.map(
            resources,
            frame,
            MAPPED,
            Rights::READ_WRITE,
            Attributes::WriteBack,
        )?;
        Ok(Self {
            untyped,
            cnode,
            endpoint,
            notification: resources.notification()?,
            tcb,
            other: resources.tcb()?,
            context,
            frame,
            null: resources.allocate_slot()?.capability(),
        })
    }

    fn snapshot(&self, fixture: &mut Fixture) -> Result<Snapshot, SetupError> {
        let empty: Result<Vec<bool>, SetupError> = (0..1 << RADIX)
            .map(|index| fixture.is_empty(self.cnode.slot_at(index, RADIX as u8)))
            .collect();
        Ok(Snapshot {
            registers: self.tcb.read_registers(false)?,
            empty: empty?,
            bound: runs_on(self.tcb, PRIORITY, self.context),
            consumed_us: self.context.consumed_us()?,
            // SAFETY: mapped by `new`.
            word: unsafe { (MAPPED as *const u64).read_volatile() },
            flags: self.tcb.set_flags(0, 0)?,
            signalled: self.notification.poll(),
        })
    }

    /// Starts the untyped anew, with one page in slot 1 and the rest free.
    fn renew(&self, fixture: &mut Fixture) -> Result<(), SetupError> {
        fixture.process.resources.slot_of(self.untyped).revoke()?;
        let slot = self.cnode.slot_at(1, RADIX as u8);
        Ok(self.untyped.retype(ObjectType::Page, slot, 1)?)
    }

    /// Physical address of the untyped's next page, which this makes.
    fn next_page(&self, fixture: &mut Fixture) -> Result<u64, SetupError> {
        let resources = &mut fixture.process.resources;
        let slot = resources.allocate_slot()?;
        self.untyped.retype(ObjectType::Page, slot, 1)?;
        let address = slot.capability::<Frame>().physical_address()?;
        slot.delete()?;
        resources.free_slot(slot);
        Ok(address)
    }
}

/// A refused invocation: what it is, capability, label, words, extra capabilities, and the error
/// with its words.
type Case = (
    &'static str,
    CPtr,
    u64,
    Vec<u64>,
    Vec<CPtr>,
    ErrorNumber,
    Vec<u64>,
);

fn unchanged(fixture: &mut Fixture) -> TestResult {
    let scene = Scene::new(fixture)?;
    let next_page = scene.next_page(fixture)?;
    for case in untyped_cases(&scene)
        .into_iter()
        .chain(cnode_cases(&scene))
        .chain(tcb_cases(&scene))
        .chain(sched_cases(fixture, &scene))
        .chain(memory_cases(&scene))
    {
        scene.renew(fixture)?;
        let before = scene.snapshot(fixture)?;
        let (what, cap, label, words, caps, error, details) = case;
        let message = Message::long(label, &words).with_caps(&caps);
        let answer = Endpoint::from_cptr(cap).call(message);
        ensure!(
            answer.label() == error as u64,
            "{what}: error {}, not {error:?}",
            answer.label()
        );
        let mut got = alloc::vec![0; answer.len()];
        answer.copy_words(&mut got);
        ensure!(got == details, "{what}: details {got:?}, not {details:?}");
        let after = scene.snapshot(fixture)?;
        ensure!(before == after, "{what}: {before:?} became {after:?}");
        ensure!(
            scene.next_page(fixture)? == next_page,
            "{what}: untyped memory is lost"
        );
    }
    Ok(())
}

fn untyped_cases(s: &Scene) -> Vec<Case> {
    let (cap, root) = (s.untyped.cptr(), s.cnode.cptr());
    let retype = |what, words: [u64; 6], error, details: &[u64]| -> Case {
        let label = label::UNTYPED_RETYPE;
        (
            what,
            cap,
            label,
            words.to_vec(),
            alloc::vec![root],
            error,
            details.to_vec(),
        )
    };
    let endpoint = object::ENDPOINT;
    let untyped = object::UNTYPED;
    alloc::vec![
        (
            "no root",
            cap,
            label::UNTYPED_RETYPE,
            alloc::vec![endpoint, 0, 0, 0, 4, 1],
            alloc::vec![],
            TruncatedMessage,
            alloc::vec![]
        ),
        retype("type", [14, 0, 0, 0, 4, 1], InvalidArgument, &[0]),
        retype("size", [untyped, 64, 0, 0, 4, 1], RangeError, &[0, 47]),
        retype("small", [untyped, 3, 0, 0, 4, 1], InvalidArgument, &[1]),
        retype("offset", [endpoint, 0, 0, 0, 16, 1], RangeError, &[0, 15]),
        retype("none", [endpoint, 0, 0, 0, 4, 0], RangeError, &[1, 256]),
        retype("window", [endpoint, 0, 0, 0, 4, 13], RangeError, &[1, 12]),
        retype("occupied", [endpoint, 0, 0, 0, 0, 2], DeleteFirst, &[]),
        retype(
            "lookup",
            [endpoint, 0, 2, 4, 4, 1],
            FailedLookup,
            &[0, 2, 4]
        ),
        retype(
            "memory",
            [object::x86_64::LARGE_PAGE, 0, 0, 0, 4, 1],
            NotEnoughMemory,
            &[LEFT]
        ),
    ]
}

/// Bytes of the scene's untyped behind its first page.
const LEFT: u64 = (1 << UNTYPED_BITS) - 4096;

fn cnode_cases(s: &Scene) -> Vec<Case> {
    let root = s.cnode.cptr();
    let case = |what, label, words: &[u64], error, details: &[u64]| -> Case {
        (
            what,
            root,
            label,
            words.to_vec(),
            alloc::vec![root],
            error,
            details.to_vec(),
        )
    };
    let missing = 2;
    alloc::vec![
        case(
            "copy over",
            label::CNODE_COPY,
            &[1, 4, 0, 4, 15],
            DeleteFirst,
            &[]
        ),
        case(
            "copy of nothing",
            label::CNODE_COPY,
            &[4, 4, 5, 4, 15],
            FailedLookup,
            &[1, missing, 4]
        ),
        case(
            "copy, depth 0",
            label::CNODE_COPY,
            &[4, 0, 0, 4, 15],
            RangeError,
            &[1, 64]
        ),
        case(
            "copy, depth 5",
            label::CNODE_COPY,
            &[0, 5, 0, 4, 15],
            FailedLookup,
            &[0, 3, 1, 0]
        ),
        case(
            "copy, short",
            label::CNODE_COPY,
            &[4, 4, 0, 4],
            TruncatedMessage,
            &[]
        ),
        case(
            "mint of a badged capability",
            label::CNODE_MINT,
            &[4, 4, 0, 4, 15, 9],
            IllegalOperation,
            &[]
        ),
        case(
            "move over",
            label::CNODE_MOVE,
            &[1, 4, 0, 4],
            DeleteFirst,
            &[]
        ),
        case(
            "mutate",
            label::CNODE_MUTATE,
            &[4, 4, 0, 4, 0],
            IllegalOperation,
            &[]
        ),
        case(
            "cancel on a frame",
            label::CNODE_CANCEL_BADGED_SENDS,
            &[1, 4],
            IllegalOperation,
            &[]
        ),
        case("no such operation", 99, &[0, 4], IllegalOperation, &[]),
    ]
}

fn tcb_cases(s: &Scene) -> Vec<Case> {
    let tcb = s.tcb.cptr();
    let case = |what, label, words: &[u64], caps: &[CPtr], error, details: &[u64]| -> Case {
        (
            what,
            tcb,
            label,
            words.to_vec(),
            caps.to_vec(),
            error,
            details.to_vec(),
        )
    };
    let (cnode, vspace, null) = (s.cnode.cptr(), boot::VSPACE.cptr(), s.null);
    alloc::vec![
        case(
            "priority",
            label::TCB_SET_PRIORITY,
            &[7],
            &[tcb],
            RangeError,
            &[0, 0]
        ),
        case(
            "priority, authority",
            label::TCB_SET_PRIORITY,
            &[7],
            &[cnode],
            InvalidCapability,
            &[1]
        ),
        case(
            "parameters, context",
            label::TCB_SET_SCHED_PARAMS,
            &[0, 7],
            &[boot::TCB.cptr(), boot::SCHED_CONTEXT.cptr(), null],
            IllegalOperation,
            &[]
        ),
        case(
            "parameters, handler",
            label::TCB_SET_SCHED_PARAMS,
            &[0, 7],
            &[boot::TCB.cptr(), s.context.cptr(), cnode],
            InvalidCapability,
            &[3]
        ),
        case(
            "configure, space",
            label::TCB_CONFIGURE,
            &[0, 0, 0],
            &[null, vspace, null],
            IllegalOperation,
            &[]
        ),
        case(
            "configure, buffer",
            label::TCB_CONFIGURE,
            &[0, 0, 0x1001],
            &[cnode, vspace, s.frame.cptr()],
            AlignmentError,
            &[]
        ),
        case(
            "write, short",
            label::TCB_WRITE_REGISTERS,
            &[0, 3, 1, 2],
            &[],
            TruncatedMessage,
            &[]
        ),
        case(
            "read, none",
            label::TCB_READ_REGISTERS,
            &[1, 0],
            &[],
            RangeError,
            &[1, 20]
        ),
        case(
            "copy of no thread",
            label::TCB_COPY_REGISTERS,
            &[15],
            &[cnode],
            InvalidCapability,
            &[1]
        ),
        case(
            "bind nothing",
            label::TCB_BIND_NOTIFICATION,
            &[],
            &[cnode],
            IllegalOperation,
            &[]
        ),
        case(
            "unbind",
            label::TCB_UNBIND_NOTIFICATION,
            &[],
            &[],
            IllegalOperation,
            &[]
        ),
        case(
            "flags, short",
            label::TCB_SET_FLAGS,
            &[0],
            &[],
            TruncatedMessage,
            &[]
        ),
    ]
}

fn sched_cases(fixture: &Fixture, s: &Scene) -> Vec<Case> {
    let control = fixture.control.cptr();
    let context = s.context.cptr();
    let mhz = u64::from(fixture.tsc.mhz());
    let max = u64::MAX / mhz / 8;
    let configure = |what, words: [u64; 5], error, details: &[u64]| -> Case {
        let label = label::SCHED_CONTROL_CONFIGURE_FLAGS;
        (
            what,
            control,
            label,
            words.to_vec(),
            alloc::vec![context],
            error,
            details.to_vec(),
        )
    };
    let on_context = |what, label, cap, error, details: &[u64]| -> Case {
        (
            what,
            context,
            label,
            alloc::vec![],
            alloc::vec![cap],
            error,
            details.to_vec(),
        )
    };
    alloc::vec![
        configure("budget", [19, 100, 0, 0, 0], RangeError, &[20, max]),
        configure("period", [20, max + 1, 0, 0, 0], RangeError, &[20, max]),
        configure(
            "budget above period",
            [101, 100, 0, 0, 0],
            RangeError,
            &[20, 100]
        ),
        configure("refills", [20, 100, 1, 0, 0], RangeError, &[0, 0]),
        on_context(
            "bind twice",
            label::SCHED_CONTEXT_BIND,
            s.other.cptr(),
            IllegalOperation,
            &[]
        ),
        on_context(
            "bind nothing",
            label::SCHED_CONTEXT_BIND,
            s.null,
            InvalidCapability,
            &[1]
        ),
        on_context(
            "unbind another",
            label::SCHED_CONTEXT_UNBIND_OBJECT,
            s.other.cptr(),
            IllegalOperation,
            &[]
        ),
    ]
}

fn memory_cases(s: &Scene) -> Vec<Case> {
    let map = |what, cap, words: &[u64], root, error, details: &[u64]| -> Case {
        (
            what,
            cap,
            x86::PAGE_MAP,
            words.to_vec(),
            alloc::vec![root],
            error,
            details.to_vec(),
        )
    };
    let (frame, root) = (s.frame.cptr(), boot::VSPACE.cptr());
    alloc::vec![
        map(
            "map elsewhere",
            frame,
            &[MAPPED + 4096, 3, 0],
            root,
            InvalidArgument,
            &[0]
        ),
        map(
            "map into nothing",
            frame,
            &[MAPPED, 3, 0],
            s.null,
            InvalidCapability,
            &[1]
        ),
        map(
            "map, short",
            frame,
            &[MAPPED, 0],
            root,
            TruncatedMessage,
            &[]
        ),
        (
            "invoke nothing",
            s.null,
            1,
            alloc::vec![],
            alloc::vec![],
            InvalidCapability,
            alloc::vec![0]
        ),
        (
            "configure from no untyped",
            boot::ASID_CONTROL.cptr(),
            x86::ASID_CONTROL_MAKE_POOL,
            alloc::vec![4, 4],
            alloc::vec![s.endpoint.cptr(), s.cnode.cptr()],
            InvalidCapability,
            alloc::vec![1]
        ),
    ]
}

/// The words behind the error's details keep what the caller had.
fn only_the_error(fixture: &mut Fixture) -> TestResult {
    let scene = Scene::new(fixture)?;
    let label = label::SCHED_CONTROL_CONFIGURE_FLAGS;
    let message = Message::long(label, &[1, 2, 3, 4, 5]).with_caps(&[scene.context.cptr()]);
    let answer = Endpoint::from_cptr(fixture.control.cptr()).call(message);
    ensure_eq!((answer.label(), answer.len()), (RangeError as u64, 2));
    ensure_eq!(answer.registers()[2..], [3, 4]);
    ensure_eq!(answer.registers()[0], 20);
    Ok(())
}

/// The same refused invocation by Send reports nothing, and the thread goes on.
fn send_delivers_nothing(fixture: &mut Fixture) -> TestResult {
    let scene = Scene::new(fixture)?;
    let before = scene.snapshot(fixture)?;
    let send = Endpoint::from_cptr(scene.untyped.cptr());
    send.send(Message::long(
        label::UNTYPED_RETYPE,
        &[object::ENDPOINT, 0, 0, 0, 4, 0],
    ));
    send.nb_send(Message::new(99, []));
    let after = scene.snapshot(fixture)?;
    ensure!(before == after, "{before:?} became {after:?}");
    Ok(())
}
