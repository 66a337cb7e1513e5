//! Descriptions of systems for aarch64.

use sandglass_description::{MemorySource, Object, OUTPUT_REGISTERS};

use super::super::check_on;
use super::{check, described, refused, source};
use crate::arch::Arch;

/// A system with the timer and an output.
const SYSTEM: &str = r#"
name = "test"
arch = "aarch64"

[[component]]
name = "a"
executable = "hello-visitor"
priority = 100
budget = "1ms"
period = "10ms"

[timer-device]
component = "a"

[[output]]
name = "results"
component = "a"
"#;

fn with(more: &str) -> String {
    format!("{SYSTEM}{more}")
}

/// Where the devices in memory are that components have.
fn devices(system: &sandglass_description::System) -> Vec<u64> {
    let memory = system.memory.iter();
    let physical = memory.filter_map(|memory| match memory.source {
        MemorySource::Device { physical, .. } => Some(physical),
        _ => None,
    });
    physical.collect()
}

#[test]
fn the_description_says_the_architecture_and_the_command_another() {
    assert_eq!(described(SYSTEM).arch, Arch::Aarch64);
    let without = SYSTEM.replace("arch = \"aarch64\"\n", "");
    assert_eq!(described(&without).arch, Arch::X86_64);
    let asked = source(&without).for_arch(Some(Arch::Aarch64));
    assert_eq!(check(&asked).unwrap().arch, Arch::Aarch64);
}

/// It is an interrupt there, and on PCs a device with registers.
#[test]
fn the_timer_is_the_machines() {
    let timer = described(SYSTEM);
    assert!(timer.has_timer);
    let component = &timer.system.components[0];
    let number = component
        .parameters
        .iter()
        .find(|it| it.name == "timer.irq");
    assert_eq!(number.unwrap().value, 30);
    let handler = component.grants.iter().find(|it| it.name == "timer");
    assert!(matches!(handler.unwrap().object, Object::Interrupt(_)));
    // Of the output, and nothing of a timer.
    assert_eq!(devices(&timer.system), [OUTPUT_REGISTERS.0]);
    let has_ports = |it: &sandglass_description::Grant| matches!(it.object, Object::Ports { .. });
    assert!(!component.grants.iter().any(has_ports));

    let on_pc = SYSTEM.replace("aarch64", "x86_64");
    let on_pc = described(&on_pc);
    assert!(on_pc.has_timer);
    assert_eq!(devices(&on_pc.system), [0xfed0_0000]);

    let without = SYSTEM.replace("[timer-device]\ncomponent = \"a\"\n", "");
    assert!(!described(&without).has_timer);
}

/// What the timer, the output and the interrupts are is the board's, which the description names, or the command.
#[test]
fn devices_are_those_of_the_board() {
    let of_virt = described(SYSTEM);
    assert_eq!(of_virt.board.name, "virt");
    assert_eq!(of_virt.system.board.as_deref(), Some("linux,dummy-virt"));
    let named = SYSTEM.replacen(
        "arch = \"aarch64\"\n",
        "arch = \"aarch64\"\nmachine = { board = \"xlnx-zcu102\" }\n",
        1,
    );
    for described in [
        described(&named),
        check_on(&source(SYSTEM), Some("xlnx-zcu102,secure=off")).unwrap(),
    ] {
        assert_eq!(described.board.name, "xlnx-zcu102");
        assert_eq!(described.system.board.as_deref(), Some("xlnx,zynqmp"));
        let component = &described.system.components[0];
        let parameter = |name: &str| {
            let found = component.parameters.iter().find(|it| it.name == name);
            found.map(|it| it.value)
        };
        assert_eq!(parameter("timer.irq"), Some(68));
        assert_eq!(parameter("timer.hz"), Some(133_000_000));
        assert_eq!(parameter("results.cadence"), Some(1));
        let interrupts = component.grants.iter().filter_map(|it| match it.object {
            Object::Interrupt(interrupt) => Some((interrupt.pin, interrupt.level_triggered)),
            _ => None,
        });
        assert_eq!(interrupts.collect::<Vec<_>>(), [(68, true)]);
        assert_eq!(devices(&described.system), [0xff11_0000, 0xff01_0000]);
    }
    let back = check_on(&source(&named), Some("virt,gic-version=3")).unwrap();
    assert_eq!(back.board.name, "virt");

    // A system that has none of its devices runs on any.
    let (bare, _) = named.split_once("[timer-device]").unwrap();
    assert_eq!(described(bare).system.board, None);
    let interrupt = |number| {
        format!("{bare}[[interrupt]]\nname = \"device\"\ncomponent = \"a\"\npin = {number}\n")
    };
    described(&interrupt(187));
    refused(&interrupt(188), &["interrupt", "187"]);
    let taken = format!("{named}[[interrupt]]\nname = \"device\"\ncomponent = \"a\"\npin = 68\n");
    refused(&taken, &["number 68 of the GIC is used by two interrupts"]);
    refused(
        &named.replace("xlnx-zcu102", "zcu104"),
        &["no board `zcu104`", "`virt` and `xlnx-zcu102`"],
    );
}

#[test]
fn what_the_machine_has_not_is_refused() {
    let ports = "[[ports]]\nname = \"pit\"\ncomponent = \"a\"\nfirst = 0x40\nlast = 0x43\n";
    refused(
        &with(ports),
        &["aarch64 has no I/O ports", "`[[memory]]` with `physical`"],
    );
    let interrupt = |number| {
        with(&format!(
            "[[interrupt]]\nname = \"device\"\ncomponent = \"a\"\npin = {number}\n"
        ))
    };
    described(&interrupt(159));
    refused(&interrupt(27), &["interrupt 27 is the kernel's timer"]);
    refused(&interrupt(160), &["interrupt", "159"]);
    refused(
        &interrupt(30),
        &["number 30 of the GIC is used by two interrupts"],
    );
}
