//! What a kernel does against speculation is done where it belongs, on every way out, and nowhere else: the emulator's plugin
//! watches. The emulator ignores what is done, and says of its processors that they have none of it: these kernels do it all
//! the same, but for the one of the last tests.

use std::time::Duration;

use sandglass_tools::cores::Cores;
use sandglass_tools::kernel::{self, KernelOptions, Variant};
use sandglass_tools::program;
use sandglass_tools::qemu::{self, Boot, End};
use sandglass_tools::speculation::witness::{Seen, Tally, Witness};
use sandglass_tools::speculation::{with, Measure};

/// Address spaces that `systems/kernel-tests/src/roots.rs` makes at one place.
const SPACES: u64 = 4;

const AT_SWITCHES: [&str; 3] = ["ibpb", "l1d", "rsb"];

/// Boots `root_task` on the kernel that does what is asked for, and watches.
fn watch(root_task: &str, cores: Cores, asked: &[Measure]) -> (Vec<Seen>, String) {
    let options = with(KernelOptions::on(Variant::Release, cores), asked).unwrap();
    let kernel = kernel::build(&options).unwrap();
    let mut boot = Boot {
        timeout: Some(Duration::from_secs(300)),
        ..Boot::new(&kernel, program::build(root_task).unwrap())
    };
    boot.machine.cores = cores.number();
    boot.machine.keep_virtual_time(0);
    let witness = Witness::new(&kernel, boot.machine.memory_mib).unwrap();
    boot.extra_args = witness.options();
    // For the kernel's tests.
    boot.extra_args
        .extend(["-global".into(), "hpet.msi=on".into()]);
    let outcome = qemu::run(&boot).unwrap();
    assert_eq!(outcome.end, End::Guest(0), "{}", outcome.console);
    (witness.answer().unwrap(), outcome.console)
}

/// Of address spaces whose root tables are where another's was, the last core has seen `again`, with nothing in between: the
/// witness takes them for the same.
#[track_caller]
fn assert_all_is_done(root_task: &str, cores: Cores, again: u64) {
    let (seen, _) = watch(root_task, cores, &[Measure::All, Measure::Assumed]);
    let last = seen.len() - 1;
    for (core, seen) in seen.iter().enumerate() {
        let due = |done, needless| Tally {
            done,
            missed: 0,
            needless,
        };
        let again = if core == last { again } else { 0 };
        for name in AT_SWITCHES {
            assert_eq!(
                seen.measures[name],
                due(seen.switches, again),
                "{name} on core {core}: {seen:?}"
            );
        }
        let always = [("verw", seen.exits), ("ibrs", seen.returns)];
        for (name, times) in always {
            assert_eq!(
                seen.measures[name],
                due(times, 0),
                "{name} on core {core}: {seen:?}"
            );
        }
    }
    // Something was seen of both: exits to another address space, and to the same.
    let (exits, switches) = seen.iter().fold((0, 0), |(exits, switches), seen| {
        (exits + seen.exits, switches + seen.switches)
    });
    assert!(switches > SPACES && exits > 100 * SPACES, "{seen:?}");
}

#[test]
fn of_the_straight_lines() {
    assert_all_is_done("bench", Cores::Single, 0);
}

#[test]
fn of_the_kernels_tests() {
    assert_all_is_done("kernel-tests", Cores::Single, 0);
}

#[test]
fn on_several_cores_of_the_kernels_tests() {
    assert_all_is_done("kernel-tests", Cores::Smp(4), SPACES - 1);
}

#[test]
fn of_what_a_program_can_observe() {
    assert_all_is_done("conformance", Cores::Single, 0);
}

/// Its address spaces come and go on all cores. One may come where another was, and is another one for the kernel alone: so what
/// is needless is not looked at.
#[test]
fn of_the_storm_on_several_cores() {
    let (seen, _) = watch("storm", Cores::Smp(4), &[Measure::All, Measure::Assumed]);
    for (core, seen) in seen.iter().enumerate() {
        assert!(seen.switches > 1000, "core {core}: {seen:?}");
        for (name, tally) in &seen.measures {
            let due = match name.as_str() {
                "verw" => seen.exits,
                "ibrs" => seen.returns,
                _ => seen.switches,
            };
            assert_eq!(
                (tally.done, tally.missed),
                (due, 0),
                "{name} on core {core}: {seen:?}"
            );
        }
    }
}

/// On a processor that has nothing of it, the same kernel fills the stack of returns, for which it needs nobody, and the
/// rest is missed: so it would be seen if it were.
#[test]
fn what_the_processor_lacks_is_said_and_seen_to_be_missed() {
    let (seen, console) = watch("bench", Cores::Single, &[Measure::All]);
    let [seen] = &seen[..] else {
        panic!("{seen:?}");
    };
    for (name, missed) in [
        ("ibpb", seen.switches),
        ("l1d", seen.switches),
        ("rsb", 0),
        ("verw", seen.exits),
        ("ibrs", seen.returns),
    ] {
        assert_eq!(seen.measures[name].missed, missed, "{name}: {seen:?}");
        let said = format!("the processor has no {name}, ");
        assert_eq!(console.contains(&said), name != "rsb", "{console}");
    }
}

/// What a processor says of itself is read: AMD's of before Zen 3 need no VERW, and say who they are; the emulator leaves them
/// nothing else.
#[test]
fn processors_are_told_apart() {
    let options = with(KernelOptions::new(Variant::Release), &[Measure::All]).unwrap();
    let kernel = kernel::build(&options).unwrap();
    for (cpu, needs_verw) in [("Nehalem", true), ("EPYC", false), ("EPYC-Milan", true)] {
        let mut boot = Boot {
            timeout: Some(Duration::from_secs(60)),
            until: Some("no l1d, which the kernel was built for".to_owned()),
            ..Boot::new(&kernel, program::build("hello").unwrap())
        };
        boot.machine.cpu = format!("{cpu},+pdpe1gb");
        let outcome = qemu::run(&boot).unwrap();
        let console = &outcome.console;
        assert_eq!(outcome.end, End::Until, "{cpu}: {console}");
        assert_eq!(
            console.contains("no verw, "),
            needs_verw,
            "{cpu}: {console}"
        );
        assert!(console.contains("no ibpb, "), "{cpu}: {console}");
    }
}
