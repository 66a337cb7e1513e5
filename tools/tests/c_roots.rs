//! The root tasks in C, from outside: what `sandglass boot` makes of them, and of files that are
//! almost root tasks. (What they check themselves is `qemu::c-roots::...`.)

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use sandglass_tools::arch::Arch;
use sandglass_tools::c_roots;
use sandglass_tools::kernel::{self, KernelOptions, Variant};
use sandglass_tools::qemu::{self, Boot, End};

/// `sandglass boot` of a root task.
fn boot(root_task: &Path, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .arg("boot")
        .arg(root_task)
        .args(["--timeout", "120"])
        .args(options)
        .output()
        .unwrap()
}

fn program(name: &str) -> PathBuf {
    c_roots::build(Arch::X86_64)
        .unwrap()
        .join(name)
        .with_extension("elf")
}

#[test]
fn boot_shows_the_whole_console_and_ends_with_the_guests_status() {
    let layout = program("layout-high");
    for options in [
        &["--kernel", "debug", "--memory", "64"][..],
        &["--kernel", "release", "--memory", "3072"],
        &["--icount", "0", "--cores", "2"],
    ] {
        let out = boot(&layout, options);
        let console = String::from_utf8_lossy(&out.stdout);
        assert_eq!(out.status.code(), Some(0), "{options:?}: {console}");
        assert!(console.starts_with("C root task: layout"), "{console}");
        assert!(
            console.trim_end().ends_with("passed, 0 failed"),
            "{console}"
        );
    }
}

#[test]
fn any_path_will_do() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("a folder, with 'signs'");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("root task, v=1");
    fs::copy(program("layout-plain"), &path).unwrap();
    let out = boot(&path, &["--kernel", "release"]);
    let console = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{console}");
}

/// The book's program, as it is printed there.
#[test]
fn the_example_of_the_book_boots() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = fs::read_to_string(repository.join("docs/src/how-to/root-task-in-c.md")).unwrap();
    let (_, code) = page.split_once("```c\n").unwrap();
    let (code, _) = code.split_once("\n```").unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("book");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("tiny.c"), code).unwrap();
    let arguments = page.lines().find_map(|line| line.strip_prefix("cc "));
    let status = Command::new("cc")
        .args(arguments.unwrap().split_whitespace())
        .current_dir(&folder)
        .status()
        .unwrap();
    assert!(status.success());
    for variant in ["debug", "release"] {
        let out = boot(&folder.join("tiny.elf"), &["--kernel", variant]);
        assert_eq!(out.status.code(), Some(0));
        assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), "hello from C");
    }
}

/// A program that never ends the machine, as those of other systems, is ended by what it prints.
#[test]
fn boot_ends_at_the_awaited_text() {
    let out = boot(&program("layout-plain"), &["--until", "entry point 0x"]);
    assert_eq!(out.status.code(), Some(0));
}

/// The first invocation that this kernel does not know, and where it is known.
#[test]
fn a_program_of_another_profile_is_told_for_which() {
    let told = "was the program built for that?";
    let out = boot(&program("stock-debug"), &["--icount", "0", "--until", told]);
    let console = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{console}");
    let known = "TCB_SetTLSBase is 20 in microkit-debug, microkit-smp-debug";
    assert!(console.contains(known), "{console}");
    assert!(console.contains("profile, base;"), "{console}");
    assert_eq!(console.matches(told).count(), 1, "{console}");
}

/// The kernel that gives user code AVX says so where there is none.
#[test]
fn a_processor_without_avx_is_refused_in_words() {
    for without in ["+xsave", "-xsave,+avx", "+xsave,+avx"] {
        let cpu = format!("Nehalem,+pdpe1gb,{without}");
        // A kernel that other tests have, too.
        let kernel = ["--profile", "avx", "--kernel", "release", "--cores", "4"];
        let out = boot(&program("avx"), &[&kernel[..], &["--cpu", &cpu]].concat());
        let console = String::from_utf8_lossy(&out.stdout);
        assert_eq!(out.status.code(), Some(1), "{console}");
        assert!(console.contains("no XSAVE or no AVX"), "{console}");
    }
}

/// Boots a file that is no root task on both kernels: each must say why, and end with status 1.
#[track_caller]
fn assert_refused(name: &str, said: &str) {
    let folder = c_roots::build_refused().unwrap();
    let root_task = folder.join(name).with_extension("elf");
    for variant in [Variant::Debug, Variant::Release] {
        let kernel = kernel::build(&KernelOptions::new(variant)).unwrap();
        let outcome = qemu::run(&Boot {
            timeout: Some(Duration::from_secs(60)),
            ..Boot::new(kernel, &root_task)
        })
        .unwrap();
        assert_eq!(outcome.end, End::Guest(1), "{}", outcome.console);
        let refusal = format!("Sandglass cannot start: {said}");
        assert!(outcome.console.contains(&refusal), "{}", outcome.console);
    }
}

#[test]
fn a_dynamic_executable_is_refused() {
    assert_refused(
        "dynamic",
        "the root task's file cannot be loaded: its program header for an interpreter",
    );
}

#[test]
fn an_object_file_is_refused() {
    assert_refused(
        "relocatable",
        "the root task's file cannot be loaded: its ELF type is 0x1",
    );
}

#[test]
fn machine_code_without_a_header_is_refused() {
    assert_refused(
        "flat",
        "the root task's file cannot be loaded: its first bytes are",
    );
}

#[test]
fn the_32_bit_format_is_refused() {
    assert_refused(
        "narrow",
        "the root task's file cannot be loaded: its ELF class is 0x1",
    );
}

#[test]
fn an_image_that_starts_within_a_page_is_refused() {
    assert_refused(
        "unaligned",
        "the root task's file cannot be loaded: its image starts at 0x400010",
    );
}

#[test]
fn more_pages_than_slots_are_refused() {
    assert_refused("large", "the root task is too large: its image has ");
}
