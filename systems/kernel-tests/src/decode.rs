//! Failed decodes change nothing: the catalogue's cases (`assurance/refusals`), by a thread of the root task.
//!
//! On the host every byte of the kernel's memory is compared after every case. Here it is what a root task can see,
//! after every few of them: which slots are empty, registers, flags, consumed time, signals, and at the end what is left
//! of memory.

mod scene;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use sandglass::abi::invocation::UNTYPED_RETYPE;
use sandglass::abi::object;
use sandglass::arch::label::PAGE_MAP;
use sandglass::cap::{CNode, Endpoint, Notification, SchedContext, Tcb};
use sandglass::context::UserContext;
use sandglass::testing::{shared, Suite, TestResult};
use sandglass::thread::ThreadParams;
use sandglass::{boot, ensure, ensure_eq, SetupError};
use sandglass_refusals::case::Case;
use sandglass_refusals::catalogue::catalogue;
use sandglass_refusals::scene::{Scene, RADIX};
use sandglass_refusals::{cases, pairs};

use crate::fixture::{Fixture, FULL};
use scene::Made;

/// Of the thread that makes the invocations.
const PRIORITY: u8 = 100;
/// Cases between two looks at the scene.
const CHUNK: usize = 16;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "decode",
        &[
            ("every_check_that_fails_changes_nothing", |f| {
                refused(f, Calls::All, cases::of_checks)
            }),
            ("of_two_checks_that_fail_the_first_is_told", |f| {
                refused(f, Calls::CallOnly, |s| {
                    pairs::pairs(&catalogue(s.is_for_several_cores), &cases::of_checks(s))
                })
            }),
            (
                "labels_that_an_object_does_not_understand_change_nothing",
                |f| refused(f, Calls::CallOnly, cases::kinds::cases),
            ),
        ],
    );
}

/// By which system calls a case is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    /// By Send, NBSend and Call.
    All,
    CallOnly,
}

/// The cases that `choose` takes are refused, and nothing has changed after them.
fn refused(fixture: &mut Fixture, calls: Calls, choose: fn(&Scene) -> Vec<Case>) -> TestResult {
    let caller = Caller::new(fixture)?;
    let made = scene::make(fixture, caller.tcb, caller.context)?;
    let cases = Box::leak(choose(&made.scene).into_boxed_slice());
    caller.start(cases, calls)?;
    let before = Snapshot::take(fixture, &made)?;
    for chunk in cases.chunks(CHUNK) {
        caller.go_on(fixture)?;
        let after = Snapshot::take(fixture, &made)?;
        let names = || chunk.iter().map(name).collect::<Vec<_>>().join(", ");
        ensure!(
            before == after,
            "one of [{}]: {before:x?} became {after:x?}",
            names()
        );
    }
    check_memory(fixture, &made.scene)?;
    caller.tcb.suspend()?;
    made.clear()
}

fn name(case: &Case) -> String {
    format!("label {}: {}", case.call.label, case.check)
}

/// The thread that makes the refused invocations.
struct Caller {
    tcb: Tcb,
    context: SchedContext,
    /// Has it make the next cases.
    go: Notification,
    /// The cases that it is to make, once they are known.
    work: &'static AtomicPtr<Work>,
    /// What it found wrong.
    found: &'static AtomicPtr<String>,
}

struct Work {
    cases: &'static [Case],
    calls: Calls,
}

impl Caller {
    fn new(fixture: &mut Fixture) -> Result<Self, SetupError> {
        let (go, done) = (fixture.process.resources.notification()?, fixture.done);
        let (work, found): (&AtomicPtr<Work>, &AtomicPtr<String>) = (shared(), shared());
        let context = fixture.context(FULL)?;
        let params = ThreadParams {
            stack_bytes: 0x8000,
            ..ThreadParams::new(PRIORITY, context)
        };
        let tcb = fixture.prepare(params, move || {
            go.wait();
            // SAFETY: set, before the first signal, to what lives for good and nobody changes.
            let work = unsafe { &*work.load(Relaxed) };
            for chunk in work.cases.chunks(CHUNK) {
                for case in chunk {
                    if let Err(what) = make(case, work.calls) {
                        let what = format!("{}: {what}\n{:?}", name(case), case.call);
                        found.store(Box::into_raw(Box::new(what)), Relaxed);
                    }
                }
                done.signal();
                go.wait();
            }
        })?;
        Ok(Self {
            tcb,
            context,
            go,
            work,
            found,
        })
    }

    /// It will make `cases`.
    fn start(&self, cases: &'static [Case], calls: Calls) -> TestResult {
        let work = Box::new(Work { cases, calls });
        self.work.store(Box::into_raw(work), Relaxed);
        Ok(self.tcb.resume()?)
    }

    /// It makes the next few, each of which is refused as it is to be.
    fn go_on(&self, fixture: &Fixture) -> TestResult {
        self.go.signal();
        fixture.done.wait();
        let found = self.found.swap(ptr::null_mut(), Relaxed);
        if found.is_null() {
            return Ok(());
        }
        // SAFETY: from `Box::into_raw`, and taken once.
        Err(unsafe { *Box::from_raw(found) }.into())
    }
}

/// Makes the invocation, and compares what its caller is told.
fn make(case: &Case, calls: Calls) -> Result<(), String> {
    let arguments = case.call.arguments();
    let (cap, words, caps) = (arguments.cap, &arguments.words, &arguments.caps);
    if calls == Calls::All {
        Endpoint::at(cap).send(scene::message(case.call.label, words, caps));
        Endpoint::at(cap).nb_send(scene::message(case.call.label, words, caps));
    }
    let answer = scene::call(cap, case.call.label, words, caps);
    let mut details = alloc::vec![0; answer.len()];
    answer.copy_words(&mut details);
    let expected = (case.refusal.error as u64, &case.refusal.details);
    if (answer.label(), &details) != expected {
        return Err(format!(
            "error {} with {details:?} instead of {expected:?}",
            answer.label()
        ));
    }
    Ok(())
}

/// What can be seen of a scene.
#[derive(PartialEq, Debug)]
struct Snapshot {
    empty: Vec<bool>,
    registers: [UserContext; 2],
    flags: [u64; 2],
    consumed_us: u64,
    signals: [u64; 2],
}

impl Snapshot {
    fn take(fixture: &mut Fixture, made: &Made) -> Result<Self, SetupError> {
        let s = &made.scene;
        let root = made.slots.iter().map(|&slot| boot::CNODE.slot(slot));
        let node = (0..1 << RADIX).map(|i| CNode::at(s.node).slot_at(i, RADIX as u8));
        let empty: Result<_, _> = root
            .chain(node)
            .map(|slot| fixture.is_empty(slot))
            .collect();
        let threads = [Tcb::at(s.thread), Tcb::at(s.served.tcb)];
        let notifications = [s.notification, s.funded_notification];
        Ok(Self {
            empty: empty?,
            registers: [
                threads[0].read_registers(false)?,
                threads[1].read_registers(false)?,
            ],
            flags: [threads[0].set_flags(0, 0)?, threads[1].set_flags(0, 0)?],
            consumed_us: SchedContext::at(s.served.context).consumed_us()?,
            signals: notifications.map(|it| Notification::at(it).poll()),
        })
    }
}

/// All memory that the scene has left is there, to the last object; and what is mapped can be mapped again at its place
/// only.
fn check_memory(fixture: &mut Fixture, s: &Scene) -> TestResult {
    let page = [0x1000, 3, 0];
    ensure_eq!(scene::call(s.page, PAGE_MAP, &page, &[s.space]).label(), 0);
    // Notifications of 64 bytes: (memory, how many there is room for).
    for (memory, room) in [(s.parent, (4096 - 64) / 64), (s.memory, 256 / 64)] {
        let first = fixture.process.resources.allocate_slots(room + 1)?.index();
        let retype = |slot, count| {
            let words = [object::NOTIFICATION, 0, 0, 0, slot, count];
            let caps = [boot::CNODE.address()];
            scene::call(memory, UNTYPED_RETYPE, &words, &caps).label()
        };
        ensure!(
            retype(first, room) == 0,
            "no room for {room} in slot {memory}"
        );
        ensure!(retype(first + room, 1) != 0, "more room in slot {memory}");
    }
    Ok(())
}
