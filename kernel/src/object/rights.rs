//! Rights of capabilities (02, section 3).

use sandglass_abi::rights::Rights as Abi;

/// Rights of an endpoint, notification or reply capability; also a user's rights word, of which
/// unknown bits are ignored.
///
/// Beside the rights of the ABI there is the one to call, which an endpoint capability has in place of
/// the right to write, and never both, and never without a right to grant: no rights word can name it, and
/// what masks the right to write masks it, too (decision *calls only*).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rights(u8);

impl Rights {
    pub const ALL: Rights = Rights::new(Abi::ALL.raw());

    const CALL: u8 = 1 << 4;

    /// The known bits of a user's rights word.
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

    pub const fn grant(self) -> bool {
        self.0 as u64 & Abi::GRANT.raw() != 0
    }

    pub const fn grant_reply(self) -> bool {
        self.0 as u64 & Abi::GRANT_REPLY.raw() != 0
    }

    /// Whether a message may be sent: one that is a call, if `by_call`.
    #[inline(always)]
    pub const fn sends(self, by_call: bool) -> bool {
        let call = if by_call { Self::CALL } else { 0 };
        self.0 & (Abi::WRITE.raw() as u8 | call) != 0
    }

    /// Whether a call may be sent, and answered: a bit for each set of rights says so.
    #[inline(always)]
    pub const fn calls(self) -> bool {
        const CALLING: u32 = {
            let mut sets = 0;
            let mut bits = 0;
            while bits < u32::BITS {
                let rights = Rights(bits as u8);
                sets |= ((rights.sends(true) && rights.answerable()) as u32) << bits;
                bits += 1;
            }
            sets
        };
        CALLING >> (self.0 & 31) & 1 != 0
    }

    /// Whether who is sent to can answer.
    pub const fn answerable(self) -> bool {
        self.0 & (Abi::GRANT.raw() | Abi::GRANT_REPLY.raw()) as u8 != 0
    }

    /// Whether messages that are no calls are refused.
    pub const fn calls_only(self) -> bool {
        self.0 & Self::CALL != 0
    }

    /// The right to call in place of that to write.
    #[must_use]
    pub const fn calling(self) -> Self {
        if self.write() {
            Rights(self.0 & !(Abi::WRITE.raw() as u8) | Self::CALL).without_vain_call()
        } else {
            self
        }
    }

    /// Only the rights that both have: the user's rights word `mask` names the right to call by that to
    /// write.
    #[must_use]
    pub const fn masked(self, mask: Rights) -> Self {
        let call = if mask.write() { Self::CALL } else { 0 };
        Rights(self.0 & (mask.0 | call)).without_vain_call()
    }

    /// Nobody can answer a call without a right to grant: the caller would be lost, and its time with it.
    const fn without_vain_call(self) -> Self {
        if self.answerable() {
            self
        } else {
            Rights(self.0 & !Self::CALL)
        }
    }

    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    /// Those of a capability, from its flags.
    pub(crate) const fn from_flags(flags: u8) -> Self {
        Rights(flags & (Self::ALL.0 | Self::CALL))
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

    pub(crate) const fn from_flags(flags: u8) -> Self {
        FrameRights(flags & 3)
    }

    pub(crate) const fn flags(self) -> u8 {
        self.0
    }

    /// These rights as far as `mask` allows them.
    #[must_use]
    #[inline(always)]
    pub fn masked(self, mask: Rights) -> Self {
        if self.0 >= Self::KERNEL_ONLY.0 || !mask.read() {
            Self::KERNEL_ONLY
        } else if self.0 == Self::READ_WRITE.0 && mask.write() {
            Self::READ_WRITE
        } else {
            Self::READ_ONLY
        }
    }
}
