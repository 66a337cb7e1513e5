//! What cannot be analysed is refused: with the function, the line of its source, and what would be right.

use std::fs;
use std::process::Command;

use sandglass_wcet::image::Image;
use sandglass_wcet::kernel::Kernel;
use sandglass_wcet::limits::Limits;

use crate::programs::{assemble, bound, file, image, question, SOURCE};

/// The message about a program, which names the lines of the source that are said to be refused.
fn refused(program: &str, line_of: &str) -> String {
    let image = image();
    let error = bound(&image, program, question(&image, Vec::new()))
        .expect_err(&format!("{program} is to be refused"));
    let message = format!("{error:#}");
    let says_so = |line: &str| line.ends_with(&format!(": {line_of}"));
    let lines = SOURCE.lines().enumerate().filter(|(_, line)| says_so(line));
    let named = lines
        .map(|(i, _)| format!("programs.s:{},", i + 1))
        .any(|line| message.contains(&line));
    assert!(named, "{program}: the line is missing in: {message}");
    assert!(
        message.contains(line_of),
        "{program}: the function is missing in: {message}"
    );
    message
}

#[test]
fn what_cannot_be_analysed_is_refused() {
    for (program, says, remedy) in [
        (
            "unbounded",
            "has no bound",
            "Write one in its source, with `Turns`",
        ),
        (
            "bounded_in_part",
            "has no bound",
            "on the way that every turn takes",
        ),
        (
            "bounds_nothing",
            "bounds nothing",
            "Remove it, or move it into the loop",
        ),
        (
            "claimed_twice",
            "two bounds claim this loop, 3 and 4",
            "`#[inline(never)]`",
        ),
        (
            "unrolled",
            "two bounds claim this loop, 3 and 2",
            "`#[inline(never)]`",
        ),
        ("two_entries", "two entries", "Write it as one loop"),
        (
            "unknown_instruction",
            "no instruction that the decoder knows",
            "teach the decoder",
        ),
        (
            "strings_backward",
            "no instruction that the decoder knows",
            "teach the decoder",
        ),
        (
            "jumps_indirectly",
            "nobody knows where it goes on",
            "Branch on values",
        ),
        (
            "calls_indirectly",
            "nobody knows where it goes on",
            "Branch on values",
        ),
        ("recurses", "recursion", "Write it as a loop"),
        (
            "jumps_astray",
            "where no function begins",
            "Give the target a symbol",
        ),
        (
            "repeats_unbounded",
            "repeats itself without a bound",
            "with `arch::bounds`",
        ),
        (
            "fills_unbounded",
            "nobody knows how many bytes",
            "`arch::bounds::at_most`",
        ),
        (
            "fills_again",
            "nobody knows how many bytes",
            "`arch::bounds::at_most`",
        ),
        (
            "fills_later",
            "nobody knows how many bytes",
            "`arch::bounds::at_most`",
        ),
    ] {
        let message = refused(program, program);
        assert!(message.contains(says), "{program}: {message}");
        assert!(
            message.contains(remedy),
            "{program}: no remedy in: {message}"
        );
    }
}

#[test]
fn what_is_called_is_named_instead_of_who_calls() {
    refused("calls_unbounded", "unbounded");
}

#[test]
fn recursion_through_others_is_said_in_full() {
    let message = refused("recurses_through", "recurses_back");
    let round = "recurses_through calls recurses_back calls recurses_through";
    assert!(message.contains(round), "{message}");
}

/// Without debugging information the function and the address are what is left.
#[test]
fn without_lines_the_address_is_named() {
    let file = assemble("no-lines", &[]);
    let image = Image::read(&file).expect("such a file");
    let error = bound(&image, "unbounded", question(&image, Vec::new())).expect_err("no bound");
    let message = format!("{error:#}");
    let header = image.functions[image.function_named("unbounded").expect("it")].start + 1;
    assert!(
        message.starts_with(&format!("unbounded ({header:#x}: dec ecx)")),
        "{message}"
    );
}

#[test]
fn a_stripped_file_is_refused() {
    let file = assemble("stripped", &["-s"]);
    let error = Image::read(&file).expect_err("it has no symbols");
    let message = format!("{error:#}");
    assert!(
        message.contains("stripped: ") && message.contains("do not strip it"),
        "{message}"
    );
}

#[test]
fn what_is_no_kernel_is_refused() {
    let none = Limits::default();
    let programs = image();
    let error = Kernel::new(&programs, &none, &none).expect_err("it is no kernel");
    let message = format!("{error:#}");
    assert!(
        message.contains("preemption_point") && message.contains("is it a kernel"),
        "{message}"
    );

    let error = Image::parse(b"#!/bin/sh\n").expect_err("it is a script");
    assert!(
        format!("{error:#}").contains("this is no ELF file"),
        "{error:#}"
    );

    let error = Image::read("no-such-file".as_ref()).expect_err("it is not there");
    assert!(
        format!("{error:#}").contains("cannot read no-such-file"),
        "{error:#}"
    );

    // The same file for another machine: its number stands at byte 18.
    let mut other = fs::read(file()).expect("the programs");
    other[18] = 243;
    let error = Image::parse(&other).expect_err("there is no decoder");
    assert!(
        format!("{error:#}").contains("no decoder for Riscv64"),
        "{error:#}"
    );
}

/// The command says it in a line, whatever the environment asks for.
#[test]
fn errors_have_no_backtrace() {
    let output = Command::new(env!("CARGO_BIN_EXE_sandglass-wcet"))
        .arg(file())
        .env("RUST_BACKTRACE", "1")
        .output()
        .expect("the command runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        message.starts_with("error: ") && message.lines().count() == 1,
        "{message}"
    );
}

#[test]
fn records_that_nobody_knows_are_refused() {
    let mut bytes = fs::read(file()).expect("the programs");
    let record = {
        let image = image();
        let first = image.records[0];
        [first.address, 1, first.value]
            .map(u64::to_le_bytes)
            .concat()
    };
    let at = bytes
        .windows(record.len())
        .position(|window| window == record)
        .expect("the first record");
    bytes[at + 8] = 77;
    let message = format!("{:#}", Image::parse(&bytes).expect_err("no such kind"));
    assert!(message.contains("a record of kind 77"), "{message}");
}

#[test]
fn a_limit_names_what_is_there_and_can_be_watched() {
    let image = image();
    for (what, says) in [
        (
            "calls = [\"nobody\"]",
            "names `nobody`, which the kernel has not",
        ),
        (
            "calls = [\"nobody -> three\"]",
            "names `nobody -> three`, which the kernel has not",
        ),
        (
            "calls = [\"three -> nobody\"]",
            "names `three -> nobody`, which the kernel has not",
        ),
        (
            "marks = [\"nowhere\"]",
            "names the mark `nowhere`, which nobody knows: there are invocation",
        ),
        (
            "marks = [\"commit\"]",
            "names the mark `commit`, which this kernel has nowhere: no run could show",
        ),
        (
            "calls = [\"three\", \"nested\"]",
            "names `nested`, but nothing in this kernel calls that: no run could show",
        ),
        (
            "calls = [\"straight -> three\"]",
            "names `straight -> three`, but nothing in this kernel calls that: no run could show",
        ),
        (
            "calls = [\"fallen_into\"]",
            "names `fallen_into`, but `falls` goes on there without a jump",
        ),
    ] {
        let text = format!("[[limit]]\nat_most = 1\n{what}\nwhy = \"a test\"\n");
        let limits = Limits::parse(&text).expect("limits");
        let message = format!("{:#}", limits.resolve(&image).expect_err("not there"));
        assert!(message.contains(says), "{message}");
        assert!(message.contains("because of \"a test\""), "{message}");
    }
    let text = "[[limit]]\nat_most = 1\ncalls = [\"nobody\"]\nwhy = \"a test\"\n\
        [[limit]]\nat_most = 2\ncalls = [\"three\"]\nwhy = \"another\"\n";
    let limits = Limits::parse(text).expect("limits");
    let (known, left_out) = limits.split(&image);
    assert_eq!(
        (known.limit.len(), left_out),
        (1, vec!["a test"]),
        "for an older kernel"
    );
    assert!(
        Limits::parse("[[limit]]\nat_most = 1\n").is_err(),
        "a limit without a reason"
    );
}
