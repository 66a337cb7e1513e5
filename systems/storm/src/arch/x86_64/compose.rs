//! Arguments of the invocations that only this architecture has.

use sandglass::abi::invocation::x86_64::{self, *};
use sandglass::abi::invocation::IRQ_CONTROL_GET;
use sandglass::{boot, SetupError};

use crate::actor::compose::{Composer, Draft, Effect};
use crate::arena::Builder;
use crate::catalogue::{Kind, Node};

/// The storm's ports: nothing answers there.
const PORTS: [(u16, u16); 2] = [(0x300, 0x30f), (0x310, 0x31f)];
/// Inputs of the only IOAPIC.
const PINS: u64 = 24;
/// Vectors that the storm asks for: few, so that it meets those in use.
const VECTORS: u64 = 16;

/// Gives the storm what only this architecture has.
pub fn lend(builder: &mut Builder) -> Result<(), SetupError> {
    for (first, last) in PORTS {
        let slot = builder.slot(Node::Main, Kind::IoPort)?;
        boot::IO_PORT_CONTROL.issue(first, last, slot)?;
    }
    Ok(())
}

impl Composer<'_> {
    pub fn own(&mut self, draft: &mut Draft) {
        match draft.label {
            PDPT_MAP | PAGE_DIRECTORY_MAP | PAGE_TABLE_MAP => self.map_table(draft),
            PAGE_MAP => self.map_page(draft),
            ASID_CONTROL_MAKE_POOL => self.make_pool(draft),
            ASID_POOL_ASSIGN => self.assign(draft),
            IO_PORT_IN8..=IO_PORT_OUT32 => self.port(draft),
            IRQ_CONTROL_GET => {
                let place = self.empty_place();
                let irq = self.dice.below(32);
                draft.words([irq, place.index, place.depth]);
                draft.cap(place.root);
            }
            x86_64::IRQ_CONTROL_GET_IOAPIC => {
                let source = [
                    0,
                    self.dice.below(PINS),
                    self.dice.below(2),
                    self.dice.below(2),
                ];
                self.issue(draft, source);
            }
            x86_64::IRQ_CONTROL_GET_MSI => {
                let source = [
                    self.dice.below(256),
                    self.dice.below(32),
                    self.dice.below(8),
                    self.dice.word(),
                ];
                self.issue(draft, source);
            }
            _ => {}
        }
    }

    fn port(&mut self, draft: &mut Draft) {
        let (first, last) = self.dice.choose(PORTS);
        let port = u64::from(first) + self.dice.below(u64::from(last - first) + 4);
        let data = self.dice.wild();
        match draft.label {
            IO_PORT_IN8..=IO_PORT_IN32 => draft.word(port),
            _ => draft.words([port, data]),
        }
    }

    /// A handler for the interrupt that four words describe.
    fn issue(&mut self, draft: &mut Draft, source: [u64; 4]) {
        let place = self.empty_place();
        let vector = self.dice.below(VECTORS);
        draft.words([place.index, place.depth]);
        draft.words(source);
        draft.word(vector);
        draft.cap(place.root);
        draft.effect = Effect::Filled(place.at, 1, Kind::IrqHandler);
    }
}
