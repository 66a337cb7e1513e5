//! The message info word and the IPC buffer (ABI 01, sections 2 and 3).

/// Most message registers of one message (ABI 01, section 2).
pub const MAX_LENGTH: usize = 120;
/// Most capabilities sent with one message (ABI 01, section 2).
pub const MAX_EXTRA_CAPS: usize = 3;
/// Message registers that travel in CPU registers (ABI 01, section 3).
pub const REGISTER_MRS: usize = 4;

/// Widths and positions of the message info fields, in bits (ABI 01, section 2).
pub const LENGTH_BITS: u32 = 7;
pub const EXTRA_CAPS_BITS: u32 = 2;
pub const CAPS_UNWRAPPED_BITS: u32 = 3;
pub const LABEL_BITS: u32 = 52;
const EXTRA_CAPS_SHIFT: u32 = LENGTH_BITS;
const CAPS_UNWRAPPED_SHIFT: u32 = EXTRA_CAPS_SHIFT + EXTRA_CAPS_BITS;
const LABEL_SHIFT: u32 = CAPS_UNWRAPPED_SHIFT + CAPS_UNWRAPPED_BITS;
const _: () = assert!(LABEL_SHIFT + LABEL_BITS == 64);

/// The word that describes a message: length, extra capabilities, label (ABI 01, section 2).
///
/// Any word is a `MessageInfo`; in particular its raw length may exceed [`MAX_LENGTH`], which
/// [`MessageInfo::length`] treats as `MAX_LENGTH`, as the ABI asks of every reader.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MessageInfo(pub u64);

impl MessageInfo {
    /// An info word; each field is truncated to its width.
    #[inline]
    pub const fn new(label: u64, caps_unwrapped: u64, extra_caps: usize, length: usize) -> Self {
        Self(
            (length as u64 & mask(LENGTH_BITS))
                | (extra_caps as u64 & mask(EXTRA_CAPS_BITS)) << EXTRA_CAPS_SHIFT
                | (caps_unwrapped & mask(CAPS_UNWRAPPED_BITS)) << CAPS_UNWRAPPED_SHIFT
                | label << LABEL_SHIFT,
        )
    }

    #[inline]
    pub const fn from_raw(word: u64) -> Self {
        Self(word)
    }

    #[inline]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// Operation, error or fault number, or the sender's free choice.
    #[inline]
    pub const fn label(self) -> u64 {
        self.0 >> LABEL_SHIFT
    }

    /// Number of message registers, at most [`MAX_LENGTH`] whatever the word says.
    #[inline]
    pub const fn length(self) -> usize {
        let raw = (self.0 & mask(LENGTH_BITS)) as usize;
        if raw > MAX_LENGTH {
            MAX_LENGTH
        } else {
            raw
        }
    }

    /// Number of capabilities sent or received, 0 to [`MAX_EXTRA_CAPS`].
    #[inline]
    pub const fn extra_caps(self) -> usize {
        (self.0 >> EXTRA_CAPS_SHIFT & mask(EXTRA_CAPS_BITS)) as usize
    }

    /// Whether all words travel in CPU registers and no capabilities are sent.
    #[inline]
    pub const fn is_short(self) -> bool {
        // Extra capabilities stand directly above the length.
        self.0 & mask(LENGTH_BITS + EXTRA_CAPS_BITS) <= REGISTER_MRS as u64
    }

    /// Label and length of a message that [is short](Self::is_short), and that is all it has.
    #[inline]
    pub const fn plain(self) -> Self {
        Self(self.0 & !(mask(EXTRA_CAPS_BITS + CAPS_UNWRAPPED_BITS) << EXTRA_CAPS_SHIFT))
    }

    /// Bitmap of received capabilities that arrived as badges (output only).
    #[inline]
    pub const fn caps_unwrapped(self) -> u64 {
        self.0 >> CAPS_UNWRAPPED_SHIFT & mask(CAPS_UNWRAPPED_BITS)
    }
}

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// The IPC buffer's layout (ABI 01, section 3). Indices count words from the start of the buffer.
pub mod ipc_buffer {
    use super::{MAX_EXTRA_CAPS, MAX_LENGTH};

    /// Size and required alignment of the user virtual address, in bits and bytes.
    pub const SIZE_BITS: u32 = 10;
    pub const SIZE: usize = 1 << SIZE_BITS;
    /// Number of words.
    pub const WORDS: usize = SIZE / 8;

    /// Never read or written by the kernel.
    pub const TAG: usize = 0;
    /// Message register *i* is word `MESSAGE + i`.
    pub const MESSAGE: usize = 1;
    /// Free for the user.
    pub const USER_DATA: usize = MESSAGE + MAX_LENGTH;
    /// Sending: capability pointers of the extra capabilities. Receiving: badges of the
    /// unwrapped ones.
    pub const CAPS_OR_BADGES: usize = USER_DATA + 1;
    /// Capability pointer of the CNode that contains the receive slot.
    pub const RECEIVE_CNODE: usize = CAPS_OR_BADGES + MAX_EXTRA_CAPS;
    /// Index of the receive slot below the receive CNode.
    pub const RECEIVE_INDEX: usize = RECEIVE_CNODE + 1;
    /// Number of bits of the index to resolve.
    pub const RECEIVE_DEPTH: usize = RECEIVE_INDEX + 1;
    const _: () = assert!(RECEIVE_DEPTH + 1 == WORDS);
    const _: () = assert!(USER_DATA == 121 && CAPS_OR_BADGES == 122 && RECEIVE_CNODE == 125);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_overlap() {
        let info = MessageInfo::new(0xf_ffff_ffff_ffff, 0, 3, 0);
        assert_eq!((info.label(), info.extra_caps()), (0xf_ffff_ffff_ffff, 3));
        assert_eq!((info.length(), info.caps_unwrapped()), (0, 0));
        let info = MessageInfo::new(0, 0b101, 0, 120);
        assert_eq!(info.raw(), 120 | 0b101 << 9);
        assert_eq!(MessageInfo::new(1, 0, 1, 6).raw(), 1 << 12 | 1 << 7 | 6);
    }

    #[test]
    fn a_length_above_the_maximum_reads_as_the_maximum() {
        assert_eq!(MessageInfo::from_raw(127).length(), MAX_LENGTH);
        assert_eq!(MessageInfo::from_raw(u64::MAX).length(), MAX_LENGTH);
    }
}
