//! Maintenance of caches (03, sections 9.1 and 9.3; 07, section 9).

use sandglass_abi::vspace::aarch64::USER_TOP;
use sandglass_kernel::arch::abi::devices::{Maintenance, MAINTENANCE_BYTES};
use sandglass_testkit::call;

use super::*;

const PAGE: [(u64, Maintenance); 4] = [
    (label::PAGE_CLEAN_DATA, Maintenance::Clean),
    (label::PAGE_INVALIDATE_DATA, Maintenance::Invalidate),
    (
        label::PAGE_CLEAN_INVALIDATE_DATA,
        Maintenance::CleanInvalidate,
    ),
    (label::PAGE_UNIFY_INSTRUCTION, Maintenance::Unify),
];
const SPACE: [(u64, Maintenance); 4] = [
    (label::VSPACE_CLEAN_DATA, Maintenance::Clean),
    (label::VSPACE_INVALIDATE_DATA, Maintenance::Invalidate),
    (
        label::VSPACE_CLEAN_INVALIDATE_DATA,
        Maintenance::CleanInvalidate,
    ),
    (label::VSPACE_UNIFY_INSTRUCTION, Maintenance::Unify),
];

/// The bytes that the machine was told to do `what` to are those from `start` to `end`, each once, in order.
#[track_caller]
fn assert_done(w: &World, what: Maintenance, start: u64, end: u64) {
    let mut at = start;
    for (done, from, bytes) in w.k.machine.take_maintained() {
        assert_eq!((done, from), (what, at));
        assert!(bytes > 0 && bytes <= MAINTENANCE_BYTES);
        at += bytes;
    }
    assert_eq!(at, end);
}

/// A page at `BASE`, another one to read behind it.
fn pages(w: &mut World) -> [u64; 2] {
    map_tables(w, BASE);
    let pages = [(); 2].map(|()| w.make(types::SMALL_PAGE, 0));
    map_page(w, pages[0], BASE).expect("mapped");
    map_page_with(w, pages[1], BASE + 0x1000, 0b10, 1).expect("mapped to read");
    let _ = w.k.machine.take_maintained();
    pages
}

#[test]
fn the_part_of_a_page_that_is_named_is_maintained() {
    let mut w = World::new();
    let [page, _] = pages(&mut w);
    let at = start_of(&w, page);
    for (label, what) in PAGE {
        for (start, end) in [(0, 4096), (0, 1), (4095, 4096), (100, 700), (512, 1024)] {
            w.invoke(page, label, &[start, end], &[]).expect("done");
            assert_done(&w, what, at + start, at + end);
        }
    }
}

#[test]
fn the_part_of_an_address_space_that_is_named_is_maintained() {
    let mut w = World::new();
    let [page, readable] = pages(&mut w);
    for (label, what) in SPACE {
        for (start, end) in [(0, 4096), (4095, 4096), (100, 700)] {
            let words = [BASE + start, BASE + end];
            w.invoke(slot::VSPACE, label, &words, &[]).expect("done");
            let at = start_of(&w, page);
            assert_done(&w, what, at + start, at + end);
        }
        // Where nothing is mapped nothing is done.
        let words = [BASE + 0x5000, BASE + 0x9000];
        w.invoke(slot::VSPACE, label, &words, &[]).expect("nothing");
        assert_eq!(w.k.machine.take_maintained(), []);
        let words = [BASE + 0x1000, BASE + 0x1008];
        let done = w.invoke(slot::VSPACE, label, &words, &[]);
        if what == Maintenance::Invalidate {
            assert_eq!(error(done).0, ErrorNumber::IllegalOperation, "only to read");
        } else {
            done.expect("done");
            let at = start_of(&w, readable);
            assert_done(&w, what, at, at + 8);
        }
    }
}

#[test]
fn what_is_wrong_with_a_part_of_an_address_space_is_told() {
    let mut w = World::new();
    let _ = pages(&mut w);
    let unassigned = w.make(types::VSPACE, 0);
    let clean = |w: &mut World, space, start: u64, end: u64| {
        error(w.invoke(space, label::VSPACE_CLEAN_DATA, &[start, end], &[]))
    };
    let of_order = (ErrorNumber::InvalidArgument, vec![1]);
    assert_eq!(clean(&mut w, slot::VSPACE, BASE, BASE), of_order);
    assert_eq!(clean(&mut w, unassigned, 9, 8), of_order);
    let beyond = clean(&mut w, unassigned, 0, USER_TOP + 1);
    assert_eq!(beyond.0, ErrorNumber::IllegalOperation);
    let no_space = clean(&mut w, unassigned, 0, USER_TOP);
    assert_eq!(no_space, (ErrorNumber::InvalidCapability, vec![0]));
    let crossing = clean(&mut w, slot::VSPACE, BASE + 5, BASE + 0x1001);
    let range = vec![BASE + 5, BASE + 0xfff];
    assert_eq!(crossing, (ErrorNumber::RangeError, range));
    let short = w.invoke(slot::VSPACE, label::VSPACE_CLEAN_DATA, &[BASE], &[]);
    assert_eq!(error(short).0, ErrorNumber::TruncatedMessage);
    for wrong in [label::SMC_CALL, label::PAGE_CLEAN_DATA, label::PAGE_MAP] {
        let refused = w.invoke(slot::VSPACE, wrong, &[BASE, BASE + 8], &[]);
        assert_eq!(error(refused).0, ErrorNumber::IllegalOperation);
    }
    let root = make_space(&mut w);
    let copy = w.copy(root, ALL).expect("copied");
    w.delete(slot::ASID_POOL).expect("deleted");
    let gone = clean(&mut w, copy, 0, 8);
    assert_eq!(gone, (ErrorNumber::FailedLookup, vec![0, 1]));
    assert_eq!(w.k.machine.take_maintained(), []);
}

#[test]
fn what_is_wrong_with_a_part_of_a_page_is_told() {
    let mut w = World::new();
    let [page, readable] = pages(&mut w);
    let ask = |w: &mut World, page, label, words: &[u64]| error(w.invoke(page, label, words, &[]));
    let clean = label::PAGE_CLEAN_DATA;
    for (words, wrong) in [([8, 8], 1), ([9, 8], 1), ([4096, 4097], 0), ([0, 4097], 0)] {
        let refused = ask(&mut w, page, clean, &words);
        assert_eq!(
            refused,
            (ErrorNumber::InvalidArgument, vec![wrong]),
            "{words:?}"
        );
    }
    let short = ask(&mut w, page, clean, &[0]);
    assert_eq!(short.0, ErrorNumber::TruncatedMessage);
    let invalidate = ask(&mut w, readable, label::PAGE_INVALIDATE_DATA, &[0, 8]);
    assert_eq!(invalidate.0, ErrorNumber::IllegalOperation);
    let copy = w.copy(page, ALL).expect("copied");
    let unmapped = ask(&mut w, copy, clean, &[9, 8]);
    assert_eq!(unmapped.0, ErrorNumber::IllegalOperation);
    // Another page has taken its place.
    let other = w.make(types::SMALL_PAGE, 0);
    map_page(&mut w, other, BASE).expect("mapped");
    let replaced = ask(&mut w, page, clean, &[0, 8]);
    assert_eq!(replaced, (ErrorNumber::InvalidCapability, vec![0]));
    for label in [label::VSPACE_CLEAN_DATA, label::VSPACE_UNIFY_INSTRUCTION] {
        let refused = ask(&mut w, other, label, &[0, 8]);
        assert_eq!(refused.0, ErrorNumber::IllegalOperation);
    }
    assert_eq!(w.k.machine.take_maintained(), []);
}

/// What takes long is interrupted, and goes on where it was, if it is the same call; no byte is left out.
#[test]
fn a_long_maintenance_is_interrupted_and_goes_on() {
    let mut w = World::new();
    for _ in 0..2 {
        map_table(&mut w, BASE).expect("mapped");
    }
    let page = w.make(types::LARGE_PAGE, 0);
    map_page(&mut w, page, BASE).expect("mapped");
    let _ = w.k.machine.take_maintained();
    let at = start_of(&w, page);
    let (start, end) = (100, 1 << 20);
    let clean = label::PAGE_CLEAN_DATA;
    let caller = w.running().expect("the root task");
    w.k.machine.set_interrupt_pending(true);
    w.call_once(page, clean, &[start, end], &[]);
    assert!(call::is_preempted(&w.k, caller));
    let done = w.k.machine.take_maintained();
    let bytes: u64 = done.iter().map(|(.., bytes)| bytes).sum();
    assert!(
        bytes <= 8 * MAINTENANCE_BYTES,
        "{bytes} bytes without a look"
    );
    call::step(&w.k, caller);
    w.k.machine.set_interrupt_pending(false);
    w.event(sandglass_kernel::event::Event::Syscall);
    assert!(!call::is_preempted(&w.k, caller));
    assert_done(&w, Maintenance::Clean, at + start + bytes, at + end);
    // Another call begins at its beginning.
    w.k.machine.set_interrupt_pending(true);
    w.call_once(page, clean, &[start, end], &[]);
    let _ = w.k.machine.take_maintained();
    w.k.machine.set_interrupt_pending(false);
    w.invoke(page, clean, &[start, end - 1], &[]).expect("done");
    assert_done(&w, Maintenance::Clean, at + start, at + end - 1);
}

/// The root task's image was written as data, and is executed.
#[test]
fn the_image_of_the_root_task_is_unified_before_it_runs() {
    let w = World::new();
    let done = w.k.machine.take_maintained();
    let bytes: u64 = done.iter().map(|(.., bytes)| bytes).sum();
    assert_eq!(bytes, 4096, "the one page of the image");
    assert!(done.iter().all(|&(what, ..)| what == Maintenance::Unify));
}
