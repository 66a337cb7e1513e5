//! Interrupts, I/O ports, and the output to the host.

use std::collections::HashMap;

use sandglass_description::{
    Interrupt, Map, Memory, MemorySource, Object, LAUNCHER_PORTS, OUTPUT_PORTS,
};

use super::super::document::{Output, Polarity, Text, Trigger};
use super::super::findings::{Finding, Span};
use super::{text, Checker};
use crate::arch::Arch;
use crate::board;

/// The last input of the PC's I/O APIC.
const LAST_PIN: i64 = 23;
/// The kernel's timer.
const KERNELS_IRQ: i64 = 27;

/// I/O ports with an owner, both ends inclusive.
pub(super) struct PortRange<'a> {
    first: u16,
    last: u16,
    /// The owner, and where the description says so; `None`: the launcher.
    place: Option<(&'a Text, Span)>,
}

impl<'a> Checker<'a> {
    pub(super) fn devices(&mut self) {
        for (first, last) in LAUNCHER_PORTS {
            self.ports.push(PortRange {
                first,
                last,
                place: None,
            });
        }
        self.outputs();
        self.ports();
        self.interrupts();
    }

    fn outputs(&mut self) {
        let outputs = &self.document.outputs;
        self.output = outputs.first();
        if let [first, second, ..] = outputs.as_slice() {
            self.found(
                Finding::new(second.name.span(), "there is only one output to the host")
                    .label("the second")
                    .related(first.name.span(), "the first")
                    .help(
                        "let one component collect the data of the others, through shared memory",
                    ),
            );
        }
        let Some(output) = self.output else { return };
        match self.document.arch {
            Arch::X86_64 => {
                let (first, last) = OUTPUT_PORTS;
                self.give_ports(&output.name, &output.component, first, last);
            }
            Arch::Aarch64 => self.give_output(output),
        }
    }

    /// Gives a component the registers of the serial port that bytes leave through.
    fn give_output(&mut self, output: &Output) {
        let (board::Output::Pci(registers) | board::Output::Second(registers)) =
            self.document.board().output;
        let (physical, bytes) = registers;
        let memory = self.memory.len() as u32;
        self.memory.push(Memory {
            name: text(&output.name).to_owned(),
            source: MemorySource::Device { physical, bytes },
        });
        if let Some(component) = self.find_component(&output.component) {
            let map = Map {
                memory,
                writable: true,
                address: None,
            };
            let (name, span) = (text(&output.name), output.name.span());
            let equipment = &mut self.equipment[component];
            equipment.add_map(name, map, &span, &mut self.findings);
            if let board::Output::Second(_) = self.document.board().output {
                let parameter = format!("{name}.cadence");
                equipment.add_parameter(&parameter, 1, &span, &mut self.findings);
            }
        }
    }

    fn ports(&mut self) {
        if self.document.arch == Arch::Aarch64 {
            if let Some(ports) = self.document.ports.first() {
                self.found(
                    Finding::new(ports.name.span(), "aarch64 has no I/O ports")
                        .label("must not be here")
                        .help("devices have registers in memory: `[[memory]]` with `physical`"),
                );
            }
            return;
        }
        for ports in &self.document.ports {
            let first = self.in_range("port", Some(&ports.first), 0..=0xffff, 0);
            let last = self.in_range("port", Some(&ports.last), 0..=0xffff, 0xffff);
            if last < first {
                self.found(
                    Finding::new(ports.last.span(), "the last port is below the first")
                        .label(format!("must be at least {first:#x}"))
                        .related(ports.first.span(), "the first"),
                );
                continue;
            }
            self.give_ports(&ports.name, &ports.component, first as u16, last as u16);
        }
    }

    fn give_ports(&mut self, name: &'a Text, component: &Text, first: u16, last: u16) {
        let overlaps = |other: &&PortRange<'_>| other.first <= last && first <= other.last;
        if let Some(other) = self.ports.iter().find(overlaps) {
            let owner = match &other.place {
                Some((owner, _)) => format!("`{}`", owner.get_ref()),
                None => "the launcher".to_owned(),
            };
            let finding = Finding::new(
                name.span(),
                format!(
                    "the ports {first:#x} to {last:#x} are already owned by {owner}: {:#x} to {:#x}",
                    other.first, other.last
                ),
            )
            .label("a port has one owner");
            let finding = match &other.place {
                Some((owner, span)) => {
                    finding.related(span.clone(), format!("`{}`", owner.get_ref()))
                }
                None => finding.help(
                    "the launcher has the console's ports, and the exit port of QEMU; components \
                     print with `console = true` and end the system with `exit = true`",
                ),
            };
            self.found(finding);
            return;
        }
        self.ports.push(PortRange {
            first,
            last,
            place: Some((name, name.span())),
        });
        if let Some(component) = self.find_component(component) {
            let object = Object::Ports { first, last };
            let equipment = &mut self.equipment[component];
            equipment.add_capability(text(name), object, &name.span(), &mut self.findings);
        }
    }

    fn interrupts(&mut self) {
        let mut pins: HashMap<i64, Span> = HashMap::new();
        let (what, of, last) = match self.document.arch {
            Arch::X86_64 => ("pin", "pin", LAST_PIN),
            Arch::Aarch64 => ("interrupt", "number", self.document.board().last_irq),
        };
        for (interrupt, vector) in self.document.interrupts.iter().zip(0u8..) {
            let pin = self.in_range(what, Some(&interrupt.pin), 0..=last, 0);
            if self.document.arch == Arch::Aarch64 && pin == KERNELS_IRQ {
                self.found(
                    Finding::new(
                        interrupt.pin.span(),
                        format!("interrupt {pin} is the kernel's timer"),
                    )
                    .label("must be another"),
                );
                continue;
            }
            if let Some(first) = pins.get(&pin) {
                let controller = match self.document.arch {
                    Arch::X86_64 => "the I/O APIC",
                    Arch::Aarch64 => "the GIC",
                };
                self.found(
                    Finding::new(
                        interrupt.pin.span(),
                        format!("{of} {pin} of {controller} is used by two interrupts"),
                    )
                    .label("the second")
                    .related(first.clone(), "the first")
                    .help("one component must serve all devices that share a pin"),
                );
                continue;
            }
            pins.insert(pin, interrupt.pin.span());
            let notification = self.new_notification();
            let handler = Object::Interrupt(Interrupt {
                pin: pin as u8,
                level_triggered: interrupt.trigger == Trigger::Level,
                active_low: interrupt.polarity == Polarity::Low,
                vector,
                notification,
            });
            if let Some(component) = self.find_component(&interrupt.component) {
                let name = text(&interrupt.name);
                let span = interrupt.name.span();
                let equipment = &mut self.equipment[component];
                let signal = format!("{name}.signal");
                let signalled = Object::Notification(notification);
                equipment.add_capability(name, handler, &span, &mut self.findings);
                equipment.add_capability(&signal, signalled, &span, &mut self.findings);
                if self.document.arch == Arch::Aarch64 {
                    let parameter = format!("{name}.irq");
                    equipment.add_parameter(&parameter, pin as u64, &span, &mut self.findings);
                    if let Some(hz) = self.document.board().rate_of(pin) {
                        let parameter = format!("{name}.hz");
                        equipment.add_parameter(&parameter, hz, &span, &mut self.findings);
                    }
                }
            }
        }
    }
}
