//! Straight lines do what the general path does: byte for byte, two kernels stay the same of which one takes no line.

use sandglass_abi as abi;
use sandglass_assurance::generator::Generator;
use sandglass_assurance::pair::{Checks, Lines, Pair};
use sandglass_assurance::world;
use sandglass_kernel::object::tcb::offset;
use sandglass_kernel::CORES;

/// Seeds to go through, and events of each.
const SEEDS: u64 = 32;
const EVENTS: u64 = 600;

fn memory(pair: &Pair) -> Vec<u8> {
    let machine = &pair.k.machine;
    let bytes = machine.read_memory(0, machine.memory_bytes() as usize);
    bytes.expect("the machine's memory")
}

/// Whether the byte at this address would be one of those of a thread's fault, if a thread is there: some mean nothing, and
/// what the others mean is part of the state.
fn may_be_of_a_fault(at: usize) -> bool {
    offset::FAULT.contains(&(at % (1 << abi::object::TCB_BITS)))
}

/// Where `before` has become something else, and what.
fn changes(before: &[u8], after: &[u8]) -> Vec<(usize, u8)> {
    let pairs = before.iter().zip(after).enumerate();
    pairs
        .filter(|(at, (before, after))| before != after && !may_be_of_a_fault(*at))
        .map(|(at, (_, &after))| (at, after))
        .collect()
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
                    let [one, other] = [0, 1].map(|i| changes(&memories[i], &now[i]));
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
    assert!(lines.iter().all(|(_, count)| count > 0), "each is taken");
}
