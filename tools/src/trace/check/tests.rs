//! A good trace is accepted, and one that was tampered with, in each of the ways that are checked, is
//! rejected with a message that says which record, when, and who.

mod cores;

use super::super::example::{self, CLIENT, CLIENT_TIME, SERVER, URGENT};
use super::super::record::{Event, Mark, Record};
use super::*;

fn verdict(records: Vec<Record>) -> Verdict {
    check(&History::of_records(records, 0).unwrap())
}

/// The example after `tamper` is rejected; one of the violations mentions all of `said`.
#[track_caller]
fn assert_rejected(tamper: impl FnOnce(&mut Vec<Record>), said: &[&str]) {
    let mut records = example::records();
    tamper(&mut records);
    let violations = verdict(records).violations;
    let shown: Vec<String> = violations.iter().map(Violation::to_string).collect();
    let says = |text: &String| {
        let mut parts = said.iter().chain(&["record #", "µs"]);
        parts.all(|part| text.contains(part))
    };
    assert!(shown.iter().any(says), "{said:?} is not in {shown:?}");
}

/// Whether something found says `what`.
fn says(verdict: &Verdict, what: &str) -> bool {
    let mut found = verdict.violations.iter();
    found.any(|found| found.what.contains(what))
}

/// Position of the `n`-th record, from 0, of which `is` holds.
fn nth(records: &[Record], n: usize, is: impl Fn(&Event) -> bool) -> usize {
    let mut found = records.iter().enumerate().filter(|(_, r)| is(&r.event));
    found.nth(n).expect("a record").0
}

/// Lets everything from record `from` on happen `us` later; what was consumed meanwhile too.
fn delay(records: &mut [Record], from: usize, us: u64) {
    for record in &mut records[from..] {
        record.time += us * 1000;
    }
    let charge = records[from..]
        .iter_mut()
        .find_map(|record| match &mut record.event {
            Event::Charge {
                consumed, charged, ..
            } => Some((consumed, charged)),
            _ => None,
        });
    if let Some((consumed, charged)) = charge {
        *consumed += us * 1000;
        *charged += us * 1000;
    }
}

/// The urgent thread is passed over when it wakes.
fn pass_over(records: &mut Vec<Record>) {
    let at = nth(records, 0, |event| {
        matches!(event, Event::Switch { thread: URGENT, .. })
    });
    records.drain(at..at + 3);
}

/// The client is taken instead of the urgent thread.
fn choose_wrongly(records: &mut [Record]) {
    let at = nth(records, 1, |event| {
        matches!(event, Event::Switch { thread: URGENT, .. })
    });
    if let Event::Switch {
        thread, priority, ..
    } = &mut records[at].event
    {
        (*thread, *priority) = (CLIENT, 100);
    }
}

/// What the client has used up is handed out again before its time.
fn hand_out_too_much(records: &mut [Record]) {
    let is_pays = |event: &Event| {
        matches!(
            event,
            Event::Pays {
                context: CLIENT_TIME,
                ..
            }
        )
    };
    let at = nth(records, 3, is_pays);
    if let Event::Pays { amount, .. } = &mut records[at].event {
        *amount += 800_000;
    }
}

/// A return of the client's context is missing.
fn lose_return(records: &mut Vec<Record>) {
    let at = nth(records, 1, |event| matches!(event, Event::Return { .. }));
    records.remove(at);
}

/// A charge of the client's context: the `n`-th, from 0.
fn charge_of_client(records: &[Record], n: usize) -> usize {
    let is_charge = |event: &Event| {
        matches!(
            event,
            Event::Charge {
                context: CLIENT_TIME,
                ..
            }
        )
    };
    nth(records, n, is_charge)
}

#[test]
fn a_good_trace_is_accepted() {
    let verdict = verdict(example::records());
    assert_eq!(verdict.violations, []);
    let looked = verdict.looked;
    assert_eq!((looked.jobs, looked.donations), (5, 5));
    assert!(looked.windows >= 15 && looked.decisions >= 25, "{looked:?}");
}

#[test]
fn a_context_over_budget_is_found() {
    // 1.5 of 2 ms are used in each period: half a millisecond and the kernel path are left.
    assert_rejected(
        |records| {
            let at = charge_of_client(records, 4);
            delay(records, at, 511);
        },
        &[
            "the context of `client` is over budget",
            "2000.000 µs of budget",
        ],
    );
    let mut records = example::records();
    let at = charge_of_client(&records, 4);
    delay(&mut records, at, 509);
    let budgets = |found: &&Violation| found.what.contains("is over budget");
    let verdict = verdict(records);
    assert_eq!(verdict.violations.iter().find(budgets), None);
}

#[test]
fn a_refill_that_is_too_large_is_found() {
    let said = ["the context of `client` is given more than its budget"];
    assert_rejected(|records| hand_out_too_much(records), &said);
}

/// A sporadic context that is kept from running after it woke may use so much more around its next
/// release, and not more; another one may not.
#[test]
fn a_sporadic_context_may_be_late() {
    let late = |sporadic: bool, used_late: u64, wakes_early: u64| {
        let mut records = example::records();
        for record in &mut records {
            if let Event::Configure {
                context: CLIENT_TIME,
                sporadic: of,
                ..
            } = &mut record.event
            {
                *of = sporadic;
            }
        }
        let charge = charge_of_client(&records, 4);
        delay(&mut records, charge, used_late);
        // The release of the same job, the third: after each call it wakes, too.
        let wake = nth(&records, 4, |event| {
            matches!(event, Event::Wake { thread: CLIENT, .. })
        });
        records[wake].time -= wakes_early * 1000;
        let verdict = verdict(records);
        let over = |found: &Violation| found.what.contains("over budget");
        verdict.violations.iter().any(over)
    };
    assert!(late(false, 520, 15));
    assert!(!late(true, 520, 15));
    assert!(late(true, 530, 15));
}

/// A window need not begin at a period: consumption around the boundary of two counts together.
#[test]
fn a_budget_holds_in_any_window() {
    assert_rejected(
        |records| {
            // The client's second job comes 7 ms early: 3 ms within 10.
            let second = nth(records, 2, |event| {
                matches!(event, Event::Wake { thread: CLIENT, .. })
            });
            for record in &mut records[second..] {
                record.time -= 7_000_000;
            }
        },
        &["the context of `client` is over budget"],
    );
}

#[test]
fn a_ready_thread_of_higher_priority_is_found() {
    // The urgent thread wakes, but the server continues.
    assert_rejected(
        pass_over,
        &[
            "`urgent` of priority 250 is ready",
            "`server` of priority 200",
        ],
    );
    // It is released, and the scheduler chooses another thread.
    assert_rejected(
        |records| choose_wrongly(records),
        &[
            "`urgent` of priority 250 is ready",
            "`client` of priority 100",
        ],
    );
    // No thread runs, although one could.
    assert_rejected(
        |records| {
            let at = nth(records, 1, |event| {
                matches!(
                    event,
                    Event::Block {
                        thread: CLIENT,
                        why: sandglass_abi::trace::Blocked::Notification
                    }
                )
            });
            records.remove(at);
        },
        &["`client` of priority 100 is ready", "no thread runs"],
    );
}

/// A thread that waits for its refill is not ready before its time, and is from then on.
#[test]
fn a_thread_that_waits_for_its_budget_is_ready_when_it_comes() {
    let wait = |until: u64| {
        move |records: &mut Vec<Record>| {
            // Instead of preempting the server at once, the urgent thread waits for a refill.
            let at = nth(records, 0, |event| {
                matches!(event, Event::Switch { thread: URGENT, .. })
            });
            let record = records[at];
            records.drain(at..at + 3);
            records.insert(
                at,
                Record {
                    event: Event::Wait {
                        thread: URGENT,
                        until: record.time + until,
                        context: example::URGENT_TIME,
                        priority: 250,
                    },
                    ..record
                },
            );
        }
    };
    let said = ["`urgent` of priority 250 is ready"];
    assert_rejected(wait(100_000), &said);
    let mut records = example::records();
    wait(790_500)(&mut records);
    // The next record comes at 800 µs: within the longest kernel path of the release.
    let verdict = verdict(records);
    let first = verdict.violations.first().map(|found| found.what.clone());
    assert!(!first.is_some_and(|what| what.contains("is ready")));
}

#[test]
fn a_missed_deadline_is_found() {
    let end = |records: &[Record], number: u64| {
        nth(
            records,
            0,
            |event| matches!(event, Event::Mark { mark: Mark::End { job }, .. } if *job == number),
        )
    };
    // The job of 10 ms ends 7.7 ms late, when it would be over anyway.
    assert_rejected(
        |records| {
            let at = end(records, 2);
            delay(records, at, 7_701);
        },
        &["job 2 of `client` ended 1.000 µs after its deadline"],
    );
    // A mark sets a deadline that is earlier than the described one.
    assert_rejected(
        |records| {
            let at = end(records, 1);
            let mark = Mark::Deadline {
                job: 1,
                at: records[at].time - 7_000,
            };
            let record = records[at - 1];
            let event = Event::Mark {
                subject: CLIENT,
                mark,
            };
            records.insert(at, Record { event, ..record });
        },
        &["job 1 of `client` ended 7.000 µs after its deadline"],
    );
    // It never ends.
    assert_rejected(
        |records| {
            let at = end(records, 3);
            records.remove(at);
        },
        &["job 3 of `client` has not ended"],
    );
}

#[test]
fn a_donation_that_is_not_returned_is_found() {
    assert_rejected(
        lose_return,
        &[
            "`client` runs on the context of `client`",
            "lent it to `server` at record #",
        ],
    );
    // The last one: no thread runs on it any more, but the server waits for the next request.
    assert_rejected(
        |records| {
            let at = nth(records, 4, |event| matches!(event, Event::Return { .. }));
            records.truncate(at + 3);
            records.remove(at);
        },
        &[
            "never returned",
            "`server` has it and waits for the next request",
        ],
    );
    // It returns to a thread that did not lend it.
    assert_rejected(
        |records| {
            let at = nth(records, 0, |event| matches!(event, Event::Return { .. }));
            if let Event::Return { to, .. } = &mut records[at].event {
                *to = URGENT;
            }
        },
        &["returns to `urgent`, but `client` lent it last"],
    );
    // It comes back, but was never lent.
    assert_rejected(
        |records| {
            let at = nth(records, 0, |event| {
                matches!(event, Event::Donate { to: SERVER, .. })
            });
            records.remove(at);
        },
        &["`server` runs on the context of `client`", "`client` does"],
    );
}

/// A fault policy that gives the call up ends the donation.
#[test]
fn an_abandoned_donation_need_not_come_back() {
    let mut records = example::records();
    let at = nth(&records, 4, |event| matches!(event, Event::Return { .. }));
    records.truncate(at + 3);
    records[at].event = Event::Abandon {
        context: CLIENT_TIME,
        lender: CLIENT,
    };
    records.remove(at + 1);
    let verdict = verdict(records);
    let lost = |found: &&Violation| found.what.contains("returned");
    assert_eq!(verdict.violations.iter().find(lost), None);
}

/// A thread of another domain is not ready, whatever its priority, until it is that one's turn.
#[test]
fn domains_are_kept_apart() {
    let passed_over = |turn: u8| {
        let mut records = example::records();
        let at = nth(&records, 0, |event| {
            matches!(event, Event::Switch { thread: URGENT, .. })
        });
        records.drain(at..at + 3);
        let (first, before) = (records[0], records[at - 1]);
        let of = |thread, domain, record: Record| Record {
            event: Event::Domain { thread, domain },
            ..record
        };
        records.insert(at, of(0, turn, before));
        records.splice(1..1, [of(URGENT, 1, first), of(0, 0, first)]);
        says(&verdict(records), "`urgent` of priority 250 is ready")
    };
    assert!(!passed_over(0));
    assert!(passed_over(1));
}

fn every(interval_us: u64) -> Promises {
    let jobs = vec![Expected {
        thread: "client".to_owned(),
        interval_us,
    }];
    Promises {
        jobs,
        ..Promises::default()
    }
}

#[test]
fn jobs_that_never_were_are_missed() {
    let history = example::history();
    let kept = check_with(&history, &every(10_000));
    assert_eq!(kept.violations, []);
    assert!(kept.looked.expected >= 4 && kept.looked.skipped == 0);
    // Five jobs are half of what there should be.
    let missed = check_with(&history, &every(5_000));
    assert!(
        says(&missed, "`client` has 5 jobs"),
        "{:?}",
        missed.violations
    );
    assert!(
        says(&missed, "there should be at least 8"),
        "{:?}",
        missed.violations
    );
}

#[test]
fn a_thread_that_starves_at_the_end_misses_its_jobs() {
    let mut records = example::records();
    // The last job never ends, and the trace goes on.
    let end = nth(&records, 4, |event| {
        matches!(
            event,
            Event::Mark {
                mark: Mark::End { .. },
                ..
            }
        )
    });
    records.truncate(end);
    let last = records[end - 1];
    records.push(Record {
        sequence: last.sequence + 1,
        time: last.time + 100_000_000,
        ..last
    });
    let verdict = check_with(&History::of_records(records, 0).unwrap(), &every(10_000));
    assert!(
        says(&verdict, "releases were missed"),
        "{:?}",
        verdict.violations
    );
}

#[test]
fn numbers_that_marks_leave_out_are_skipped_releases() {
    let mut records = example::records();
    for record in &mut records {
        if let Event::Mark {
            mark: Mark::Release { job, .. } | Mark::End { job },
            ..
        } = &mut record.event
        {
            *job *= 3;
        }
    }
    let looked = verdict(records).looked;
    assert_eq!(looked.skipped, 8);
}
