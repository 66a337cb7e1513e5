//! Physical addresses: numbers, with no authority.

/// A physical address in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PhysAddr(u64);

impl PhysAddr {
    pub const fn new(address: u64) -> Self {
        PhysAddr(address)
    }

    pub const fn get(self) -> u64 {
        self.0
    }

    /// The address `bytes` further on; addresses are below 2^48, so this does not wrap.
    #[must_use]
    pub const fn offset(self, bytes: u64) -> Self {
        PhysAddr(self.0.wrapping_add(bytes))
    }
}
