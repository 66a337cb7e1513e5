//! Physical addresses, and ranges of them: numbers, with no authority.

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
        PhysAddr(self.0 + bytes)
    }
}

/// Physical addresses `start..end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    pub start: u64,
    pub end: u64,
}

impl Range {
    pub const fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// Whether the two have an address in common.
    pub const fn overlaps(self, other: Range) -> bool {
        self.start < other.end && other.start < self.end && !self.is_empty() && !other.is_empty()
    }
}
