//! `sandglass image` from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use sandglass_tools::arch::Arch;
use sandglass_tools::program;
use sandglass_tools::qemu::{self, Boot, End, Firmware};

fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn image(system: &Path, output: &Path) -> Output {
    image_with(&[], system, output)
}

fn image_with(options: &[&str], system: &Path, output: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .arg("image")
        .args(options)
        .arg(system)
        .arg("--output")
        .arg(output)
        .output()
        .unwrap()
}

/// It is told apart from a description by its content.
#[test]
fn a_root_task_boots_from_its_image() {
    let disk = scratch("hello, disk.img");
    let made = image(&program::build("hello").unwrap(), &disk);
    let complaints = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(made.status.success(), "{complaints}");
    let boot = Boot {
        timeout: Some(Duration::from_secs(120)),
        ..Boot::from_disk(&disk, Firmware::Bios)
    };
    let outcome = qemu::run(&boot).unwrap();
    assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
    assert!(outcome.console.contains("hello is done"));
}

/// It is for the architecture of the root task; the release kernel starts by U-Boot, too.
#[test]
fn a_root_task_for_aarch64_boots_from_its_image_by_u_boot() {
    let disk = scratch("hello, aarch64.img");
    let root_task = program::build_for(Arch::Aarch64, "hello").unwrap();
    let made = image_with(&["--kernel", "release"], &root_task, &disk);
    let complaints = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(made.status.success(), "{complaints}");
    let boot = Boot {
        until: Some("hello is done".into()),
        timeout: Some(Duration::from_secs(120)),
        ..Boot::from_disk(&disk, Firmware::UBoot)
    };
    let outcome = qemu::run(&boot).unwrap();
    assert_eq!(outcome.end, End::Until, "{}", outcome.console);
    let refused = image_with(&["--arch", "x86_64"], &root_task, &disk);
    let complaints = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1));
    assert!(complaints.contains("is for aarch64"), "{complaints}");
}

#[test]
fn what_is_no_system_makes_no_image() {
    let disk = scratch("nothing.img");
    let text = scratch("nothing.toml");
    fs::write(&text, "this is no description").unwrap();
    for system in [text.as_path(), Path::new("/nowhere/SYSTEM.toml")] {
        let made = image(system, &disk);
        assert_eq!(made.status.code(), Some(1));
        let complaints = String::from_utf8_lossy(&made.stderr).into_owned();
        let name = system.file_name().unwrap().to_str().unwrap();
        assert!(complaints.contains(name), "{complaints}");
        assert!(!disk.exists());
    }
}
