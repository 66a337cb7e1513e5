//! Capability rights (ABI 02, section 3).

/// A rights word as passed to Copy, Mint and Page_Map; other bits are ignored.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rights(pub u64);

impl Rights {
    pub const NONE: Self = Self(0);
    /// Send on an endpoint, signal a notification, write to a frame.
    pub const WRITE: Self = Self(1 << 0);
    /// Receive on an endpoint, wait for a notification, read a frame.
    pub const READ: Self = Self(1 << 1);
    /// Send capabilities along.
    pub const GRANT: Self = Self(1 << 2);
    /// Let the receiver reply to a call.
    pub const GRANT_REPLY: Self = Self(1 << 3);
    pub const READ_WRITE: Self = Self::READ.union(Self::WRITE);
    pub const ALL: Self = Self(0b1111);

    #[inline]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether every right of `other` is in `self`.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    #[inline]
    pub const fn raw(self) -> u64 {
        self.0
    }
}
