//! What the ABI of aarch64 lets users do to devices through the kernel, and what it needs of a machine
//! for that.

use crate::arch::bounds::turns;
use crate::arch::PhysAddr;
use crate::cores::CoreId;

/// Where an interrupt comes from, as it was said when its handler was issued (03, section 7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    /// The GIC's number of it.
    pub id: u16,
    /// The core at which it arrives; that whose private interrupt it is.
    pub core: CoreId,
    /// How it is triggered; `None` leaves that as it is.
    pub trigger: Option<Trigger>,
}

/// How an interrupt is triggered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trigger {
    Level,
    Edge,
}

/// What names an address space to the machine.
/// As a register for the root has it: its root table, below 2^48, and above that its identifier, which tags its translations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space(u64);

impl Space {
    /// Bits of an address.
    const ADDRESS_BITS: u32 = 48;

    /// No address space.
    pub const NONE: Self = Space(0);

    /// That of the table at `root` with this identifier, which is not 0.
    pub const fn new(root: PhysAddr, asid: u16) -> Self {
        Space(root.get() | (asid as u64) << Self::ADDRESS_BITS)
    }

    /// Its root table.
    pub const fn root(self) -> PhysAddr {
        PhysAddr::new(self.0 & ((1 << Self::ADDRESS_BITS) - 1))
    }

    /// The word for the register.
    pub const fn word(self) -> u64 {
        self.0
    }
}

/// What is to be done to the caches (07, section 9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Maintenance {
    /// Data is written to where every observer finds it (to the point of coherency).
    Clean,
    /// Data is forgotten that is not yet there; lines of which only a part is meant are cleaned first.
    Invalidate,
    /// Both.
    CleanInvalidate,
    /// What was written is what is executed: data is cleaned to the point of unification, and instructions are forgotten.
    Unify,
}

/// What this architecture needs of a machine besides [`crate::arch::Platform`].
pub trait Devices {
    // ---- translations
    //
    // A machine keeps translations, each with the identifier of its address space, across entries to the kernel and on
    // every core, until it is told to forget them; it keeps none of an absent entry. On return from one of these, every
    // core does as it says, and has finished what it did by the former translation.

    /// Entries of tables were written that were absent: the walks of tables that begin from now on find them.
    fn tables_written(&self);
    /// Forgets the translation of the page at `vaddr` in the address space `asid`.
    fn forget_page(&self, asid: u16, vaddr: u64);
    /// Forgets every translation of the address space `asid`, and its cached paging structures.
    fn forget_space(&self, asid: u16);
    /// Forgets every user translation, and every cached paging structure.
    fn forget_spaces(&self);

    // ---- caches

    /// Does `what` to the `bytes` at `start`, on every core, which are at most [`MAINTENANCE_BYTES`]. Memory that the
    /// kernel cannot reach is left alone.
    fn maintain(&self, what: Maintenance, start: PhysAddr, bytes: u64);

    // ---- interrupts

    /// The highest id of an interrupt that user level may name (03, section 7; 06, section 7).
    fn max_irq(&self) -> u64;
    /// The highest target of a software-generated interrupt that the controller knows (03, section 7.5).
    fn max_sgi_target(&self) -> u64;
    /// Raises the software-generated interrupt `sgi`, below 16, at `target`, as the controller numbers targets.
    fn raise_sgi(&self, sgi: u8, target: u32);
    /// Raises the software-generated interrupt `sgi`, below 16, at `core`.
    fn signal(&self, core: CoreId, sgi: u8);
}

/// Most bytes of one step of cache maintenance.
pub const MAINTENANCE_BYTES: u64 = 256;

/// The `bytes` at `start` in steps of cache maintenance, at most `MOST`, each with its length in bytes.
pub fn steps<const MOST: u64>(
    start: PhysAddr,
    bytes: u64,
) -> impl Iterator<Item = (PhysAddr, u64)> {
    turns::<MOST, _>(0..bytes.div_ceil(MAINTENANCE_BYTES)).map(move |step| {
        let done = step * MAINTENANCE_BYTES;
        (start.offset(done), MAINTENANCE_BYTES.min(bytes - done))
    })
}

#[cfg(test)]
mod tests {
    use super::{steps, MAINTENANCE_BYTES};
    use crate::arch::PhysAddr;

    #[test]
    fn steps_cover_all_bytes_once_and_none_is_too_long() {
        let start = PhysAddr::new(0x4000_0000);
        for bytes in [0, 1, 256, 512, 513, 4096, 5000, 1 << 18] {
            let mut end = start.get();
            for (at, length) in steps::<1024>(start, bytes) {
                assert_eq!(at.get(), end, "{bytes} bytes");
                assert!((1..=MAINTENANCE_BYTES).contains(&length), "{length}");
                end += length;
            }
            assert_eq!(end - start.get(), bytes);
        }
    }
}
