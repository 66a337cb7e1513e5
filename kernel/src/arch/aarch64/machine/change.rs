//! What a core can be asked to change about an interrupt of its own.

use crate::arch::abi::devices::Trigger;

/// Private interrupts have the numbers below.
pub const PRIVATE: u32 = 32;

/// Whether each core has its own interrupt `number`.
pub const fn is_private(number: u32) -> bool {
    number < PRIVATE
}

/// A change of an interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    pub number: u32,
    /// How it is triggered from now on; as it was, if that is not said.
    pub trigger: Option<Trigger>,
    /// It arrives at the core that it is changed for.
    pub route: bool,
    pub masked: bool,
}

impl Change {
    /// Whether it is one of an interrupt that is private to a core.
    pub const fn is_private(self) -> bool {
        is_private(self.number)
    }

    /// In 14 bits, for another core.
    pub const fn bits(self) -> u32 {
        let trigger = match self.trigger {
            None => 0,
            Some(Trigger::Level) => 1,
            Some(Trigger::Edge) => 2,
        };
        self.number & 0x3ff | trigger << 10 | (self.route as u32) << 12 | (self.masked as u32) << 13
    }

    /// That of [`Self::bits`].
    pub const fn from_bits(bits: u32) -> Self {
        Change {
            number: bits & 0x3ff,
            trigger: match bits >> 10 & 3 {
                1 => Some(Trigger::Level),
                2 => Some(Trigger::Edge),
                _ => None,
            },
            route: bits >> 12 & 1 != 0,
            masked: bits >> 13 & 1 != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Trigger};

    #[test]
    fn a_change_arrives_as_it_was_sent() {
        for number in [0, 2, 27, 31, 159, 1019] {
            for trigger in [None, Some(Trigger::Level), Some(Trigger::Edge)] {
                for (route, masked) in [(false, false), (false, true), (true, false), (true, true)]
                {
                    let change = Change {
                        number,
                        trigger,
                        route,
                        masked,
                    };
                    assert!(change.bits() < 1 << 24);
                    assert_eq!(Change::from_bits(change.bits()), change);
                }
            }
        }
    }
}
