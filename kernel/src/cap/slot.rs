//! A slot as the home of a capability.

#[cfg(not(target_os = "none"))]
mod inspect;

use super::Capability;
use crate::mem::Slot;
use crate::Kernel;

/// Flags of a capability in the derivation list (02, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flags(u64);

impl Flags {
    pub const NONE: Flags = Flags(0);
    const REVOCABLE: u64 = 1;
    const FIRST_BADGED: u64 = 2;

    /// The flags of an original: both set.
    pub const fn original(set: bool) -> Self {
        Flags(if set {
            Self::REVOCABLE | Self::FIRST_BADGED
        } else {
            0
        })
    }

    pub const fn revocable(self) -> bool {
        self.0 & Self::REVOCABLE != 0
    }

    pub const fn first_badged(self) -> bool {
        self.0 & Self::FIRST_BADGED != 0
    }

    #[must_use]
    pub const fn or_first_badged(self, other: Flags) -> Self {
        Flags(self.0 | (other.0 & Self::FIRST_BADGED))
    }
}

impl Slot {
    pub fn cap(&self) -> Capability {
        Capability::from_parts(self.word(), self.data())
    }

    /// Changes the capability in place: its position and flags stay.
    pub(crate) fn set_cap(&self, k: &Kernel, cap: Capability) {
        self.set_words(k, cap.word(), cap.data());
    }

    pub fn is_empty(&self) -> bool {
        self.cap().is_null()
    }

    pub(super) fn flags(&self) -> Flags {
        Flags(self.link_flags())
    }

    pub(super) fn set_flags(&self, k: &Kernel, flags: Flags) {
        self.set_link_flags(k, flags.0);
    }
}
