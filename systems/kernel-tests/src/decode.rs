//! A failed decode changes nothing: after every refused invocation of the list, what the
//! invocation could have changed is as it was. The errors are those of the first check that fails
//! (ABI page 03).

mod cases;

use alloc::vec::Vec;

use sandglass::abi::error::ErrorNumber::RangeError;
use sandglass::abi::invocation as label;
use sandglass::abi::object;
use sandglass::cap::{
    Attributes, CNode, CPtr, Capability, Endpoint, Frame, FrameSize, Notification, ObjectType,
    Rights, SchedContext, Tcb, Untyped,
};
use sandglass::context::UserContext;
use sandglass::testing::{Suite, TestResult};
use sandglass::thread::ThreadParams;
use sandglass::{ensure, ensure_eq, Message, SetupError};

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

fn unchanged(fixture: &mut Fixture) -> TestResult {
    let scene = Scene::new(fixture)?;
    let next_page = scene.next_page(fixture)?;
    for case in cases::all(fixture, &scene) {
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
