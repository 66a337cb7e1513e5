//! Capabilities in messages (02, section 8).

use sandglass_abi::message::{ipc_buffer, MessageInfo, MAX_EXTRA_CAPS};

use super::message::buffer;
use super::Message;
use crate::arch::bounds::{mark, turns, Together, CAPABILITIES};
use crate::cap::{derivation, lookup};
use crate::mem::user::Buffer;
use crate::mem::{objects, Ref, Slot};
use crate::object::{Endpoint, Tcb, TcbSlot};
use crate::{Kernel, View};

/// The slots of the extra capabilities of a message, looked up.
#[derive(Clone, Copy)]
pub struct ExtraCaps {
    slots: [Option<Ref<Slot>>; MAX_EXTRA_CAPS],
}

impl ExtraCaps {
    pub const NONE: ExtraCaps = ExtraCaps {
        slots: [None; MAX_EXTRA_CAPS],
    };

    /// Slot of extra capability `i`, if one was sent. It may hold a null capability.
    pub fn get(&self, i: usize) -> Option<Ref<Slot>> {
        self.slots.get(i).copied().flatten()
    }
}

/// A capability pointer that names no slot.
#[derive(Clone, Copy)]
pub struct BadCap {
    pub cptr: u64,
}

/// Looks up the first `count` extra capabilities of `message`, of `sender`, into `extra`, which
/// holds none; none are there without a buffer.
#[inline(always)]
pub fn look_up(
    k: &View,
    sender: Ref<Tcb>,
    message: &Message,
    count: usize,
    extra: &mut ExtraCaps,
) -> Result<(), BadCap> {
    mark::<CAPABILITIES>();
    let root = objects::tcb_slot(sender, TcbSlot::CSpace).at(k).cap();
    let look_up = |i, entry: &mut Option<Ref<Slot>>| {
        if i < count {
            if let Some(cptr) = message.extra_cap(k, i) {
                let slot = lookup::slot(k, root, cptr);
                *entry = Some(slot.ok_or(BadCap { cptr })?);
            }
        }
        Ok(())
    };
    // One after the other, as in `message::copy_words`.
    let [first, second, third] = &mut extra.slots;
    look_up(0, first)?;
    look_up(1, second)?;
    look_up(2, third)
}

/// What became of the capabilities of a message.
#[derive(Clone, Copy, Default)]
pub struct Transferred {
    /// Number of capabilities processed.
    pub count: usize,
    /// Bitmap of those that arrived as badges.
    pub unwrapped: u64,
}

/// Gives the extra capabilities of the message of `sender`, which waited and which `info`
/// describes, to `receiver`, in a message through `endpoint`. They are looked up now: they may have
/// changed since the message was sent.
#[inline(never)]
pub fn transfer_late(
    k: &Kernel,
    sender: Ref<Tcb>,
    receiver: Ref<Tcb>,
    endpoint: Ref<Endpoint>,
    info: MessageInfo,
) -> Transferred {
    let message = Message::new(k, sender, info);
    let mut extra = ExtraCaps::NONE;
    match look_up(k, sender, &message, info.extra_caps(), &mut extra) {
        Ok(()) => transfer(k, receiver, Some(endpoint), &extra),
        Err(_) => Transferred::default(),
    }
}

/// Gives `extra`, capabilities of a message through `endpoint` or in a reply, to `receiver`.
#[inline(never)]
pub fn transfer(
    k: &Kernel,
    receiver: Ref<Tcb>,
    endpoint: Option<Ref<Endpoint>>,
    extra: &ExtraCaps,
) -> Transferred {
    let mut done = Transferred::default();
    let Some(target) = buffer(k, receiver, true) else {
        return done;
    };
    let mut free = receive_slot(k, receiver, target);
    let mut copies = Together::<1>::new(true);
    for i in turns::<{ MAX_EXTRA_CAPS as u64 }, _>(0..MAX_EXTRA_CAPS) {
        let Some(source) = extra.get(i) else { break };
        let cap = source.at(k).cap();
        match cap.endpoint() {
            Some(passed) if Some(passed.object) == endpoint => {
                target.write(k, ipc_buffer::CAPS_OR_BADGES + i, passed.badge);
                done.unwrapped |= 1 << i;
            }
            _ => {
                let Some(slot) = free.take() else { break };
                copies.turn();
                match derivation::derive(k, source, cap) {
                    Ok(copy) if !copy.is_null() => {
                        derivation::insert_copy(k, source, slot, copy);
                    }
                    _ => break,
                }
            }
        }
        done.count += 1;
    }
    done
}

/// The empty slot that `receiver` offers in its buffer.
fn receive_slot(k: &Kernel, receiver: Ref<Tcb>, buffer: Buffer) -> Option<Ref<Slot>> {
    let space = objects::tcb_slot(receiver, TcbSlot::CSpace).at(k).cap();
    let node = lookup::slot(k, space, buffer.read(k, ipc_buffer::RECEIVE_CNODE))?;
    let index = buffer.read(k, ipc_buffer::RECEIVE_INDEX);
    let depth = buffer.read(k, ipc_buffer::RECEIVE_DEPTH);
    let slot = lookup::exact_slot(k, node.at(k).cap(), index, depth)?;
    slot.at(k).is_empty().then_some(slot)
}
