//! The numbers of interrupts (06, section 7).
//!
//! User level names an interrupt by the number that the GIC gives it, its *id*, and on several cores by the core too if
//! it is private to one. The kernel numbers what these name: the private interrupts of each core, one core after the
//! other, and behind them the shared ones. On one core the two are the same.

use sandglass_abi::vspace::aarch64::{FIRST_SPI, IRQ_TIMER};

use crate::cores::{CoreId, CORES};

/// Number of an interrupt to the kernel.
pub type Irq = u16;

/// Highest id that there is room for. Which ids user level may name depends on the board (03, section 7): those that
/// [`Devices::max_irq`](super::Devices::max_irq) says.
pub const MAX_ID: u64 = sandglass_abi::vspace::aarch64::MAX_IRQ_ZYNQMP;

/// Numbers of the private interrupts of all cores but the first.
const OTHERS: u64 = FIRST_SPI * (CORES as u64 - 1);

/// Highest number of an IRQ that the table of the kernel has room for: one less than a power of two.
pub const MAX_IRQ: u64 = (MAX_ID + 1 + OTHERS).next_power_of_two() - 1;

/// The kernel's number of the interrupt `id` of `core`, which makes a difference for a private one; `None` for an id that
/// no board has.
#[inline(always)]
pub fn number(core: CoreId, id: u64) -> Option<Irq> {
    if id > MAX_ID {
        return None;
    }
    let before = if id < FIRST_SPI {
        FIRST_SPI * core.index() as u64
    } else {
        OTHERS
    };
    Some((before + id) as Irq)
}

/// Whether the kernel keeps the interrupt `id` for itself: its timer, and on several cores the interrupts by which cores
/// call each other (03, section 7.1; 04, section 15).
pub fn is_reserved(id: u64) -> bool {
    id == IRQ_TIMER || (CORES > 1 && id <= 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_interrupt_has_a_number_of_its_own() {
        let mut seen = std::collections::BTreeSet::new();
        for core in CoreId::all() {
            for id in 0..FIRST_SPI {
                assert!(seen.insert(number(core, id)), "{core:?} {id}");
            }
        }
        for id in FIRST_SPI..=MAX_ID {
            let numbers = CoreId::all().map(|core| number(core, id));
            let numbers: std::collections::BTreeSet<_> = numbers.collect();
            assert_eq!(numbers.len(), 1, "{id} is shared");
            assert!(seen.insert(numbers.into_iter().next().flatten()), "{id}");
        }
        assert!(seen
            .iter()
            .all(|number| number.is_some_and(|n| u64::from(n) <= MAX_IRQ)));
        assert_eq!(number(CoreId::BOOT, MAX_ID + 1), None);
        assert!(CORES > 1 || number(CoreId::BOOT, 100) == Some(100));
    }
}
