//! Bounds as time on a platform, and as a record in the file.

use std::fs;

use sandglass_wcet::analysis::Analysis;
use sandglass_wcet::kernel::{Case, Entry, System};
use sandglass_wcet::platform::Platform;
use sandglass_wcet::results::Results;
use sandglass_wcet::stamp::Stamp;

use crate::programs::{assemble, file, image, number, question};

const BOARD: &str = "
    name = 'board'
    clock_hz = 1_000_000_000
    cycles_per_instruction = 2.0
    levels = 8
";

fn board() -> Platform {
    Platform::parse(BOARD).expect("a platform")
}

/// As if a system call of a kernel executed this program, and a vector four instructions.
fn results_of(program: &str) -> Vec<Results> {
    let image = image();
    let longest = |name: &str| {
        let start = image.functions[number(&image, name)].start;
        let found = Analysis::new(&image, question(&image, Vec::new())).longest(&[start]);
        found.expect("it can be analysed").expect("it ends")
    };
    vec![Results {
        case: Case {
            system: System::Open,
            levels: 8,
        },
        entries: vec![
            (Entry::SystemCall, longest(program)),
            (Entry::Vector, longest("straight")),
        ],
    }]
}

#[test]
fn bounds_become_time_rounded_up() {
    let stamp = board().accept(&image(), &results_of("nested"));
    let path = 1 + 3 * (1 + 4 * 3 + 2) + 1;
    assert_eq!(
        stamp.expect("it is short"),
        Stamp {
            path,
            latency: path + 4,
            path_ns: 2 * path,
            latency_ns: 2 * (path + 4),
            min_budget_us: 0,
        }
    );
    let odd = Platform {
        clock_hz: 3_000_000_000,
        cycles_per_instruction: 1.0,
        ..board()
    };
    assert_eq!(odd.nanoseconds(1), 1);
    assert_eq!(odd.nanoseconds(3), 1);
    assert_eq!(odd.nanoseconds(4), 2);
}

/// What takes longest is named with its line: the inner loop, since both have equally many instructions but it has more
/// turns.
#[test]
fn what_takes_longer_than_the_kernel_assumes_is_refused() {
    let slow = Platform {
        clock_hz: 1_000_000,
        ..board()
    };
    let error = slow
        .accept(&image(), &results_of("calls_in_loop"))
        .expect_err("it is too slow");
    let message = format!("{error:#}");
    for part in [
        "of system_call with 8 levels",
        "µs on `board`, where the kernel assumes 10 µs",
        "are in `",
        "programs.s:",
        "Make that path shorter, or declare a faster clock",
    ] {
        assert!(message.contains(part), "no \"{part}\" in: {message}");
    }
    // At exactly the constant it is let pass: 47 instructions, two cycles each.
    let just = Platform {
        clock_hz: 9_400_000,
        ..board()
    };
    let (path, latency) = (47, 51);
    assert_eq!(just.nanoseconds(path), 10_000);
    let stamp = just.accept(&image(), &results_of("nested")).expect("10 µs");
    assert_eq!((stamp.path, stamp.latency), (path as u64, latency));
}

/// A platform may have a least budget of its own, which is what its kernel's longest path is compared with, and recorded.
#[test]
fn a_least_budget_of_the_platform_is_what_counts() {
    let with = |clock_hz, min_budget_us| Platform {
        clock_hz,
        min_budget_us: Some(min_budget_us),
        ..board()
    };
    // 47 instructions of two cycles: 94 µs.
    let accept = |platform: Platform| platform.accept(&image(), &results_of("nested"));
    let stamp = accept(with(1_000_000, 188)).expect("twice as much");
    assert_eq!((stamp.path_ns, stamp.min_budget_us), (94_000, 188));
    let message = format!(
        "{:#}",
        accept(with(1_000_000, 187)).expect_err("too little")
    );
    for part in ["assumes 93.5 µs", "or `min_budget_us = 188`"] {
        assert!(message.contains(part), "no \"{part}\" in: {message}");
    }
    // And a fast one may have less than the ABI's.
    let stamp = accept(with(100_000_000, 4)).expect("0.94 µs");
    assert_eq!(stamp.min_budget_us, 4);
}

#[test]
fn numbers_of_a_platform_that_cannot_be_are_refused() {
    for (right, wrong, says) in [
        ("1_000_000_000", "0", "`clock_hz` is 0"),
        ("2.0", "0.0", "`cycles_per_instruction` is 0"),
        ("2.0", "inf", "`cycles_per_instruction` is inf"),
        ("levels = 8", "levels = 65", "1 to 64 levels"),
        ("levels = 8", "level = 8", "unknown field `level`"),
        (
            "levels = 8",
            "levels = 8\nmin_budget_us = 3",
            "`min_budget_us` is 3: it is 4 at least",
        ),
    ] {
        let error = Platform::parse(&BOARD.replace(right, wrong)).expect_err(wrong);
        let message = format!("{error:#}");
        assert!(message.contains(says), "no \"{says}\" in: {message}");
    }
}

#[test]
fn what_is_recorded_is_read_again_and_nothing_else_changes() {
    let before = fs::read(file()).expect("the programs");
    assert_eq!(Stamp::read(&before).expect("such a file"), None);
    let stamp = Stamp {
        path: 1,
        latency: 2,
        path_ns: 3,
        latency_ns: u64::MAX,
        min_budget_us: 5,
    };
    let mut after = before.clone();
    stamp.write(&mut after).expect("such a file");
    assert_eq!(Stamp::read(&after).expect("such a file"), Some(stamp));
    let changed: Vec<usize> = (0..before.len())
        .filter(|&at| before[at] != after[at])
        .collect();
    let (first, last) = (changed[0], changed[changed.len() - 1]);
    assert!(last - first < 40, "bytes {first} to {last} have changed");
}

#[test]
fn a_file_without_the_variable_is_refused() {
    let stripped = fs::read(assemble("stripped-of-its-stamp", &["-s"])).expect("the programs");
    let message = format!("{:#}", Stamp::read(&stripped).expect_err("no symbols"));
    assert!(
        message.contains("no variable `sandglass_analysed`"),
        "{message}"
    );
    let message = format!("{:#}", Stamp::read(b"#!/bin/sh\n").expect_err("a script"));
    assert!(message.contains("no ELF file"), "{message}");
}
