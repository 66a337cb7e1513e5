//! Booting, as one sees it from outside: how runs end, and what the kernel refuses to boot, with
//! a line on the console that says what is wrong, and status 1.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sandglass_tools::kernel::{self, KernelOptions, Variant};
use sandglass_tools::program;
use sandglass_tools::qemu::{self, Boot, End, Machine};

const MIB: u64 = 1 << 20;

/// An executable of one segment, which is `memory` bytes large and begins with an endless loop.
fn executable(memory: u64) -> Vec<u8> {
    const HEADERS: u64 = 64 + 56;
    const BASE: u64 = 0x40_0000;
    let code = [0xeb, 0xfe];
    let mut file = Vec::new();
    file.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    let half = |file: &mut Vec<u8>, value: u16| file.extend(value.to_le_bytes());
    let word = |file: &mut Vec<u8>, value: u32| file.extend(value.to_le_bytes());
    let long = |file: &mut Vec<u8>, value: u64| file.extend(value.to_le_bytes());
    half(&mut file, 2); // ET_EXEC
    half(&mut file, 62); // EM_X86_64
    word(&mut file, 1);
    long(&mut file, BASE + HEADERS); // entry
    long(&mut file, 64); // program headers
    long(&mut file, 0); // section headers
    word(&mut file, 0);
    for value in [64, 56, 1, 64, 0, 0] {
        half(&mut file, value);
    }
    word(&mut file, 1); // PT_LOAD
    word(&mut file, 7);
    long(&mut file, 0);
    long(&mut file, BASE);
    long(&mut file, BASE);
    long(&mut file, HEADERS + code.len() as u64);
    long(&mut file, memory);
    long(&mut file, 0x1000);
    file.extend_from_slice(&code);
    file
}

fn write(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// Boots `root_task` on both kernels; each must refuse it with a line that contains `said`.
fn assert_refused(name: &str, root_task: &[u8], memory_mib: u32, said: &[&str]) {
    let root_task = write(name, root_task);
    for variant in [Variant::Debug, Variant::Release] {
        let kernel = kernel::build(&KernelOptions::new(variant)).unwrap();
        let boot = Boot {
            machine: Machine {
                memory_mib,
                ..Machine::default()
            },
            timeout: Some(Duration::from_secs(60)),
            ..Boot::new(kernel, &root_task)
        };
        let outcome = qemu::run(&boot).unwrap();
        assert_eq!(outcome.end, End::Guest(1), "{}", outcome.console);
        let refusal = outcome
            .console
            .lines()
            .find(|line| line.contains("cannot start"));
        let refusal = refusal.unwrap_or_else(|| panic!("no refusal in:\n{}", outcome.console));
        for text in said {
            assert!(refusal.contains(text), "`{text}` is not in: {refusal}");
        }
    }
}

#[test]
fn a_program_runs_to_its_end_and_under_virtual_time_runs_are_alike() {
    let root_task = program::build("hello").unwrap();
    for variant in [Variant::Debug, Variant::Release] {
        let kernel = kernel::build(&KernelOptions::new(variant)).unwrap();
        let boot = Boot {
            machine: Machine {
                icount: Some(0),
                ..Machine::default()
            },
            timeout: Some(Duration::from_secs(60)),
            ..Boot::new(kernel, &root_task)
        };
        let runs = [qemu::run(&boot).unwrap(), qemu::run(&boot).unwrap()];
        assert_eq!(runs[0].end, End::Guest(0), "{}", runs[0].console);
        assert_eq!(runs[0].console, runs[1].console);
    }
}

#[test]
fn a_run_ends_when_the_awaited_text_appears() {
    let kernel = kernel::build(&KernelOptions::new(Variant::Debug)).unwrap();
    let boot = Boot {
        until: Some("hello".to_owned()),
        timeout: Some(Duration::from_secs(60)),
        ..Boot::new(kernel, program::build("hello").unwrap())
    };
    let outcome = qemu::run(&boot).unwrap();
    assert_eq!(outcome.end, End::Until, "{}", outcome.console);
    assert_eq!(outcome.status(), 0);
}

#[test]
fn a_root_task_that_is_not_an_elf_file_is_refused() {
    assert_refused("text", b"#!/bin/sh\necho hello\n", 128, &["ELF"]);
}

#[test]
fn an_elf_file_for_another_machine_is_refused() {
    let mut file = executable(0x1000);
    file[18] = 183; // EM_AARCH64
    assert_refused("aarch64", &file, 128, &["machine is 0xb7", "x86_64"]);
}

#[test]
fn a_32_bit_elf_file_is_refused() {
    let mut file = executable(0x1000);
    file[4] = 1; // ELFCLASS32
    assert_refused(
        "narrow",
        &file,
        128,
        &["its ELF class is 0x1", "a 64-bit file"],
    );
}

#[test]
fn an_elf_file_that_is_cut_off_is_refused() {
    let file = executable(0x1000);
    assert_refused("cut", &file[..100], 128, &["must lie in the file"]);
}

#[test]
fn a_root_task_with_more_pages_than_slots_is_refused_with_the_numbers() {
    let pages = (40 * MIB) / 4096;
    assert_refused(
        "many-pages",
        &executable(40 * MIB),
        512,
        &[&pages.to_string(), "slots"],
    );
}

#[test]
fn a_root_task_that_leaves_no_slots_for_memory_is_refused() {
    assert_refused(
        "most-pages",
        &executable(8150 * 4096),
        512,
        &["8150 pages", "too few slots for the untyped memory"],
    );
}

#[test]
fn a_root_task_larger_than_memory_is_refused_with_the_numbers() {
    assert_refused("large", &executable(30 * MIB), 24, &["memory", "bytes"]);
}

#[test]
fn the_command_ends_with_the_kernels_refusal() {
    let root_task = write("large-for-command", &executable(30 * MIB));
    let out = Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .arg("boot")
        .arg(root_task)
        .args(["--memory", "24", "--timeout", "60"])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stdout).contains("memory"));
}

#[test]
fn a_time_out_ends_with_status_124_and_says_so() {
    let root_task = write("endless", &executable(0x1000));
    let out = Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .arg("boot")
        .arg(root_task)
        .args(["--timeout", "1500ms"])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(124));
    assert!(String::from_utf8_lossy(&out.stderr).contains("timeout of 1.5 s"));
}

#[test]
fn a_missing_root_task_is_named() {
    let out = Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .args(["boot", "/nowhere/root-task"])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stderr).contains("/nowhere/root-task"));
}
