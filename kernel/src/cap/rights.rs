//! Rights of capabilities (02, section 3).

use sandglass_abi::rights::Rights as Abi;

/// Rights of an endpoint, notification or reply capability; also a user's rights word, of which
/// unknown bits are ignored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rights(u8);

impl Rights {
    pub const ALL: Rights = Rights::new(Abi::ALL.raw());

    /// The known bits of a user's rights word.
    #[inline(always)]
    pub const fn new(word: u64) -> Self {
        Rights((word & Abi::ALL.raw()) as u8)
    }

    #[inline(always)]
    pub const fn write(self) -> bool {
        self.0 as u64 & Abi::WRITE.raw() != 0
    }

    #[inline(always)]
    pub const fn read(self) -> bool {
        self.0 as u64 & Abi::READ.raw() != 0
    }

    #[inline(always)]
    pub const fn grant(self) -> bool {
        self.0 as u64 & Abi::GRANT.raw() != 0
    }

    #[inline(always)]
    pub const fn grant_reply(self) -> bool {
        self.0 as u64 & Abi::GRANT_REPLY.raw() != 0
    }

    /// Only the rights that both have.
    #[must_use]
    pub const fn masked(self, mask: Rights) -> Self {
        Rights(self.0 & mask.0)
    }

    pub(super) const fn bits(self) -> u8 {
        self.0
    }
}

/// Rights of a frame capability and of a mapping, as the capability's flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameRights(u8);

impl FrameRights {
    pub const READ_WRITE: FrameRights = FrameRights(0);
    pub const READ_ONLY: FrameRights = FrameRights(1);
    /// No access for user code; the mapping exists all the same.
    pub const KERNEL_ONLY: FrameRights = FrameRights(2);

    #[inline(always)]
    pub(super) const fn from_flags(flags: u8) -> Self {
        FrameRights(flags & 3)
    }

    pub(super) const fn flags(self) -> u8 {
        self.0
    }

    /// These rights as far as `mask` allows them.
    #[must_use]
    #[inline(always)]
    pub fn masked(self, mask: Rights) -> Self {
        if broken!(WriteAloneReads) && self.0 == Self::READ_WRITE.0 && mask.write() {
            self
        } else if self.0 >= Self::KERNEL_ONLY.0 || !mask.read() {
            Self::KERNEL_ONLY
        } else if self.0 == Self::READ_WRITE.0 && mask.write() {
            Self::READ_WRITE
        } else {
            Self::READ_ONLY
        }
    }
}
