//! Who has the HPET: an `[[edf]]` that shares it with nobody, or the timer service.

use crate::system::spanned::Spanned;

use super::super::super::document::{
    Document, Interrupt, Map, MapRights, Memory, Polarity, Ports, Text, Trigger,
};
use super::super::super::findings::{Finding, Span};
use super::super::super::quantity::Bytes;
use super::super::text;

const PHYSICAL: i64 = 0xfed0_0000;
const BYTES: u64 = 4096;
/// Input of the I/O APIC that HPET and PIT share, and the PIT's ports.
const PIN: i64 = 2;
const PIT_PORTS: (i64, i64) = (0x40, 0x43);

/// Under which names a component finds the HPET.
pub struct Names {
    pub registers: &'static str,
    pub interrupt: &'static str,
    pub pit: &'static str,
}

/// Gives the HPET to the component `owner`. Returns what is wrong if the description gives it to another: one thing,
/// whatever of it is described.
pub fn give(document: &mut Document, owner: &Text, names: &Names) -> Option<Finding> {
    if let Some(other) = described(document) {
        let finding = Finding::new(
            other,
            format!("the HPET already belongs to `{}`", text(owner)),
        );
        return Some(
            finding
                .label("must not be here")
                .related(owner.span(), "it is given out because of this")
                .help(
                    "give the component a `[[timer]]` in place of the device, and remove the `[[memory]]`, the \
                     `[[interrupt]]` and the `[[ports]]` of HPET and PIT",
                ),
        );
    }
    let place = |text: &str| Spanned::new(owner.span(), text.to_owned());
    document.memory.push(Memory {
        name: place(names.registers),
        size: Spanned::new(owner.span(), Bytes(BYTES)),
        physical: Some(Spanned::new(owner.span(), PHYSICAL)),
        maps: vec![Map {
            component: owner.clone(),
            rights: MapRights::ReadWrite,
            address: None,
        }],
    });
    document.interrupts.push(Interrupt {
        name: place(names.interrupt),
        component: owner.clone(),
        pin: Spanned::new(owner.span(), PIN),
        trigger: Trigger::Edge,
        polarity: Polarity::High,
    });
    document.ports.push(Ports {
        name: place(names.pit),
        component: owner.clone(),
        first: Spanned::new(owner.span(), PIT_PORTS.0),
        last: Spanned::new(owner.span(), PIT_PORTS.1),
    });
    None
}

/// Where a description names the HPET, its interrupt or the ports that come with it.
fn described(document: &Document) -> Option<Span> {
    let mut memory = document.memory.iter();
    let memory = memory.find_map(|memory| {
        let physical = memory.physical.as_ref()?;
        (*physical.get_ref() == PHYSICAL).then(|| physical.span())
    });
    let mut pins = document.interrupts.iter().map(|interrupt| &interrupt.pin);
    let mut ports = document.ports.iter();
    memory
        .or_else(|| Some(pins.find(|pin| *pin.get_ref() == PIN)?.span()))
        .or_else(|| {
            let (first, last) = PIT_PORTS;
            let ports = ports
                .find(|ports| *ports.first.get_ref() <= last && first <= *ports.last.get_ref());
            Some(ports?.first.span())
        })
}
