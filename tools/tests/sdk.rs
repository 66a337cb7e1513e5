//! What `sandglass sdk` writes, as others use it: the kernel starts from the files that a stock SDK has of one.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use sandglass_tools::arch::Arch;
use sandglass_tools::c_roots;
use sandglass_tools::qemu::{self, Boot, End, Machine};

/// The processor of Microkit's stock command line (09, section 2.5).
const CPU: &str = "qemu64,+fsgsbase,+pdpe1gb,+xsaveopt,+xsave";

/// A root task with the numbers of the profile, which were written by hand, as an SDK's loader image is started: by the kernel
/// in the format of 32 bits. And every file of a board is there.
#[test]
fn a_stock_board_has_its_files_and_the_narrow_kernel_starts() {
    let sdk = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sdk");
    let out = Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .args(["sdk", "--profile", "microkit-release", "-o"])
        .arg(&sdk)
        .output()
        .unwrap();
    let board = sdk.join("board/x86_64_generic/release");
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    assert_eq!(said.trim(), board.display().to_string());

    let read =
        |path: &str| fs::read(board.join(path)).unwrap_or_else(|why| panic!("{path}: {why}"));
    let json = |path: &str| serde_json::from_slice::<serde_json::Value>(&read(path)).unwrap();
    assert_eq!(read("elf/sel4.elf")[..5], *b"\x7fELF\x02");
    assert_eq!(read("elf/sel4_32.elf")[..5], *b"\x7fELF\x01");
    assert_eq!(json("invocations_all.json")["X86PageMapIO"], 49);
    assert_eq!(json("object_sizes.json")["tcb"], 11);
    assert_eq!(
        json("address_space_constants.json")["page_table_index_bits"],
        9
    );
    let configuration = json("include/kernel/gen_config.json");
    assert_eq!(configuration["ROOT_CNODE_SIZE_BITS"], "17");
    let prefix = sdk.join("rust-sel4/x86_64_generic-release");
    let same = fs::read(prefix.join("libsel4/include/kernel/gen_config.json")).unwrap();
    assert_eq!(same, read("include/kernel/gen_config.json"));

    let root_task = c_roots::build(Arch::X86_64).unwrap();
    let mut machine = Machine {
        cpu: CPU.to_owned(),
        memory_mib: 256,
        ..Machine::default()
    };
    machine.keep_virtual_time(0);
    let outcome = qemu::run(&Boot {
        machine,
        timeout: Some(Duration::from_secs(120)),
        ..Boot::new(
            board.join("elf/sel4_32.elf"),
            root_task.join("stock-release.elf"),
        )
    })
    .unwrap();
    assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
    assert!(outcome.console.trim_end().ends_with("passed, 0 failed"));
}

/// What there is no kernel for is refused in words, and nothing is written.
#[test]
fn a_profile_without_a_kernel_has_no_sdk() {
    let sdk = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sdk-refused");
    let out = Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .args(["sdk", "--profile", "microkit-smp-release", "-o"])
        .arg(&sdk)
        .output()
        .unwrap();
    assert!(!out.status.success());
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("for 16 cores"), "{said}");
    assert!(!sdk.exists());
}
