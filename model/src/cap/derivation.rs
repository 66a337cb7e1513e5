//! The derivation lists (02, section 5).
//!
//! A capability's children stand behind it in its list; which of those that follow are children is
//! not stored but computed from what the capabilities name.

use crate::cap::region::{same_object, same_region};
use crate::state::{Cap, Held, SlotId, State};

/// The capability in `slot`; `None` if it is empty.
pub fn get(s: &State, slot: SlotId) -> Option<Cap> {
    s.caps.slots.get(&slot).map(|held| held.cap)
}

/// Puts `cap`, derived from the one in `source`, into the empty `slot` (02, section 5.1).
///
/// Untyped memory that was copied counts as full: its copy may use the rest (02, section 6.2).
pub fn insert(s: &mut State, slot: SlotId, cap: Cap, source: SlotId) {
    let original = s.caps.slots[&source].cap;
    let changed = changed(cap, original);
    insert_behind(
        s,
        slot,
        Held {
            cap,
            revocable: changed,
            first_badged: changed,
        },
        source,
    );
    if let Cap::Untyped {
        start,
        bits,
        device,
        ..
    } = original
    {
        replace(
            s,
            source,
            Cap::Untyped {
                start,
                bits,
                device,
                watermark: 1 << bits,
            },
        );
    }
}

/// Puts `cap`, the first to a new object, into the empty `slot`, as a child of the one in `parent`
/// (02, section 5.1).
pub fn insert_original(s: &mut State, slot: SlotId, cap: Cap, parent: SlotId) {
    insert_behind(
        s,
        slot,
        Held {
            cap,
            revocable: true,
            first_badged: true,
        },
        parent,
    );
}

/// Changes the capability in `slot`; its place and flags stay.
pub fn replace(s: &mut State, slot: SlotId, cap: Cap) {
    s.caps
        .slots
        .get_mut(&slot)
        .expect("only a capability that is there is changed")
        .cap = cap;
}

/// Moves what is in `from` to the empty `to`, with its place, as `cap` (02, section 5.1).
pub fn move_to(s: &mut State, from: SlotId, to: SlotId, cap: Cap) {
    let held = s
        .caps
        .slots
        .remove(&from)
        .expect("only a capability that is there is moved");
    s.caps.slots.insert(to, Held { cap, ..held });
    let (list, place) = place_of(s, from);
    s.caps.lists[list][place] = to;
    sort_lists(s);
}

/// What is in `a` and in `b` changes places, each with its place in its list, as `cap_a` (which
/// comes from `a`) and `cap_b` (02, section 6, Rotate).
pub fn swap(s: &mut State, a: SlotId, cap_a: Cap, b: SlotId, cap_b: Cap) {
    let (held_a, held_b) = (s.caps.slots[&a], s.caps.slots[&b]);
    s.caps.slots.insert(
        b,
        Held {
            cap: cap_a,
            ..held_a
        },
    );
    s.caps.slots.insert(
        a,
        Held {
            cap: cap_b,
            ..held_b
        },
    );
    let ((list_a, place_a), (list_b, place_b)) = (place_of(s, a), place_of(s, b));
    s.caps.lists[list_a][place_a] = b;
    s.caps.lists[list_b][place_b] = a;
    sort_lists(s);
}

/// Empties `slot`: its neighbours become each other's, and the next one stands for the first of its
/// badge if this one did (02, section 5.4).
pub fn remove(s: &mut State, slot: SlotId) {
    let next = next(s, slot);
    let (list, place) = place_of(s, slot);
    s.caps.lists[list].remove(place);
    let held = s
        .caps
        .slots
        .remove(&slot)
        .expect("only a capability that is there is removed");
    if let Some(next) = next.and_then(|next| s.caps.slots.get_mut(&next)) {
        next.first_badged |= held.first_badged;
    }
    sort_lists(s);
}

/// Whether the next in the list is a child (02, section 5.3).
pub fn has_children(s: &State, slot: SlotId) -> bool {
    first_child(s, slot).is_some()
}

/// The next in the list, if it is a child of the one in `slot`, which may be empty (02, section
/// 5.2).
pub fn first_child(s: &State, slot: SlotId) -> Option<SlotId> {
    let parent = s.caps.slots.get(&slot)?;
    next(s, slot).filter(|child| is_parent(parent, &s.caps.slots[child]))
}

/// Whether no other capability names the object: neither neighbour does (02, section 5.3).
pub fn is_final(s: &State, slot: SlotId) -> bool {
    let cap = s.caps.slots[&slot].cap;
    let before = previous(s, slot).and_then(|slot| get(s, slot));
    let after = next(s, slot).and_then(|slot| get(s, slot));
    !before.is_some_and(|before| same_object(before, cap))
        && !after.is_some_and(|after| same_object(cap, after))
}

/// Whether `b`, the next behind `a`, is derived from it (02, section 5.2).
fn is_parent(a: &Held, b: &Held) -> bool {
    let badge_allows = match (badge(a.cap), badge(b.cap)) {
        (Some(0), _) | (None, _) => true,
        (Some(own), other) => other == Some(own) && !b.first_badged,
    };
    // Rule 3.
    let stands_alone = matches!(a.cap, Cap::SgiSignal { .. }) && b.first_badged;
    a.revocable && same_region(a.cap, b.cap) && badge_allows && !stands_alone
}

/// Whether `cap`, derived from `source`, is something new, whose copies it can revoke (02, section
/// 5.1).
fn changed(cap: Cap, source: Cap) -> bool {
    match cap {
        Cap::Endpoint { .. } | Cap::Notification { .. } => badge(cap) != badge(source),
        Cap::IrqHandler { .. } | Cap::SgiSignal { .. } => source == Cap::IrqControl,
        Cap::Untyped { .. } => true,
        Cap::IoPort { .. } => source == Cap::IoPortControl,
        _ => false,
    }
}

/// The badge of a capability that can have one.
fn badge(cap: Cap) -> Option<u64> {
    match cap {
        Cap::Endpoint { badge, .. } | Cap::Notification { badge, .. } => Some(badge),
        _ => None,
    }
}

// ------------------------------------------------------------------------------------ lists

/// Puts `held` into the empty `slot`, immediately behind `source`.
fn insert_behind(s: &mut State, slot: SlotId, held: Held, source: SlotId) {
    let before = s.caps.slots.insert(slot, held);
    assert!(before.is_none(), "a capability goes into an empty slot");
    let (list, place) = place_of(s, source);
    s.caps.lists[list].insert(place + 1, slot);
}

/// The list that `slot` is in, and its place in it.
fn place_of(s: &State, slot: SlotId) -> (usize, usize) {
    let place_in = |list: &Vec<SlotId>| list.iter().position(|other| *other == slot);
    s.caps
        .lists
        .iter()
        .enumerate()
        .find_map(|(list, slots)| Some((list, place_in(slots)?)))
        .expect("a slot that is not empty is in a list")
}

fn next(s: &State, slot: SlotId) -> Option<SlotId> {
    let (list, place) = place_of(s, slot);
    s.caps.lists[list].get(place + 1).copied()
}

fn previous(s: &State, slot: SlotId) -> Option<SlotId> {
    let (list, place) = place_of(s, slot);
    s.caps.lists[list].get(place.checked_sub(1)?).copied()
}

/// The lists are in the order of their first slots, and none is empty.
fn sort_lists(s: &mut State) {
    s.caps.lists.retain(|list| !list.is_empty());
    s.caps.lists.sort_by_key(|list| list[0]);
}

#[cfg(test)]
mod tests {
    use super::is_parent;
    use crate::state::{Cap, EndpointId, Held, Rights, ThreadId};

    /// A capability to an endpoint with `badge`, and the flags of its slot.
    fn held(badge: u64, revocable: bool, first_badged: bool) -> Held {
        let rights = Rights {
            write: true,
            read: true,
            grant: true,
            grant_reply: true,
            call: false,
        };
        let cap = Cap::Endpoint {
            object: EndpointId(0x1000),
            badge,
            rights,
        };
        Held {
            cap,
            revocable,
            first_badged,
        }
    }

    #[test]
    fn only_a_revocable_capability_is_a_parent() {
        let thread = Cap::Thread(ThreadId(0x1000));
        let copy = Held {
            cap: thread,
            revocable: false,
            first_badged: false,
        };
        let original = Held {
            revocable: true,
            ..copy
        };
        assert!(is_parent(&original, &copy));
        assert!(!is_parent(&copy, &copy));
    }

    #[test]
    fn an_unbadged_endpoint_is_the_parent_of_all_badges() {
        let original = held(0, true, true);
        assert!(is_parent(&original, &held(0, false, false)));
        assert!(is_parent(&original, &held(7, true, true)));
    }

    #[test]
    fn a_badged_endpoint_is_the_parent_of_its_copies() {
        let minted = held(7, true, true);
        assert!(is_parent(&minted, &held(7, false, false)));
        assert!(
            !is_parent(&minted, &held(7, true, true)),
            "minted elsewhere"
        );
        assert!(!is_parent(&minted, &held(8, false, false)));
        assert!(!is_parent(&minted, &held(0, false, false)));
    }
}
