//! The example of shared resources, under every protocol: clients and servers see no difference.

use std::path::Path;
use std::time::Duration;

use sandglass_tools::kernel::{self, KernelOptions, Variant};
use sandglass_tools::qemu::{self, End, Outcome};
use sandglass_tools::system::{self, Source};

/// The example system under a protocol, and with or without the circle of requests.
fn example(protocol: &str, circle: bool) -> Source {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../systems/examples/sharing/SYSTEM.toml");
    let mut source = Source::read(&path).unwrap();
    let mut replace = |old: &str, new: &str| {
        assert!(source.text.contains(old), "`{old}` is in the example");
        source.text = source.text.replace(old, new);
    };
    replace("\"original-ceiling\"", &format!("\"{protocol}\""));
    if !circle {
        replace("circle = 1", "circle = 0");
        replace("  { component = \"journal\", as = \"back\" },\n", "");
    }
    source
}

fn run(name: &str, source: &Source) -> Outcome {
    let description = system::check(source).unwrap_or_else(|report| panic!("{report}"));
    let image = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sharing-{name}.elf"));
    let built = system::build(&description, Some(&image)).unwrap();
    let kernel = kernel::build(&KernelOptions::new(Variant::Release)).unwrap();
    let mut boot = built.boot(kernel);
    boot.timeout = Some(Duration::from_secs(120));
    boot.machine.icount = Some(0);
    qemu::run(&boot).unwrap()
}

const RESULT: &str = "balance 310 after 14 bookings; a message of 100 words sums to 4950";

#[test]
fn clients_and_servers_are_the_same_under_every_protocol() {
    for protocol in [
        "none",
        "ceiling",
        "inheritance",
        "original-ceiling",
        "bandwidth-inheritance",
    ] {
        let outcome = run(protocol, &example(protocol, false));
        assert_eq!(
            outcome.end,
            End::Guest(0),
            "{protocol}: {}",
            outcome.console
        );
        assert!(
            outcome.console.contains(RESULT),
            "{protocol}: {}",
            outcome.console
        );
    }
}

/// The workers read at the same time, and so the disk has two requests at a time: each is answered
/// by an interrupt.
#[test]
fn a_blocking_server_takes_requests_while_others_wait() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../systems/examples/disk/SYSTEM.toml");
    let outcome = run("disk", &Source::read(&path).unwrap());
    assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
    let said = "both have read 8 blocks; up to 2 requests waited for the disk";
    assert!(outcome.console.contains(said), "{}", outcome.console);
}

/// The description of another system.
fn system(folder: &str) -> Source {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../systems");
    Source::read(&path.join(folder).join("SYSTEM.toml")).unwrap()
}

/// The spawner and the two threads that it makes wait for the disk, and the fourth client for one of
/// them.
#[test]
fn a_stack_is_made_when_all_are_busy() {
    let outcome = run("spawning", &system("examples/spawning"));
    assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
    for said in [
        "all have read 8 blocks; up to 3 requests waited for the disk",
        "2 threads were made, none in more than ",
    ] {
        assert!(outcome.console.contains(said), "{}", outcome.console);
    }
}

#[test]
fn threads_are_made_up_to_the_limit_and_used_again() {
    let outcome = run("spawning-tests", &system("spawning-tests"));
    assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
    for said in [
        "7 passed, 0 failed",
        "launcher: component `hall` ended with status 101 (a panic)",
        "launcher: a thread that `hall` made was stopped by a fault: reading address 0xdead0000",
    ] {
        assert!(outcome.console.contains(said), "{}", outcome.console);
    }
}

/// A nested request for what is already held is refused, not waited for, and the system goes on.
#[test]
fn behind_a_proxy_a_circle_of_requests_is_refused() {
    for protocol in ["inheritance", "original-ceiling", "bandwidth-inheritance"] {
        let outcome = run(&format!("circle-{protocol}"), &example(protocol, true));
        assert_eq!(
            outcome.end,
            End::Guest(0),
            "{protocol}: {}",
            outcome.console
        );
        for said in [RESULT, "a circle of requests is refused"] {
            assert!(
                outcome.console.contains(said),
                "{protocol}: {}",
                outcome.console
            );
        }
    }
}
