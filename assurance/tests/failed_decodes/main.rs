//! Failed decodes change nothing (docs/src/decisions/check-then-commit.md): for every invocation and
//! every check that it can fail, the exact error, and the state before and after is identical but for time accounting
//! and the caller's result.
//!
//! The state is compared twice: as the specification sees it (every capability, queue, register, word
//! of user memory), and as the raw bytes of the machine's memory outside of the caller's TCB. Every
//! case is made by Call, which is answered, by Send and NBSend, which are told nothing, and by
//! NBSendWait, which goes on to receive.

mod scene;
mod trial;

use std::collections::BTreeSet;

use sandglass_abi::boot::slot;
use sandglass_abi::error::LookupFailureType;
use sandglass_abi::invocation as label;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::mem::{self, Kind, Ref};
use sandglass_kernel::object::tcb::{Tcb, TcbSlot};
use sandglass_kernel::CORES;
use sandglass_refusals::case::{self, call, lookup, Case};
use sandglass_refusals::catalogue::{catalogue, Check, INFALLIBLE, OUT_OF_REACH};
use sandglass_refusals::isa::{self as refusals, LAST_LABEL, RESERVED_LABELS};
use sandglass_refusals::scene::{Scene, ALL};
use sandglass_refusals::{cases, pairs};
use sandglass_testkit::isa::{self, ASIDS_PER_POOL, ASID_POOLS};
use sandglass_testkit::world::World;
use trial::Trial;

/// A system whose identifier pools are all in use, one of them full, and the cases about it.
fn without_identifiers() -> (World, [Case; 2]) {
    let mut w = World::with_memory(16 << 20);
    w.path = 0;
    let mut pool = slot::ASID_POOL;
    for _ in 1..ASID_POOLS {
        let memory = w.make(types::UNTYPED, 12);
        pool = w.fresh_slot();
        let make = isa::label::ASID_CONTROL_MAKE_POOL;
        w.invoke(
            slot::ASID_CONTROL,
            make,
            &[pool, 64],
            &[memory, slot::CNODE],
        )
        .expect("a pool");
    }
    for _ in 0..ASIDS_PER_POOL {
        let space = w.make(isa::types::ROOT_TABLE, 0);
        w.invoke(pool, isa::label::ASID_POOL_ASSIGN, &[], &[space])
            .expect("an identifier");
    }
    let space = w.make(isa::types::ROOT_TABLE, 0);
    let memory = w.make(types::UNTYPED, 12);
    let empty = w.fresh_slot();
    let cases = cases::spaces::without_identifiers(memory, pool, space, empty);
    (w, cases)
}

#[test]
fn every_check_that_fails_changes_nothing() {
    let (mut w, s) = scene::make();
    let cases = cases::of_checks(&s);
    let mut trial = Trial::new(&mut w).with_signals(s.signals);
    for case in &cases {
        trial.run(case);
        trial.settle();
    }
    println!("{} cases", cases.len());
}

/// The checks are made in the order of the ABI's pages.
#[test]
fn of_two_checks_that_fail_the_first_is_told() {
    let (mut w, s) = scene::make();
    let pairs = pairs::pairs(&catalogue(CORES > 1), &cases::of_checks(&s));
    let mut trial = Trial::new(&mut w);
    for several in pairs.chunks(16) {
        for case in several {
            trial.call(case);
        }
        trial.settle();
    }
    println!("{} pairs", pairs.len());
    assert!(pairs.len() > 1000, "only {} pairs", pairs.len());
}

#[test]
fn labels_that_an_object_does_not_understand_change_nothing() {
    let (mut w, s) = scene::make();
    let cases = cases::kinds::cases(&s);
    let mut trial = Trial::new(&mut w);
    for several in cases.chunks(16) {
        for case in several {
            trial.call(case);
        }
        trial.settle();
    }
    println!("{} cases", cases.len());
}

#[test]
fn a_system_without_identifiers_refuses_them_and_changes_nothing() {
    let (mut w, cases) = without_identifiers();
    let mut trial = Trial::new(&mut w);
    for case in &cases {
        trial.run(case);
        trial.settle();
    }
}

/// The catalogue is what the ABI's pages say; every check of it has a case, and every case is of
/// one.
#[test]
fn every_check_of_every_invocation_has_a_case() {
    let (_, s) = scene::make();
    let mut cases = cases::of_checks(&s);
    cases.extend(without_identifiers().1);
    let checks = |cases: Vec<Case>| -> BTreeSet<Check> {
        let check = |case: Case| Check {
            label: case.call.label,
            check: case.check,
            error: case.refusal.error as u64,
        };
        cases.into_iter().map(check).collect()
    };
    let tried = checks(cases);
    let known: BTreeSet<_> = catalogue(CORES > 1).into_iter().collect();
    let untried: Vec<_> = known.difference(&tried).collect();
    let unknown: Vec<_> = tried.difference(&known).collect();
    assert!(untried.is_empty(), "no case for {untried:#?}");
    assert!(unknown.is_empty(), "not in the catalogue: {unknown:#?}");
    let labels: BTreeSet<u64> = known.iter().map(|check| check.label).collect();
    let extensions = label::extension::ALL.iter().map(|&(label, _)| label);
    for label in (label::UNTYPED_RETYPE..=LAST_LABEL).chain(extensions) {
        let is_reserved = RESERVED_LABELS.contains(&label);
        assert_ne!(
            labels.contains(&label),
            INFALLIBLE.contains(&label) || is_reserved,
            "label {label}"
        );
    }
    for (label, check, reason) in OUT_OF_REACH.into_iter().chain(refusals::OUT_OF_REACH) {
        let tried = known
            .iter()
            .any(|row| row.label == label && row.check == check);
        assert!(!tried, "{check} is out of reach: {reason}");
    }
    println!("{} checks of {} labels", known.len(), labels.len());
}

/// Without a buffer to write to, the fifth word of an error is not told.
#[test]
fn a_caller_without_a_buffer_is_told_four_words() {
    let (mut w, s) = scene::make();
    let set = label::TCB_SET_IPC_BUFFER;
    w.invoke(slot::TCB, set, &[0], &[slot::IPC_BUFFER])
        .expect("no buffer");
    let delete = call(label::CNODE_DELETE, s.guarded_node, &[1, 7], &[]);
    let mut refusal = lookup(false, LookupFailureType::GuardMismatch, &[7, 5, 3]);
    refusal.details.truncate(4);
    let words_of_mint = [s.empty, 64, s.endpoint, 64, 15, 0];
    let mut trial = Trial::new(&mut w);
    trial.run(&delete.fails("destination: guard", refusal));
    // Nor are arguments beyond the fourth taken, nor extra capabilities.
    for words in [4, 5, 6] {
        let words = &words_of_mint[..words];
        let copy = call(label::CNODE_COPY, slot::CNODE, words, &[slot::CNODE]);
        trial.run(&copy.fails("too few words", case::TRUNCATED));
    }
    trial.settle();
}

/// The caller begins to delete or to revoke, by `label`, what is in `target`, and does not come to
/// the end.
fn begin(w: &mut World, label: u64, target: u64) {
    w.k.machine.set_interrupt_pending(true);
    let info = MessageInfo::new(label, 0, 0, 2);
    w.syscall(Syscall::Call, slot::CNODE, 0, info, &[target, 64]);
    w.k.machine.set_interrupt_pending(false);
}

/// Fills a CNode of 256 slots, so that its deletion can be preempted.
fn fill(w: &mut World, s: &Scene, node: u64) {
    for i in 0..256 {
        let words = [i, 8, s.endpoint, 64, ALL];
        w.invoke(node, label::CNODE_COPY, &words, &[slot::CNODE])
            .expect("a copy");
    }
}

/// An object in deletion, which the specification has no word for: the bytes are the same.
#[test]
fn what_is_being_deleted_is_invoked_in_vain() {
    let (mut w, s) = scene::make();
    let node = w.make(types::CNODE, 8);
    fill(&mut w, &s, node);
    begin(&mut w, label::CNODE_DELETE, node);
    assert!(w.cap(node).is(Kind::Zombie), "not preempted");
    let empty = s.empty;
    let mut trial = Trial::unfinished(&mut w);
    for label in [label::CNODE_DELETE, label::TCB_SUSPEND] {
        let call = call(label, node, &[1, 8], &[]);
        trial.run(&call.fails("in deletion", case::capability(0)));
    }
    for label in [label::CNODE_COPY, label::CNODE_MINT] {
        let words = [empty, 64, node, 64, ALL, 0];
        let copy = call(label, slot::CNODE, &words, &[slot::CNODE]);
        trial.run(&copy.fails("derive: in deletion", case::ILLEGAL));
    }
}

/// A thread whose capability space is being deleted gets no other before that is done.
#[test]
fn a_thread_whose_space_is_being_deleted_gets_no_other() {
    let (mut w, s) = scene::make();
    let memory = w.make(types::UNTYPED, 14);
    let node = w.fresh_slot();
    w.retype(memory, types::CNODE, 8, node, 1).expect("a CNode");
    fill(&mut w, &s, node);
    let caps = [node, s.space, s.endpoint];
    w.invoke(s.thread, label::TCB_CONFIGURE, &[0; 3], &caps)
        .expect("a capability space");
    w.delete(node).expect("one capability less");
    begin(&mut w, label::CNODE_REVOKE, memory);
    let thread: Ref<Tcb> = w.cap(s.thread).word().get().expect("a thread");
    let cspace = mem::objects::tcb_slot(thread, TcbSlot::CSpace)
        .at(&w.k)
        .cap();
    assert!(cspace.is(Kind::Zombie), "not preempted");
    let (thread, space, endpoint) = (s.thread, s.space, s.endpoint);
    let mut trial = Trial::unfinished(&mut w);
    for (label, words, caps) in [
        (label::TCB_CONFIGURE, 3, [slot::CNODE, space, endpoint]),
        (label::TCB_SET_SPACE, 2, [endpoint, slot::CNODE, space]),
    ] {
        let call = call(label, thread, &[0; 3][..words], &caps);
        trial.run(&call.fails("its space would be deleted", case::ILLEGAL));
    }
}
