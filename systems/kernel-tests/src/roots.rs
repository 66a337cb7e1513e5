//! The root table of an address space, made where that of another one was, of which the last to have run on a core was a thread
//! of the other.

use sandglass::boot;
use sandglass::cap::{
    Attributes, Frame, FrameSize, ObjectType, Pml4, Rights, SchedArguments, Slot, Untyped,
};
use sandglass::context::UserContext;
use sandglass::ensure;
use sandglass::fault::Fault;
use sandglass::testing::{Failure, Suite, TestResult};
use sandglass::vspace::VSpace;

use crate::fixture::{Fixture, FULL};

/// Address spaces, one after the other at the same place. `tools/tests/speculation.rs` knows the number.
const SPACES: usize = 4;

const PRIORITY: u8 = 100;
/// Where each has its one page, of zeroes.
const CODE: u64 = 0x40_0000;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "roots",
        &[(
            "in_place_of_one_that_is_gone_there_can_be_another",
            one_after_the_other,
        )],
    );
}

/// On the last core nobody else runs meanwhile, if it is not the only one.
fn one_after_the_other(fixture: &mut Fixture) -> TestResult {
    let memory: Untyped = fixture.process.resources.untyped(12)?;
    let code = fixture.process.resources.frame(FrameSize::Small)?;
    let place = fixture.process.resources.allocate_slot()?;
    for _ in 0..SPACES {
        let root = make(memory, place)?;
        execute_in(fixture, root, code)?;
        code.unmap()?;
        fixture.process.resources.slot_of(memory).revoke()?;
    }
    Ok(())
}

fn make(memory: Untyped, place: Slot) -> Result<Pml4, Failure> {
    memory.retype(ObjectType::Pml4, place, 1)?;
    let root = place.capability();
    boot::ASID_POOL.assign(root)?;
    Ok(root)
}

/// Lets a thread execute what is in `code` there. It is no instruction that gets far.
fn execute_in(fixture: &mut Fixture, root: Pml4, code: Frame) -> TestResult {
    let core = fixture.boot.cores() - 1;
    let control = fixture.boot.sched_control(core).ok_or("no such core")?;
    let context = fixture.context_on(control, FULL)?;
    let resources = &mut fixture.process.resources;
    let (handler, reply, tcb) = (resources.endpoint()?, resources.reply()?, resources.tcb()?);
    let (rights, attributes) = (Rights::READ_WRITE, Attributes::WriteBack);
    VSpace::from_root(root).map(resources, code, CODE, rights, attributes)?;
    let process = &fixture.process;
    tcb.configure(process.cspace(), process.cspace_guard(), root, None)?;
    let arguments = SchedArguments {
        mcp: 0,
        priority: PRIORITY,
        sched_context: Some(context),
        fault_handler: Some(handler),
    };
    tcb.set_sched_params(boot::TCB, arguments)?;
    tcb.write_registers(&UserContext::start(CODE, 0, 0, 0), true)?;
    let fault = Fault::decode(&handler.recv(reply).message).ok_or("no fault")?;
    ensure!(
        matches!(
            fault,
            Fault::Exception { ip: CODE, .. } | Fault::Memory { ip: CODE, .. }
        ),
        "{fault:?}"
    );
    Ok(tcb.suspend()?)
}
