//! What a gate marks, and what the kernel records of its clients and its server, tampered with.

use std::collections::BTreeSet;

use sandglass_mc_ipc::marks::Mark as Did;
use sandglass_mc_ipc::ClientId;

use super::{unnoticed_of, Tampering};
use crate::trace::check::Promises;
use crate::trace::history::History;
use crate::trace::record::{Event, Mark, Object, Record};

/// Of traces in which a request waits for another one's.
const TAMPERINGS: &[Tampering] = &[
    Tampering {
        name: "another client is served",
        tamper: |_, records| {
            let (serve, other) = contended(records)?;
            subject_of(&mut records[serve], other);
            Some(())
        },
        said: "is served, and it is the turn of",
    },
    Tampering {
        name: "a request that waits is not served",
        tamper: |_, records| {
            let (serve, _) = contended(records)?;
            records.remove(serve);
            Some(())
        },
        said: "waits, and the server has nothing to do",
    },
    Tampering {
        name: "a client has two requests",
        tamper: |_, records| {
            let (serve, _) = contended(records)?;
            let served = did(&records[serve], |_| true)?;
            let requests = records[..serve].iter().rev();
            let is_own = |record: &&Record| {
                did(record, |did| matches!(did, Did::Request(..))) == Some(served)
            };
            let again = requests.clone().find(is_own)?.event;
            records[serve].event = again;
            Some(())
        },
        said: "has a request in it already",
    },
    Tampering {
        name: "somebody else pays than is said",
        tamper: |_, records| {
            let server = server(records)?;
            let (pay, other) = (0..records.len()).find_map(|at| {
                let payer = did(&records[at], |did| matches!(did, Did::Pay(Some(_))))?;
                if !pays(records, at, (payer, server)) {
                    return None;
                }
                let mut others = present(records, at).into_iter();
                Some((at, others.find(|&other| other != payer)?))
            })?;
            subject_of(&mut records[pay], other);
            Some(())
        },
        said: " pays",
    },
    Tampering {
        name: "two pay at a time",
        tamper: |history, records| {
            let server = server(records)?;
            let moment = history.least_budget;
            let clients = clients(records);
            // It goes on with another's context after a moment, until whatever comes next.
            let (place, record) = (0..records.len()).find_map(|at| {
                let record = records[at];
                let Event::Switch {
                    thread, context, ..
                } = record.event
                else {
                    return None;
                };
                let after = records[at..].iter();
                let same = after.take_while(|next| next.time < record.time + 2 * moment);
                let mut switches = same.filter(|next| is_switch(&next.event));
                let is_long = switches.nth(1).is_none();
                if thread != server || !is_long {
                    return None;
                }
                let event = Event::Pays {
                    context: *clients.iter().find(|&&other| other != context)?,
                    amount: 0,
                };
                let time = record.time + moment;
                let place = (at..records.len()).find(|&next| records[next].time > time)?;
                Some((
                    place,
                    Record {
                        time,
                        event,
                        ..record
                    },
                ))
            })?;
            records.insert(place, record);
            Some(())
        },
        said: "runs on the time of",
    },
];

/// Of traces in which there are requests of two clients.
const ALONE: &[Tampering] = &[
    Tampering {
        name: "another client is answered",
        tamper: |_, records| {
            let (serve, other) = served(records)?;
            let is_finish = |did: &Did| matches!(did, Did::Finish(_));
            let finish =
                (serve..records.len()).find(|&at| did(&records[at], is_finish).is_some())?;
            subject_of(&mut records[finish], other);
            Some(())
        },
        said: "is answered, and it is the turn of",
    },
    Tampering {
        name: "somebody pays who has no request",
        tamper: |_, records| {
            let absent = absent(records)?;
            subject_of(&mut records[absent.0], absent.1);
            Some(())
        },
        said: "is to pay, and has no request in it",
    },
    Tampering {
        name: "a client goes on while it waits",
        tamper: |history, records| {
            let is_request = |did: &Did| matches!(did, Did::Request(..));
            let (request, client) = records
                .iter()
                .enumerate()
                .find_map(|(at, record)| Some((at, did(record, is_request)?)))?;
            let name = history.name(client);
            let thread = crate::trace::timeline::threads_of_contexts(history)
                .into_iter()
                .find(|&(context, thread)| context == client && history.name(thread) == name)?
                .1;
            // Whoever has its context next is it.
            let is_next = |event: &Event| matches!(event, Event::Switch { context, .. } if *context == client);
            let next = (request..records.len()).find(|&at| is_next(&records[at].event))?;
            if let Event::Switch { thread: runs, .. } = &mut records[next].event {
                *runs = thread;
            }
            Some(())
        },
        said: "runs, and its request to",
    },
    Tampering {
        name: "a mark is about a stranger",
        tamper: |_, records| {
            let (serve, _) = served(records)?;
            subject_of(&mut records[serve], 0xdead_0000);
            Some(())
        },
        said: "who is not described as its client",
    },
];

/// Of traces of one core: on several, the emulator's turns excuse what takes long.
const LENGTHS: &[Tampering] = &[
    Tampering {
        name: "an operation takes longer than is described",
        tamper: |_, records| {
            let (serve, _) = served(records)?;
            lengthen(records, serve)
        },
        said: "is described to take longer than",
    },
    Tampering {
        name: "a client pays for more than its bound",
        tamper: |_, records| {
            let (serve, _) = served(records)?;
            lengthen(records, serve)
        },
        said: "while it waited for",
    },
];

/// What the checker does not notice.
pub fn unnoticed(history: &History, promises: &Promises) -> Vec<String> {
    let mut unnoticed = unnoticed_of(TAMPERINGS, history, promises);
    unnoticed.extend(unnoticed_alone(history, promises));
    unnoticed
}

/// As [`unnoticed`], of what needs nobody who waits for another one.
pub fn unnoticed_alone(history: &History, promises: &Promises) -> Vec<String> {
    unnoticed_of(ALONE, history, promises)
}

/// What the checker does not notice of lengths, on one core.
pub fn unnoticed_lengths(history: &History, promises: &Promises) -> Vec<String> {
    unnoticed_of(LENGTHS, history, promises)
}

const fn is_switch(event: &Event) -> bool {
    matches!(event, Event::Switch { .. })
}

/// Whom a gate's mark is about, if it is such a one.
fn did(record: &Record, is: impl Fn(&Did) -> bool) -> Option<Object> {
    let Event::Mark {
        subject,
        mark: Mark::Gate {
            what,
            first,
            second,
        },
    } = record.event
    else {
        return None;
    };
    let did = Did::decode(ClientId(0), what, [first, second])?;
    (did.client().is_some() && is(&did)).then_some(subject)
}

fn subject_of(record: &mut Record, other: Object) {
    if let Event::Mark { subject, .. } = &mut record.event {
        *subject = other;
    }
}

/// Clients with a request in the gate, before each record.
fn present(records: &[Record], until: usize) -> Vec<Object> {
    let mut present: Vec<Object> = Vec::new();
    for record in &records[..until] {
        if let Some(client) = did(record, |did| matches!(did, Did::Request(..))) {
            present.push(client);
        }
        if let Some(client) = did(record, |did| matches!(did, Did::Finish(_))) {
            present.retain(|&other| other != client);
        }
    }
    present
}

/// Where the gate takes up a request while another one waits, and the other one's client.
fn contended(records: &[Record]) -> Option<(usize, Object)> {
    (0..records.len()).find_map(|at| {
        let served = did(&records[at], |did| matches!(did, Did::Serve(_)))?;
        let present = present(records, at);
        let mut others = present.into_iter().filter(|&other| other != served);
        Some((at, others.next()?))
    })
}

/// As [`contended`]; or else where a request is taken up, and somebody else who is a client.
fn served(records: &[Record]) -> Option<(usize, Object)> {
    contended(records).or_else(|| {
        let is_serve = |did: &Did| matches!(did, Did::Serve(_));
        let mut served =
            (0..records.len()).filter_map(|at| Some((at, did(&records[at], is_serve)?)));
        let (at, served) = served.next()?;
        let mut others = clients(records).into_iter();
        Some((at, others.find(|&other| other != served)?))
    })
}

/// Those that marks are about.
fn clients(records: &[Record]) -> Vec<Object> {
    let about = records.iter().filter_map(|record| did(record, |_| true));
    let clients: BTreeSet<Object> = about.collect();
    clients.into_iter().collect()
}

/// Where somebody begins to pay, and somebody who has no request then.
fn absent(records: &[Record]) -> Option<(usize, Object)> {
    let clients = clients(records);
    (0..records.len()).find_map(|at| {
        did(&records[at], |did| matches!(did, Did::Pay(Some(_))))?;
        let present = present(records, at);
        let absent = clients.iter().find(|client| !present.contains(client))?;
        Some((at, *absent))
    })
}

/// Whether the server runs on a context before somebody else is said to pay than from `begin` on.
fn pays(records: &[Record], begin: usize, (payer, server): (Object, Object)) -> bool {
    let mut behind = records[begin + 1..].iter();
    behind
        .find_map(|record| match record.event {
            Event::Switch {
                thread, context, ..
            } if thread == server => Some(context == payer),
            Event::Mark {
                mark: Mark::Gate { what, .. },
                ..
            } if matches!(Did::decode(ClientId(0), what, [0; 2]), Some(Did::Pay(_))) => Some(false),
            _ => None,
        })
        .unwrap_or(false)
}

/// The thread that gets the context of whoever pays.
fn server(records: &[Record]) -> Option<Object> {
    records.iter().enumerate().find_map(|(at, record)| {
        let payer = did(record, |did| matches!(did, Did::Pay(Some(_))))?;
        records[at..].iter().find_map(|record| match record.event {
            Event::Donate { context, to, .. } if context == payer => Some(to),
            _ => None,
        })
    })
}

/// What the server does first behind `begin` takes an hour longer, on the same context.
fn lengthen(records: &mut [Record], begin: usize) -> Option<()> {
    const HOUR: u64 = 3_600_000_000_000;
    let server = server(records)?;
    let mut first = records[begin..]
        .iter()
        .filter_map(|record| match record.event {
            Event::Switch {
                thread, context, ..
            } if thread == server => Some((record.time, context)),
            _ => None,
        });
    let (begins, payer) = first.next()?;
    let mut is_first = true;
    for record in records.iter_mut().filter(|record| record.time > begins) {
        record.time += HOUR;
        if let Event::Charge {
            context, consumed, ..
        } = &mut record.event
        {
            if *context == payer && std::mem::take(&mut is_first) {
                *consumed += HOUR;
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::check::{check_with, gates};
    use crate::trace::example;

    const PROTOCOLS: [gates::Protocol; 3] = [
        gates::Protocol::McIpc,
        gates::Protocol::Fifo,
        gates::Protocol::Priority,
    ];

    #[test]
    fn the_checker_accepts_gates_and_notices_what_is_tampered_with() {
        for protocol in PROTOCOLS {
            for cores in [1, 2] {
                let history = example::gates::history(cores, protocol);
                let promises = example::gates::promises(cores, protocol);
                let verdict = check_with(&history, &promises);
                assert_eq!(verdict.violations, [], "{protocol:?}, {cores} cores");
                assert!(verdict.looked.requests >= 10, "{verdict:?}");
                assert_eq!(unnoticed(&history, &promises), Vec::<String>::new());
            }
        }
    }

    #[test]
    fn lengths_are_checked_on_one_core() {
        let history = example::gates::history(1, gates::Protocol::McIpc);
        let promises = example::gates::promises(1, gates::Protocol::McIpc);
        assert_eq!(unnoticed_lengths(&history, &promises), Vec::<String>::new());
    }

    /// What one protocol decides is not what another one does: the wrong one is noticed.
    #[test]
    fn a_gate_with_another_protocol_is_found() {
        for does in PROTOCOLS {
            for described in PROTOCOLS {
                let history = example::gates::history(2, does);
                let promises = example::gates::promises(2, described);
                let found = check_with(&history, &promises).violations;
                assert_eq!(
                    found.is_empty(),
                    does == described,
                    "{does:?} as {described:?}: {found:?}"
                );
            }
        }
    }

    /// On several cores, where lengths say little, the most urgent client of a core may pay for so many requests only.
    #[test]
    fn who_pays_for_too_many_requests_is_found_on_several_cores() {
        let history = example::gates::history(2, gates::Protocol::McIpc);
        let mut promises = example::gates::promises(2, gates::Protocol::McIpc);
        for client in &mut promises.gates[0].clients {
            if let Some(assumed) = &mut client.assumed {
                assumed.clusters = 0;
            }
        }
        let found = check_with(&history, &promises).violations;
        let says = |text: &str| found.iter().any(|violation| violation.what.contains(text));
        assert!(says("1 at most would be right"), "{found:?}");
    }

    /// Anybody can make marks: those of others than the gate say nothing.
    #[test]
    fn only_the_gate_s_marks_count() {
        let mut history = example::gates::history(1, gates::Protocol::McIpc);
        let promises = example::gates::promises(1, gates::Protocol::McIpc);
        let (serve, _) = contended(&history.records).expect("somebody waits");
        let forged = history.records[serve];
        let is_server = |record: &Record| matches!(record.event, Event::Switch { thread, .. } if thread == example::gates::SERVER);
        let runs = history.records.iter().position(is_server).expect("it runs");
        let record = history.records[runs + 1];
        history.records.insert(
            runs + 2,
            Record {
                event: forged.event,
                ..record
            },
        );
        assert_eq!(check_with(&history, &promises).violations, []);
    }

    /// The kernel takes the gate for the subject of a mark then.
    #[test]
    fn the_checker_knows_clients_whose_contexts_are_gone() {
        for protocol in PROTOCOLS {
            let mut history = example::gates::history(2, protocol);
            let promises = example::gates::promises(2, protocol);
            let stages = crate::trace::gates::of(&history);
            let is_finish = |did: &Did| matches!(did, Did::Finish(_));
            let mut finished = 0;
            for record in &mut history.records {
                if did(record, is_finish).is_some() {
                    subject_of(record, example::gates::GATE);
                    finished += 1;
                }
            }
            assert!(finished > 0);
            let verdict = check_with(&history, &promises);
            assert_eq!(verdict.violations, [], "{protocol:?}");
            assert_eq!(crate::trace::gates::of(&history), stages, "{protocol:?}");
        }
    }
}
