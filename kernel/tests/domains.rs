//! Domains of a kernel that has one (04, section 11).

use sandglass_abi::boot::slot;
use sandglass_abi::error::ErrorNumber;
use sandglass_abi::invocation as label;
use sandglass_abi::object as types;
use sandglass_abi::sched::domain::MAX_DURATION;
use sandglass_testkit::world::{Refused, World};

fn refused(error: ErrorNumber, details: &[u64]) -> Result<Vec<u64>, Refused> {
    Err(Refused {
        error,
        details: details.to_vec(),
    })
}

#[test]
fn threads_are_in_the_one_domain() {
    let mut w = World::new();
    let thread = w.make_thread(50, 8);
    assert_eq!(thread.handle.at(&w.k).domain(), 0);
    let set = |w: &mut World, domain, caps: &[u64]| {
        w.invoke(slot::DOMAIN, label::DOMAIN_SET, &[domain], caps)
    };
    assert_eq!(set(&mut w, 0, &[thread.tcb]), Ok(vec![]));
    let argument = |i| refused(ErrorNumber::InvalidArgument, &[i]);
    assert_eq!(set(&mut w, 1, &[thread.tcb]), argument(0));
    let endpoint = w.make(types::ENDPOINT, 0);
    assert_eq!(set(&mut w, 0, &[endpoint]), argument(1));
    let short = refused(ErrorNumber::TruncatedMessage, &[]);
    assert_eq!(set(&mut w, 0, &[]), short);
}

#[test]
fn a_ready_thread_whose_domain_is_set_comes_first_among_its_equals() {
    let mut w = World::new();
    let first = w.start_thread(50, 1_000_000, 1_000_000);
    w.start_thread(50, 1_000_000, 1_000_000);
    w.invoke(slot::DOMAIN, label::DOMAIN_SET, &[0], &[first.tcb])
        .expect("its domain");
    w.sleep();
    assert_eq!(w.running(), Some(first.handle));
}

#[test]
fn the_schedule_has_one_entry_that_can_be_set() {
    let mut w = World::new();
    let configure = |w: &mut World, words: [u64; 3]| {
        w.invoke(slot::DOMAIN, label::DOMAIN_SCHEDULE_CONFIGURE, &words, &[])
    };
    let range = refused(ErrorNumber::RangeError, &[0, 0]);
    assert_eq!(configure(&mut w, [1, 0, 5]), range, "the end");
    assert_eq!(configure(&mut w, [0, 1, 5]), range, "another domain");
    let long = refused(ErrorNumber::InvalidArgument, &[2]);
    assert_eq!(configure(&mut w, [0, 0, MAX_DURATION + 1]), long);
    assert_eq!(configure(&mut w, [0, 0, 0]), long, "the start is no end");
    assert_eq!(configure(&mut w, [0, 0, MAX_DURATION]), Ok(vec![]));
    assert_eq!(configure(&mut w, [0, 0, 1]), Ok(vec![]));
    let entry = w.k.domains.entry(0).expect("an entry");
    assert_eq!((entry.domain, entry.duration), (0, 1));
}

#[test]
fn the_schedule_starts_at_an_entry_that_is_no_end() {
    let mut w = World::new();
    let start = |w: &mut World, index| {
        w.invoke(
            slot::DOMAIN,
            label::DOMAIN_SCHEDULE_SET_START,
            &[index],
            &[],
        )
    };
    assert_eq!(start(&mut w, 0), Ok(vec![]));
    let end = refused(ErrorNumber::InvalidArgument, &[0]);
    assert_eq!(start(&mut w, 1), end);
    let range = refused(ErrorNumber::RangeError, &[0, 1]);
    for index in [2, u64::MAX] {
        assert_eq!(start(&mut w, index), range, "{index}");
    }
    assert_eq!(w.k.domains.start(), 0);
}
