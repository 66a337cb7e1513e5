//! Who has the machine's timer, on PCs the HPET, on aarch64 what the board has: an `[[edf]]` that shares it with nobody, the timer service, or a component
//! that asks for it.

use crate::system::spanned::Spanned;

use super::super::super::document::{
    Document, Interrupt, Map, MapRights, Memory, Polarity, Ports, Text, Trigger,
};
use super::super::super::findings::{Finding, Span};
use super::super::super::quantity::Bytes;
use super::super::text;
use crate::arch::Arch;
use crate::board::Timer;

const PHYSICAL: i64 = 0xfed0_0000;
const BYTES: u64 = 4096;
/// Input of the I/O APIC that HPET and PIT share, and the PIT's ports.
const PIN: i64 = 2;
const PIT_PORTS: (i64, i64) = (0x40, 0x43);

/// Under which names a component finds the timer.
pub struct Names {
    pub registers: &'static str,
    pub interrupt: &'static str,
    pub pit: &'static str,
}

/// Under which names a component finds it that a description gives it to.
const ASKED: Names = Names {
    registers: "hpet",
    interrupt: "timer",
    pit: "pit",
};

/// Gives the timer to the component that asks for it.
pub fn expand(document: &mut Document) {
    if let Some(device) = &document.timer_device {
        let owner = device.component.clone();
        add(document, &owner, &ASKED);
    }
}

/// Whether a component has it.
pub fn has_timer(document: &Document) -> bool {
    described(document).is_some()
}

/// Gives the timer to the component `owner`. Returns what is wrong if the description gives it to another: one thing,
/// whatever of it is described.
pub fn give(document: &mut Document, owner: &Text, names: &Names) -> Option<Finding> {
    let Some(other) = described(document) else {
        add(document, owner, names);
        return None;
    };
    let name = match document.arch {
        Arch::X86_64 => "HPET",
        Arch::Aarch64 => "timer",
    };
    let finding = Finding::new(
        other,
        format!("the {name} already belongs to `{}`", text(owner)),
    );
    Some(
        finding
            .label("must not be here")
            .related(owner.span(), "it is given out because of this")
            .help(match document.timer_device {
                Some(_) => {
                    "give the component a `[[timer]]` in place of the device, and remove the `[timer-device]`"
                }
                None => {
                    "give the component a `[[timer]]` in place of the device, and remove the `[[memory]]`, the \
                     `[[interrupt]]` and the `[[ports]]` of HPET and PIT"
                }
            }),
    )
}

/// Adds to a description what the timer consists of.
fn add(document: &mut Document, owner: &Text, names: &Names) {
    let place = |text: &str| Spanned::new(owner.span(), text.to_owned());
    let interrupt = |pin, trigger| Interrupt {
        name: place(names.interrupt),
        component: owner.clone(),
        pin: Spanned::new(owner.span(), pin),
        trigger,
        polarity: Polarity::High,
    };
    let registers = |physical, bytes| Memory {
        name: place(names.registers),
        size: Spanned::new(owner.span(), Bytes(bytes)),
        physical: Some(Spanned::new(owner.span(), physical)),
        maps: vec![Map {
            component: owner.clone(),
            rights: MapRights::ReadWrite,
            address: None,
        }],
    };
    if document.arch == Arch::Aarch64 {
        match &document.board().timer {
            Timer::Core { irq } => document.interrupts.push(interrupt(*irq, Trigger::Edge)),
            Timer::Counter(counter) => {
                let (physical, bytes) = counter.registers;
                document.memory.push(registers(physical, bytes));
                let interrupt = interrupt(counter.irq, Trigger::Level);
                document.interrupts.push(interrupt);
            }
        }
        return;
    }
    document.memory.push(registers(PHYSICAL, BYTES));
    document.interrupts.push(interrupt(PIN, Trigger::Edge));
    document.ports.push(Ports {
        name: place(names.pit),
        component: owner.clone(),
        first: Spanned::new(owner.span(), PIT_PORTS.0),
        last: Spanned::new(owner.span(), PIT_PORTS.1),
    });
}

/// Where a description names the timer: the HPET, its interrupt or the ports that come with it.
fn described(document: &Document) -> Option<Span> {
    let of_pin = |pin| {
        let mut pins = document.interrupts.iter().map(|interrupt| &interrupt.pin);
        Some(pins.find(|other| *other.get_ref() == pin)?.span())
    };
    let memory_at = |address| {
        let mut memory = document.memory.iter();
        memory.find_map(|memory| {
            let physical = memory.physical.as_ref()?;
            (*physical.get_ref() == address).then(|| physical.span())
        })
    };
    if document.arch == Arch::Aarch64 {
        return match &document.board().timer {
            Timer::Core { irq } => of_pin(*irq),
            Timer::Counter(counter) => {
                memory_at(counter.registers.0).or_else(|| of_pin(counter.irq))
            }
        };
    }
    let memory = memory_at(PHYSICAL);
    let mut ports = document.ports.iter();
    memory.or_else(|| of_pin(PIN)).or_else(|| {
        let (first, last) = PIT_PORTS;
        let ports =
            ports.find(|ports| *ports.first.get_ref() <= last && first <= *ports.last.get_ref());
        Some(ports?.first.span())
    })
}
