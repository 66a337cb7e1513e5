//! Straight lines do what the general path does: byte for byte, two kernels stay the same of which one takes no line.

use std::ops::Range;

use sandglass_assurance::generator::Generator;
use sandglass_assurance::pair::{Checks, Lines, Pair};
use sandglass_assurance::world;
use sandglass_kernel::fast::inspect::Name;
use sandglass_kernel::object::tcb::offset;
use sandglass_kernel::CORES;
use sandglass_model::state::{State, ThreadId};

/// Seeds to go through, and events of each.
const SEEDS: u64 = 28;
const EVENTS: u64 = 600;
/// Bytes that are compared at once.
const PAGE: usize = 4096;

fn memory(pair: &Pair) -> Vec<u8> {
    let machine = &pair.k.machine;
    let bytes = machine.read_memory(0, machine.memory_bytes() as usize);
    bytes.expect("the machine's memory")
}

/// Where `before` has become something else, and what.
fn changes(before: &[u8], after: &[u8]) -> Vec<(usize, u8)> {
    // Most pages are the same, which is found out at once.
    let pages = before.chunks(PAGE).zip(after.chunks(PAGE)).enumerate();
    pages
        .filter(|(_, (before, after))| before != after)
        .flat_map(|(page, (before, after))| {
            let bytes = before.iter().zip(after).enumerate();
            bytes
                .filter(|(_, (before, after))| before != after)
                .map(move |(at, (_, &after))| (page * PAGE + at, after))
        })
        .collect()
}

/// Where the faults of the threads of `state` are: some of their bytes mean nothing, and what the others mean is part of the
/// state.
fn faults(state: &State) -> impl Iterator<Item = Range<usize>> + '_ {
    let start = |thread: &ThreadId| thread.0 as usize;
    let at = move |thread| start(thread) + offset::FAULT.start..start(thread) + offset::FAULT.end;
    state.threads.keys().map(at)
}

/// How many lines were taken that write or end a fault.
fn about_faults(lines: &Lines) -> u64 {
    let is_one = |name| matches!(name, Name::Fault | Name::AnswerFault | Name::Timeout);
    let counts = lines.iter().filter(|&(name, _)| is_one(name));
    counts.map(|(_, count)| count).sum()
}

#[test]
fn a_line_changes_what_the_general_path_changes() {
    let mut lines = Lines::default();
    for seed in 0..SEEDS {
        let mut straight = world::create(Checks::None).expect("a world");
        let mut general = world::create(Checks::None).expect("a world").in_general();
        let mut generator = Generator::new(seed, false, false, CORES).serving();
        let mut last = straight.state().expect("the world is settled");
        let mut memories = [memory(&straight), memory(&general)];
        while straight.events() < EVENTS {
            let Some(action) = generator.next(&last) else {
                break;
            };
            let (before, events) = (*straight.lines(), straight.events());
            straight.perform(&action).expect("nothing is checked");
            general.perform(&action).expect("nothing is checked");
            last = straight.state().unwrap_or(last);
            let now = [memory(&straight), memory(&general)];
            if *straight.lines() != before {
                // What other events of the action write has bytes without meaning: those of a fault that there is none of.
                if straight.events() - events == 1 {
                    let mut both = [0, 1].map(|i| changes(&memories[i], &now[i]));
                    if about_faults(straight.lines()) != about_faults(&before) {
                        let faults: Vec<_> = faults(&last).collect();
                        let means = |at: usize| !faults.iter().any(|fault| fault.contains(&at));
                        both.iter_mut()
                            .for_each(|it| it.retain(|&(at, _)| means(at)));
                    }
                    let [one, other] = both;
                    assert_eq!(one, other, "seed {seed}, {action:?}: addresses and bytes");
                }
                assert_eq!(
                    straight.state().ok(),
                    general.state().ok(),
                    "seed {seed}, {action:?}"
                );
            }
            memories = now;
        }
        lines.join(straight.lines());
    }
    println!("{lines}");
    for (name, count) in lines.iter() {
        let least = match name {
            Name::Call | Name::ReplyRecv | Name::Send | Name::Recv => 20,
            Name::Wait | Name::Yield | Name::NBSendRecv => 10,
            // On several cores, mostly nobody is there to be told.
            Name::Timeout if CORES > 1 => 0,
            Name::AnswerFault | Name::Fault | Name::Interrupt | Name::Timeout => 1,
        };
        assert!(count >= least, "{name:?}: {count}");
    }
}
