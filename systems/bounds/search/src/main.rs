//! Searches for the worst arrangements of kernel objects: `./sandglass bounds --search`.
//!
//! From the known and from random arrangements of each operation it climbs to ones that cost more, one parameter at a
//! time, until no value of any parameter makes it worse; then it starts anew, until its time is over.
//! The kernel is the hosted one, built so that it counts the pieces of code that run ([`counters`]);
//! the cost is the most of them in a row without a look for interrupts. What it found is printed, one
//! arrangement a line, and measured on the bare kernel from then on.

mod climb;
mod counters;
mod host;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use climb::Climber;
use sandglass_arrangements::parameters::OPERATIONS;
use sandglass_arrangements::{known, Arrangement, FEW};

/// Numbers of threads for which the worst is searched: few, and enough for deep queues.
const SIZES: [u64; 2] = [FEW, 150];

const DEFAULT_SECONDS: u64 = 300;

/// Where so many climbs have led, another is not worth its time.
const MOST_CLIMBS: u64 = 60;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| match arguments.next() {
        None => Some(default),
        Some(text) => text.parse().ok(),
    };
    let (Some(seconds), Some(seed)) = (number(DEFAULT_SECONDS), number(1)) else {
        eprintln!("usage: bounds-search [SECONDS [SEED]]");
        return ExitCode::FAILURE;
    };
    if !counters::is_counted() {
        eprintln!("this program counts nothing: build it by `./sandglass bounds --search`");
        return ExitCode::FAILURE;
    }
    let searches = searches();
    let end = Instant::now() + Duration::from_secs(seconds);
    for ((plain, size), before) in searches.iter().zip(0..) {
        let left = end.saturating_duration_since(Instant::now());
        let end = Instant::now() + left / (searches.len() as u32 - before);
        let fixed = usize::from(plain.operation().has_kinds());
        let mut climber = Climber::new(plain.clone(), fixed, *size, seed);
        // What is known is not lost.
        for known in &known(*size).expect("lines that can be read") {
            if known.row() == plain.row() {
                climber.climb(known.clone(), end);
            }
        }
        while Instant::now() < end && climber.climbs() < MOST_CLIMBS {
            let start = climber.any();
            climber.climb(start, end);
        }
        eprintln!(
            "{} of {size}: {} arrangements tried, {} climbs, from {} pieces of code to {}",
            plain.row(),
            climber.tried(),
            climber.climbs(),
            climber.first_cost(),
            climber.worst_cost()
        );
        if let Some(arrangement) = climber.simplify() {
            println!("{size} {arrangement}");
        }
    }
    ExitCode::SUCCESS
}

/// What is searched: arrangements in which what is not searched stands, and numbers of threads.
fn searches() -> Vec<(Arrangement, u64)> {
    let mut searches = Vec::new();
    for &operation in OPERATIONS {
        let plain = Arrangement::plain(operation);
        let kinds = if operation.has_kinds() {
            operation.parameters()[0].values.len()
        } else {
            1
        };
        let sizes = if operation.has_size() {
            &SIZES[..]
        } else {
            &SIZES[1..]
        };
        for kind in 0..kinds {
            for &size in sizes {
                let first = if kinds > 1 {
                    plain.with(0, kind)
                } else {
                    plain.clone()
                };
                searches.push((first, size));
            }
        }
    }
    searches
}

#[cfg(test)]
mod tests {
    use super::host::Host;
    use sandglass_arrangements::{known, run};

    #[test]
    fn every_known_arrangement_can_be_made() {
        let mut host = Host::new();
        for size in [10, 60] {
            for known in known(size).expect("lines that can be read") {
                let made = run(&mut host, &known, size);
                assert_eq!(made, Ok(()), "{known}");
                host.clear();
            }
        }
    }
}
