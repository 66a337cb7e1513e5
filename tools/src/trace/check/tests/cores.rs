//! What is late on one of several cores, and what is wrong there.

use sandglass_abi::trace::Source;

use super::super::super::example::URGENT_TIME;
use super::*;

/// A way to tamper with records.
type Tamper = fn(&mut Vec<Record>);

/// The example on core 0 of a machine with two, tampered with; the other core is busy all the time, or
/// idle.
fn on_two(is_busy: bool, tamper: impl FnOnce(&mut Vec<Record>)) -> Verdict {
    const OTHER: u64 = 0x9000;
    let mut records = example::records();
    tamper(&mut records);
    let of_other = |event| Record {
        core: 1,
        by: 1,
        event,
        ..records[0]
    };
    let (thread, context) = if is_busy {
        (OTHER, OTHER + 0x100)
    } else {
        (0, 0)
    };
    let start = of_other(records[0].event);
    let switch = of_other(Event::Switch {
        thread,
        context,
        priority: 7,
    });
    records.splice(1..1, [start, switch]);
    verdict(records)
}

fn is_end_of_third(event: &Event) -> bool {
    matches!(
        event,
        Event::Mark {
            mark: Mark::End { job: 2 },
            ..
        }
    )
}

/// The clock of a core continues while the emulator executes another one: so lateness is found if
/// the others were idle, and may be due to that if they were busy.
#[test]
fn what_is_late_on_several_cores_is_found_if_the_others_were_idle() {
    let late_job = |records: &mut Vec<Record>| {
        let at = nth(records, 0, is_end_of_third);
        delay(records, at, 7_720);
    };
    let late_timer = |records: &mut Vec<Record>| {
        let at = charge_of_client(records, 5);
        delay(records, at, 540);
    };
    let cases: [(Tamper, &str); 3] = [
        (late_job, "after its deadline"),
        (late_timer, "is over budget"),
        (pass_over, "`urgent` of priority 250 is ready"),
    ];
    for (tamper, what) in cases {
        let verdict = on_two(false, tamper);
        assert!(verdict.several_cores);
        assert!(says(&verdict, what), "{what}: {:?}", verdict.violations);
        let verdict = on_two(true, tamper);
        assert!(!says(&verdict, what), "{what}: {:?}", verdict.violations);
    }
}

/// What is no matter of durations is found whatever the other cores do.
#[test]
fn what_is_wrong_on_several_cores_is_found() {
    let cases: [(Tamper, &str); 3] = [
        (lose_return, "never got it back"),
        (
            |records| choose_wrongly(records),
            "`urgent` of priority 250 is ready",
        ),
        (
            |records| hand_out_too_much(records),
            "is given more than its budget",
        ),
    ];
    for is_busy in [false, true] {
        for (tamper, what) in cases {
            let verdict = on_two(is_busy, tamper);
            assert!(says(&verdict, what), "{what}: {:?}", verdict.violations);
        }
        assert_eq!(on_two(is_busy, |_| {}).violations, []);
    }
}

/// On core 0, the urgent thread is stopped by the other core for so many µs, while the server is ready.
fn stop_urgent(records: &mut Vec<Record>, us: u64) {
    let is_end = |event: &Event| matches!(event, Event::Block { thread: URGENT, .. });
    let at = nth(records, 0, is_end);
    let switch = |thread, context, priority, time| Record {
        time,
        event: Event::Switch {
            thread,
            context,
            priority,
        },
        ..records[at]
    };
    let begin = records[at].time - 200_000;
    let stops = switch(0, 0, 0, begin);
    let goes_on = switch(URGENT, URGENT_TIME, 250, begin + us * 1000);
    records.splice(at..at, [stops, goes_on]);
}

/// Whoever waited below it is not late at once, but when the core idles for long.
#[test]
fn a_core_whose_thread_is_stopped_for_a_moment_may_idle() {
    let what = "but no thread runs";
    let verdict = on_two(false, |records| stop_urgent(records, 5));
    assert!(!says(&verdict, what), "{:?}", verdict.violations);
    let verdict = on_two(false, |records| stop_urgent(records, 50));
    assert!(says(&verdict, what), "{:?}", verdict.violations);
}

/// When a core is told to look.
#[derive(Clone, Copy)]
enum Told {
    AtOnce,
    JustBefore,
}

/// The urgent thread is made ready by another core and passed over until its own enters the kernel. A core that is named is told
/// to look just before, or a µs after the other one has made it ready.
fn make_ready_elsewhere(records: &mut Vec<Record>, told: Option<(u8, Told)>) {
    pass_over(records);
    let is_wake = |event: &Event| matches!(event, Event::Wake { thread: URGENT, .. });
    let at = nth(records, 0, is_wake);
    records[at].by = 1;
    let later = |record: &Record| record.time > records[at].time;
    let next = at + records[at..].iter().position(later).expect("more follows");
    if let Some((core, when)) = told {
        let looks = Record {
            core,
            by: core,
            time: match when {
                Told::AtOnce => records[at].time + 1_000,
                Told::JustBefore => records[next].time,
            },
            event: Event::Interrupt {
                source: Source::Core,
                number: 0,
            },
            ..records[next]
        };
        records.insert(next, looks);
    }
}

/// A core that makes a thread ready elsewhere may stand still before it says so. That is over when a third one is in the
/// kernel, or it is there again, or the other is told, or comes there by itself.
#[test]
fn a_core_that_made_a_thread_ready_elsewhere_may_have_stood_still_until_it_has_left_the_kernel() {
    let what = "`urgent` of priority 250 is ready";
    for told in [
        None,
        Some((0, Told::JustBefore)),
        Some((2, Told::JustBefore)),
    ] {
        let verdict = on_two(false, |records| make_ready_elsewhere(records, told));
        assert!(!says(&verdict, what), "{:?}", verdict.violations);
    }
    let verdict = on_two(false, |records| {
        make_ready_elsewhere(records, Some((1, Told::AtOnce)))
    });
    assert!(says(&verdict, what), "{:?}", verdict.violations);
}
