//! Capabilities as users see them: derivation, deletion, memory and mappings (page 02; 03, sections 3 and
//! 8).

use sandglass_abi::invocation;
use sandglass_abi::object;
use sandglass_model::cap::derivation::{get, has_children};
use sandglass_model::error::Error;
use sandglass_model::invoke::{invoke, Call};
use sandglass_model::state::{CNodeId, Cap, Held, SlotId, ThreadId};
use sandglass_model::State;

/// The CNode that the tests use, with 2^8 slots, of which all 64 bits address one.
const ROOT: Cap = Cap::CNode {
    object: CNodeId(0x1000),
    radix: 8,
    guard: 0,
    guard_size: 56,
};
/// Slots of it with capabilities from the beginning.
pub const NODE: u64 = 0;
pub const UNTYPED: u64 = 1;
pub const IRQ_CONTROL: u64 = 2;
pub const ASID_CONTROL: u64 = 3;
/// What the untyped memory is.
const MEMORY: u64 = 0x20_0000;
const MEMORY_BITS: u8 = 20;
pub const ALL_RIGHTS: u64 = 15;

pub fn slot(i: u64) -> SlotId {
    SlotId::CNode(CNodeId(0x1000), i)
}

/// Untyped memory with an old word in it, and controls.
pub fn boot() -> State {
    let mut s = crate::world::empty();
    s.cnodes.insert(CNodeId(0x1000), 8);
    s.devices.ioapics = vec![24];
    s.memory.insert(MEMORY + 0x5008, 1);
    let untyped = Cap::Untyped {
        start: MEMORY,
        bits: MEMORY_BITS,
        device: false,
        watermark: 1 << MEMORY_BITS,
    };
    let caps = [ROOT, untyped, Cap::IrqControl, Cap::AsidControl];
    for (i, cap) in (0..).zip(caps) {
        let held = Held {
            cap,
            revocable: true,
            first_badged: true,
        };
        s.caps.slots.insert(slot(i), held);
        s.caps.lists.push(vec![slot(i)]);
    }
    s
}

/// Invokes what is in slot `target` with extra capabilities from the slots `extra`.
pub fn call(
    s: &mut State,
    target: u64,
    label: u64,
    words: &[u64],
    extra: &[u64],
) -> Result<(), Error> {
    let call = Call {
        caller: ThreadId(0),
        slot: slot(target),
        cap: get(s, slot(target)).expect("the tests invoke what is there"),
        label,
        words: words.to_vec(),
        extra: extra.iter().map(|i| slot(*i)).collect(),
    };
    invoke(s, &call).map(drop)
}

/// Makes `number` objects in the slots from `to` on.
pub fn retype(
    s: &mut State,
    from: u64,
    kind: u64,
    size: u64,
    to: u64,
    number: u64,
) -> Result<(), Error> {
    let words = [kind, size, 0, 0, to, number];
    call(s, from, invocation::UNTYPED_RETYPE, &words, &[NODE])
}

fn copy(s: &mut State, from: u64, to: u64) -> Result<(), Error> {
    let words = [to, 64, from, 64, ALL_RIGHTS];
    call(s, NODE, invocation::CNODE_COPY, &words, &[NODE])
}

fn mint(s: &mut State, from: u64, to: u64, badge: u64) -> Result<(), Error> {
    let words = [to, 64, from, 64, ALL_RIGHTS, badge];
    call(s, NODE, invocation::CNODE_MINT, &words, &[NODE])
}

pub fn delete(s: &mut State, i: u64) {
    let done = call(s, NODE, invocation::CNODE_DELETE, &[i, 64], &[]);
    assert_eq!(done, Ok(()));
}

pub fn revoke(s: &mut State, i: u64) {
    let done = call(s, NODE, invocation::CNODE_REVOKE, &[i, 64], &[]);
    assert_eq!(done, Ok(()));
}

/// The slots of the list that slot `first` begins.
fn list(s: &State, first: u64) -> Vec<SlotId> {
    let lists = s.caps.lists.iter();
    lists
        .filter(|list| list[0] == slot(first))
        .flatten()
        .copied()
        .collect()
}

/// 03, section 3: objects lie one behind the other from the watermark on, aligned to their size;
/// 02, section 5.1: later ones stand nearer to the memory that they are made of.
#[test]
fn objects_lie_in_order_and_derive_from_their_memory() {
    let mut s = boot();
    retype(&mut s, UNTYPED, object::ENDPOINT, 0, 10, 2).unwrap();
    retype(&mut s, UNTYPED, object::TCB, 0, 20, 1).unwrap();
    let endpoint = s.endpoints.keys().map(|id| id.0).collect::<Vec<_>>();
    assert_eq!(endpoint, [MEMORY, MEMORY + 16]);
    assert_eq!(s.threads.keys().next(), Some(&ThreadId(MEMORY + 2048)));
    assert_eq!(
        list(&s, UNTYPED),
        [slot(UNTYPED), slot(20), slot(11), slot(10)]
    );
    assert!(s.memory.is_empty(), "memory is zero before it is used");
}

/// 02, section 6.2: of an untyped and its copy, the copy may use the rest.
#[test]
fn a_copy_of_untyped_memory_leaves_it_full() {
    let mut s = boot();
    retype(&mut s, UNTYPED, object::UNTYPED, 12, 10, 1).unwrap();
    copy(&mut s, 10, 11).unwrap();
    assert_eq!(
        retype(&mut s, 10, object::ENDPOINT, 0, 20, 1),
        Err(Error::NotEnoughMemory(0))
    );
    assert_eq!(copy(&mut s, 10, 12), Err(Error::RevokeFirst));
    retype(&mut s, 11, object::ENDPOINT, 0, 20, 1).unwrap();
    revoke(&mut s, 10);
    assert_eq!(list(&s, UNTYPED), [slot(UNTYPED), slot(10)]);
    retype(&mut s, 10, object::ENDPOINT, 0, 20, 1).unwrap();
}

/// 02, section 7.2: what counts is whether a capability is an original.
#[test]
fn revocation_takes_what_was_derived() {
    let mut s = boot();
    retype(&mut s, UNTYPED, object::ENDPOINT, 0, 10, 1).unwrap();
    mint(&mut s, 10, 11, 7).unwrap();
    copy(&mut s, 11, 12).unwrap();
    mint(&mut s, 10, 13, 8).unwrap();
    copy(&mut s, 10, 14).unwrap();
    revoke(&mut s, 14);
    revoke(&mut s, 13);
    assert_eq!(list(&s, UNTYPED).len(), 6, "neither has children");
    revoke(&mut s, 11);
    assert_eq!(get(&s, slot(12)), None);
    assert!(get(&s, slot(13)).is_some());
    revoke(&mut s, 10);
    assert_eq!(list(&s, UNTYPED), [slot(UNTYPED), slot(10)]);
}

/// 02, section 7.1, with a CNode that holds its own last capability, and more behind it.
#[test]
fn a_cnode_in_itself_can_be_revoked() {
    let mut s = boot();
    retype(&mut s, UNTYPED, object::CNODE, 2, 10, 1).unwrap();
    retype(&mut s, UNTYPED, object::ENDPOINT, 0, 20, 2).unwrap();
    let moves = [
        (invocation::CNODE_MOVE, 20, 0),
        (invocation::CNODE_COPY, 10, 1),
        (invocation::CNODE_MOVE, 21, 2),
    ];
    for (label, from, to) in moves {
        let words = [to, 2, from, 64, ALL_RIGHTS];
        call(&mut s, 10, label, &words, &[NODE]).unwrap();
    }
    delete(&mut s, 10);
    assert!(!s.endpoints.is_empty(), "the CNode still names itself");
    revoke(&mut s, UNTYPED);
    assert_eq!(list(&s, UNTYPED), [slot(UNTYPED)]);
    assert_eq!(s.caps.slots.len(), 4);
}

/// 02, section 6: Rotate swaps two capabilities with their places.
#[test]
fn rotate_swaps_places_in_the_lists() {
    let mut s = boot();
    retype(&mut s, UNTYPED, object::REPLY, 0, 10, 1).unwrap();
    let words = [IRQ_CONTROL, 64, 0, 10, 64, 0, IRQ_CONTROL, 64];
    call(&mut s, NODE, invocation::CNODE_ROTATE, &words, &[NODE; 2]).unwrap();
    assert_eq!(list(&s, 10), [slot(10)]);
    assert_eq!(get(&s, slot(10)), Some(Cap::IrqControl));
    assert_eq!(list(&s, UNTYPED), [slot(UNTYPED), slot(IRQ_CONTROL)]);
    assert!(has_children(&s, slot(UNTYPED)));
}
