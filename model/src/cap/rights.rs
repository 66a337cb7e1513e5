//! Masking, updating and deriving capabilities (02, sections 3 and 6).

use crate::cap::derivation;
use crate::error::Error;
use crate::state::{Cap, FrameRights, Rights, SlotId, State};
use sandglass_abi::cnode::{GuardData, LOOKUP_DEPTH};
use sandglass_abi::rights::Rights as Word;

/// `cap` with at most the rights of the word `rights` (02, section 3).
pub fn mask(cap: Cap, rights: u64) -> Cap {
    let word = Word(rights);
    match cap {
        Cap::Endpoint {
            object,
            badge,
            rights,
        } => Cap::Endpoint {
            object,
            badge,
            rights: mask_messages(rights, word),
        },
        Cap::Notification {
            object,
            badge,
            rights,
        } => Cap::Notification {
            object,
            badge,
            rights: mask_messages(rights, word),
        },
        Cap::Reply { object, can_grant } => Cap::Reply {
            object,
            can_grant: can_grant && word.contains(Word::GRANT),
        },
        Cap::Frame {
            start,
            bits,
            device,
            rights,
            mapping,
        } => Cap::Frame {
            start,
            bits,
            device,
            rights: mask_frame(rights, word),
            mapping,
        },
        other => other,
    }
}

fn mask_messages(rights: Rights, word: Word) -> Rights {
    let grant = rights.grant && word.contains(Word::GRANT);
    let grant_reply = rights.grant_reply && word.contains(Word::GRANT_REPLY);
    Rights {
        write: rights.write && word.contains(Word::WRITE),
        read: rights.read && word.contains(Word::READ),
        grant,
        grant_reply,
        // A call that nobody could answer is refused.
        call: rights.call && word.contains(Word::WRITE) && (grant || grant_reply),
    }
}

/// `cap` with the right to call in place of that to write; only for endpoints (decision *calls only*).
pub fn calling(cap: Cap) -> Option<Cap> {
    match cap {
        Cap::Endpoint {
            object,
            badge,
            rights,
        } => Some(Cap::Endpoint {
            object,
            badge,
            rights: Rights {
                write: false,
                call: (rights.call || rights.write) && (rights.grant || rights.grant_reply),
                ..rights
            },
        }),
        _ => None,
    }
}

/// What the word `mask` leaves of the `rights` to a frame: writing needs reading (02, section 3; 07,
/// section 6).
pub fn mask_frame(rights: FrameRights, mask: Word) -> FrameRights {
    match rights {
        FrameRights::KernelOnly => FrameRights::KernelOnly,
        _ if !mask.contains(Word::READ) => FrameRights::KernelOnly,
        FrameRights::ReadOnly => FrameRights::ReadOnly,
        _ if !mask.contains(Word::WRITE) => FrameRights::ReadOnly,
        FrameRights::ReadWrite => FrameRights::ReadWrite,
    }
}

/// `cap` with `data` as badge or guard; `None` is the null capability (02, section 6.1).
pub fn update(cap: Cap, data: u64, preserve: bool) -> Option<Cap> {
    match cap {
        Cap::Endpoint {
            object,
            badge,
            rights,
        } => (!preserve && badge == 0).then_some(Cap::Endpoint {
            object,
            badge: data,
            rights,
        }),
        Cap::Notification {
            object,
            badge,
            rights,
        } => (!preserve && badge == 0).then_some(Cap::Notification {
            object,
            badge: data,
            rights,
        }),
        Cap::CNode { object, radix, .. } => {
            let data = GuardData(data);
            let fits = data.size() + u32::from(radix) <= LOOKUP_DEPTH;
            let (guard, guard_size) = (data.guard(), data.size() as u8);
            fits.then_some(Cap::CNode {
                object,
                radix,
                guard,
                guard_size,
            })
        }
        other => Some(other),
    }
}

/// What a copy of `cap`, which is (a form of) the one in `source`, holds; `None` is the null
/// capability (02, section 6.2).
///
/// # Errors
/// RevokeFirst for untyped memory in use; IllegalOperation for a paging structure that is not
/// mapped and for a root that has no identifier.
pub fn derive(s: &State, source: SlotId, cap: Cap) -> Result<Option<Cap>, Error> {
    match cap {
        Cap::IrqControl | Cap::IoPortControl => Ok(None),
        Cap::Untyped { .. } if derivation::has_children(s, source) => Err(Error::RevokeFirst),
        Cap::Frame {
            start,
            bits,
            device,
            rights,
            ..
        } => Ok(Some(Cap::Frame {
            start,
            bits,
            device,
            rights,
            mapping: None,
        })),
        Cap::Paging { mapping: None, .. } | Cap::Root { asid: None, .. } => {
            Err(Error::IllegalOperation)
        }
        other => Ok(Some(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{CNodeId, EndpointId};

    const ALL: Rights = Rights {
        write: true,
        read: true,
        grant: true,
        grant_reply: true,
        call: false,
    };

    /// 02, section 6.1: only an unbadged capability takes a badge, and only from Mint.
    #[test]
    fn a_badge_is_given_once() {
        let object = EndpointId(0x1000);
        let unbadged = Cap::Endpoint {
            object,
            badge: 0,
            rights: ALL,
        };
        let badged = Cap::Endpoint {
            object,
            badge: 7,
            rights: ALL,
        };
        assert_eq!(update(unbadged, 7, false), Some(badged));
        assert_eq!(update(unbadged, 7, true), None);
        assert_eq!(update(badged, 7, false), None);
        assert_eq!(update(badged, 0, false), None);
    }

    /// 02, section 3: guard size and radix resolve 64 bits at most.
    #[test]
    fn a_guard_fits_above_the_radix() {
        let node = Cap::CNode {
            object: CNodeId(0x1000),
            radix: 4,
            guard: 1,
            guard_size: 1,
        };
        assert!(update(node, GuardData::new(5, 60).raw(), true).is_some());
        assert_eq!(update(node, GuardData::new(5, 61).raw(), true), None);
    }

    /// 02, section 3: a frame that cannot be read cannot be written.
    #[test]
    fn writing_a_frame_needs_reading() {
        let frame = |rights| Cap::Frame {
            start: 0x1000,
            bits: 12,
            device: false,
            rights,
            mapping: None,
        };
        let masked = |rights, word: Word| mask(frame(rights), word.raw());
        use FrameRights::{KernelOnly, ReadOnly, ReadWrite};
        assert_eq!(masked(ReadWrite, Word::READ_WRITE), frame(ReadWrite));
        assert_eq!(masked(ReadWrite, Word::READ), frame(ReadOnly));
        assert_eq!(masked(ReadWrite, Word::WRITE), frame(KernelOnly));
        assert_eq!(masked(ReadOnly, Word::ALL), frame(ReadOnly));
        assert_eq!(masked(KernelOnly, Word::ALL), frame(KernelOnly));
    }
}
