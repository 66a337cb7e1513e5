//! CNode capability data and depths (ABI 02, sections 3 and 4).

/// Bits of the guard-size field of the data word that Mint, Mutate and TCB_Configure take.
pub const GUARD_SIZE_BITS: u32 = 6;
/// Bits resolved by the lookup of a capability pointer in a system call.
pub const LOOKUP_DEPTH: u32 = 64;
/// Most objects created by one Retype (ABI 03, section 3).
pub const MAX_RETYPE_OBJECTS: u64 = 256;

/// The data word of a CNode capability: guard value above, guard size (bits) below.
///
/// Of `guard` only the low `size` bits count. A capability with `size` + radix > 64 is refused.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GuardData(pub u64);

impl GuardData {
    #[inline]
    pub const fn new(guard: u64, size: u32) -> Self {
        Self(guard << GUARD_SIZE_BITS | (size as u64 & ((1 << GUARD_SIZE_BITS) - 1)))
    }

    /// Size of the guard in bits, 0 to 63.
    #[inline]
    pub const fn size(self) -> u32 {
        (self.0 & ((1 << GUARD_SIZE_BITS) - 1)) as u32
    }

    /// Value of the guard, truncated to its size.
    #[inline]
    pub const fn guard(self) -> u64 {
        (self.0 >> GUARD_SIZE_BITS) & ((1 << self.size()) - 1)
    }

    #[inline]
    pub const fn raw(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::GuardData;

    #[test]
    fn the_guard_is_truncated_to_its_size() {
        let data = GuardData::new(0b1101, 3);
        assert_eq!((data.guard(), data.size()), (0b101, 3));
        assert_eq!(GuardData::new(7, 0).guard(), 0);
        assert_eq!(GuardData(51).size(), 51);
    }
}
