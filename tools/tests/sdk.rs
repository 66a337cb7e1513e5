//! What `sandglass sdk` writes, as others use it: the kernel starts from the files that a stock SDK has of one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sandglass_tools::arch::Arch;
use sandglass_tools::c_roots;
use sandglass_tools::qemu::{self, Boot, End, Machine};

/// The processor of Microkit's stock command line (09, section 2.5).
const CPU: &str = "qemu64,+fsgsbase,+pdpe1gb,+xsaveopt,+xsave";

/// Has the files of `microkit-CONFIGURATION` written; the folder of the SDK, and that of the board's configuration in it.
fn written(configuration: &str) -> (PathBuf, PathBuf) {
    let sdk = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sdk-{configuration}"));
    let out = Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .args([
            "sdk",
            "--profile",
            &format!("microkit-{configuration}"),
            "-o",
        ])
        .arg(&sdk)
        .output()
        .unwrap();
    let board = sdk.join("board/x86_64_generic").join(configuration);
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    assert_eq!(said.trim(), board.display().to_string());
    (sdk, board)
}

fn json(path: &Path) -> serde_json::Value {
    let bytes = fs::read(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    serde_json::from_slice(&bytes).unwrap()
}

/// A root task with the numbers of the profile, which were written by hand, as an SDK's loader image is started: by the kernel
/// in the format of 32 bits, on so many cores.
#[track_caller]
fn assert_starts(board: &Path, root_task: &str, cores: u32) {
    let root_tasks = c_roots::build(Arch::X86_64).unwrap();
    let mut machine = Machine {
        cores,
        cpu: CPU.to_owned(),
        memory_mib: 256,
        ..Machine::default()
    };
    machine.keep_virtual_time(0);
    let outcome = qemu::run(&Boot {
        machine,
        timeout: Some(Duration::from_secs(120)),
        ..Boot::new(board.join("elf/sel4_32.elf"), root_tasks.join(root_task))
    })
    .unwrap();
    assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
    assert!(outcome.console.trim_end().ends_with("passed, 0 failed"));
}

/// And every file of a board is there.
#[test]
fn a_stock_board_has_its_files_and_the_narrow_kernel_starts() {
    let (sdk, board) = written("release");
    let read =
        |path: &str| fs::read(board.join(path)).unwrap_or_else(|why| panic!("{path}: {why}"));
    let json = |path: &str| json(&board.join(path));
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
    assert_starts(&board, "stock-release.elf", 1);
}

/// And on as many cores as the configuration is for. A kernel that other tests have, too.
#[test]
fn a_stock_board_for_several_cores_says_how_many_and_the_narrow_kernel_starts() {
    let (_, board) = written("smp-debug");
    let configuration = json(&board.join("include/kernel/gen_config.json"));
    assert_eq!(configuration["ENABLE_SMP_SUPPORT"], true);
    assert_eq!(configuration["MAX_NUM_NODES"], "16");
    assert_eq!(configuration["NUM_DOMAINS"], "1");
    assert_starts(&board, "stock-smp-debug.elf", 16);
}
