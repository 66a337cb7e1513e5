//! What passes from a sender to a receiver: words and capabilities (01, section 5.6; 02,
//! section 8).

use sandglass_abi::message::ipc_buffer::CAPS_OR_BADGES;
use sandglass_abi::message::MessageInfo;

use super::message::{self, Access};
use crate::cap::{derivation, lookup, rights};
use crate::state::{Cap, EndpointId, LookupFailure, SlotId, State, ThreadId};

/// What a message passes through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Channel {
    /// The endpoint; `None` for a reply.
    pub endpoint: Option<EndpointId>,
    /// What the receiver is told about the sender's capability.
    pub badge: u64,
    /// Whether capabilities may pass.
    pub grant: bool,
}

/// The message in `sender`'s registers and buffer reaches `receiver` (01, section 5.6).
pub fn message(s: &mut State, sender: ThreadId, receiver: ThreadId, channel: Channel) {
    let label = message::info(s, sender).label();
    let words = message::words(s, sender);
    // "Looked up again in the sender's CSpace (a failing lookup: no caps)."
    let sent = if channel.grant {
        extra_slots(s, sender).unwrap_or_default()
    } else {
        Vec::new()
    };
    let length = message::set_words(s, receiver, &words);
    let (extra, unwrapped) = capabilities(s, receiver, &sent, channel.endpoint);
    message::set_badge(s, receiver, channel.badge);
    message::set_info(
        s,
        receiver,
        MessageInfo::new(label, unwrapped, extra, length),
    );
}

/// The slots of the capabilities that `sender` sends (01, section 5.1 step 2).
///
/// # Errors
/// The address that does not lead to a slot, and why.
pub fn extra_slots(s: &State, sender: ThreadId) -> Result<Vec<SlotId>, (u64, LookupFailure)> {
    message::extra_cptrs(s, sender)
        .into_iter()
        .map(|cptr| lookup::of_syscall(s, sender, cptr).map_err(|failure| (cptr, failure)))
        .collect()
}

/// The capabilities in the slots `sent` reach `receiver`, as badges or as copies. Returns how many
/// were processed, and which of them as badges (02, section 8).
fn capabilities(
    s: &mut State,
    receiver: ThreadId,
    sent: &[SlotId],
    through: Option<EndpointId>,
) -> (usize, u64) {
    let Some(buffer) = message::buffer(s, receiver, Access::Write) else {
        return (0, 0);
    };
    let mut free = receive_slot(s, receiver);
    let mut unwrapped = 0;
    for (i, &source) in sent.iter().enumerate() {
        let cap = derivation::get(s, source);
        match cap {
            Some(Cap::Endpoint { object, badge, .. }) if Some(object) == through => {
                message::store(s, buffer, CAPS_OR_BADGES + i, badge);
                unwrapped |= 1 << i;
            }
            _ => {
                // At most one capability per message: the slot is used up.
                let copied = cap.and_then(|cap| copy(s, source, cap, free.take()?));
                if copied.is_none() {
                    return (i, unwrapped);
                }
            }
        }
    }
    (sent.len(), unwrapped)
}

/// Puts a copy of `cap`, which is in `source`, into `slot`; `None` if it cannot be copied.
fn copy(s: &mut State, source: SlotId, cap: Cap, slot: SlotId) -> Option<()> {
    let copy = rights::derive(s, source, cap).ok()??;
    derivation::insert(s, slot, copy, source);
    Some(())
}

/// The empty slot in which `receiver` wants a capability (02, section 8 step 1).
fn receive_slot(s: &State, receiver: ThreadId) -> Option<SlotId> {
    let (cnode, index, depth) = message::receive_window(s, receiver)?;
    let root = lookup::of_syscall(s, receiver, cnode).ok()?;
    let root = derivation::get(s, root);
    let slot = lookup::of_operation(s, root, index, depth, false).ok()?;
    derivation::get(s, slot).is_none().then_some(slot)
}
