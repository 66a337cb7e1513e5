//! The derivation lists (ABI 02, section 5).

use rustc_hash::FxHashMap;
use sandglass_kernel::cap::Capability;
use sandglass_kernel::inspect;
use sandglass_kernel::mem::Kind;

use super::{require, Finding};
use crate::census::{Census, Site};
use crate::isa;

/// The neighbours of every slot name it, and an empty slot has none; every slot of a list belongs to
/// a CNode, a thread or an interrupt.
pub fn neighbours_name_each_other(census: &Census) -> Finding {
    require!(
        census.homeless.is_empty(),
        "the slot {:?} is in a derivation list but belongs to nothing that exists",
        census.homeless[0]
    );
    for site in &census.sites {
        require!(
            !site.view.cap.is_null(),
            "{:?} is empty but has neighbours",
            site.id
        );
        if let Some(next) = site.view.next.and_then(|slot| census.site(slot)) {
            require!(
                next.view.prev == Some(site.slot),
                "{:?} goes on with {:?}, which comes from {:?}",
                site.id,
                next.id,
                next.view.prev
            );
        }
        if let Some(prev) = site.view.prev.and_then(|slot| census.site(slot)) {
            require!(
                prev.view.next == Some(site.slot),
                "{:?} comes from {:?}, which goes on with {:?}",
                site.id,
                prev.id,
                prev.view.next
            );
        }
    }
    Ok(())
}

/// Every slot is in exactly one list, and no list turns back on itself.
pub fn lists_have_an_end(census: &Census) -> Finding {
    let listed: usize = census.lists().map(<[usize]>::len).sum();
    require!(
        listed == census.sites.len(),
        "of {} capabilities {listed} are in lists that begin somewhere",
        census.sites.len()
    );
    Ok(())
}

/// Whether a capability has a badge, not 0.
fn has_badge(cap: Capability) -> bool {
    let badge = cap.endpoint().map(|endpoint| endpoint.badge);
    let badge = badge.or_else(|| Some(cap.notification()?.badge));
    badge.is_some_and(|badge| badge != 0)
}

/// What a capability names, such that equal names mean the same object; `None` for capabilities that
/// are alone in what they name (untyped memory) or name no object.
fn name(cap: Capability) -> Option<(u8, u64)> {
    let kind = cap.kind();
    let which = match kind {
        Kind::Null | Kind::Zombie | Kind::Untyped => return None,
        Kind::IrqHandler => u64::from(cap.irq()?),
        Kind::SchedControl => cap.core(),
        Kind::Frame
        | Kind::Endpoint
        | Kind::Notification
        | Kind::Reply
        | Kind::CNode
        | Kind::Tcb
        | Kind::SchedContext => cap.word().address().get(),
        _ => isa::name(cap)?,
    };
    Some((kind.number(), which))
}

/// All capabilities to one object stand side by side in one list: then the last of them is known by
/// its neighbours.
pub fn capabilities_to_one_object_are_neighbours(census: &Census) -> Finding {
    let mut last: FxHashMap<(u8, u64), &Site> = FxHashMap::default();
    for list in census.lists() {
        for &site in list {
            let site = &census.sites[site];
            let Some(name) = name(site.view.cap) else {
                continue;
            };
            if let Some(before) = last.insert(name, site) {
                require!(
                    before.view.next == Some(site.slot),
                    "{:?} and {:?} name the same object and are not neighbours",
                    before.id,
                    site.id
                );
                require!(
                    inspect::same_object(before.view.cap, site.view.cap),
                    "{:?} and {:?} name the same memory in different ways",
                    before.id,
                    site.id
                );
            }
        }
    }
    Ok(())
}

/// The descendants of a capability come right behind it: nothing that is not a descendant stands
/// between. So revocation, which stops at the first that is none, finds all.
pub fn children_follow_their_parent(census: &Census) -> Finding {
    for list in census.lists() {
        for (i, &parent) in list.iter().enumerate() {
            let parent = &census.sites[parent];
            if !parent.view.revocable {
                continue;
            }
            let is_child = |site: &&usize| {
                inspect::is_parent(census.k, parent.slot, census.sites[**site].slot)
            };
            let rest = &list[i + 1..];
            let children = rest.iter().take_while(|site| is_child(site)).count();
            // Beyond them there are none. Of objects only their own capabilities could be, and those
            // are neighbours; of a badge only those before the next that was minted with it.
            let beyond = match parent.view.cap.kind() {
                Kind::Untyped | Kind::IrqControl => rest.len(),
                kind if isa::is_control(kind) => rest.len(),
                _ => {
                    let own = name(parent.view.cap);
                    let has_badge = has_badge(parent.view.cap);
                    let same = rest.iter().take_while(|site| {
                        let view = census.sites[**site].view;
                        name(view.cap) == own && !(has_badge && view.first_badged)
                    });
                    same.count()
                }
            };
            let stray = rest.get(children..beyond).unwrap_or(&[]);
            let stray = stray.iter().find(|site| is_child(site));
            require!(
                stray.is_none(),
                "{:?} is a child of {:?}, but something else stands between",
                stray.map(|site| census.sites[*site].id),
                parent.id
            );
        }
    }
    Ok(())
}
