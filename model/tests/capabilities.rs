//! Capabilities as users see them: derivation, deletion, memory and mappings (page 02; 03, sections 3 and
//! 8).

use sandglass_abi::invocation::{self, x86_64};
use sandglass_abi::object;
use sandglass_abi::object::x86_64 as kind;
use sandglass_model::cap::derivation::{get, has_children};
use sandglass_model::error::Error;
use sandglass_model::invoke::{invoke, Call};
use sandglass_model::state::{
    CNodeId, Cap, Entry, FrameRights, Held, LookupFailure, Mapping, SlotId, ThreadId,
};
use sandglass_model::State;

/// The CNode that the tests use, with 2^8 slots, of which all 64 bits address one.
const ROOT: Cap = Cap::CNode {
    object: CNodeId(0x1000),
    radix: 8,
    guard: 0,
    guard_size: 56,
};
/// Slots of it with capabilities from the beginning.
const NODE: u64 = 0;
const UNTYPED: u64 = 1;
const IRQ_CONTROL: u64 = 2;
const ASID_CONTROL: u64 = 3;
/// What the untyped memory is.
const MEMORY: u64 = 0x20_0000;
const MEMORY_BITS: u8 = 20;
const ALL_RIGHTS: u64 = 15;

fn slot(i: u64) -> SlotId {
    SlotId::CNode(CNodeId(0x1000), i)
}

/// Untyped memory with an old word in it, and controls.
fn boot() -> State {
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
fn call(s: &mut State, target: u64, label: u64, words: &[u64], extra: &[u64]) -> Result<(), Error> {
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
fn retype(
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

fn delete(s: &mut State, i: u64) {
    let done = call(s, NODE, invocation::CNODE_DELETE, &[i, 64], &[]);
    assert_eq!(done, Ok(()));
}

fn revoke(s: &mut State, i: u64) {
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

/// A root table in slot 30 with an identifier, tables down to a page table in 31 to 33, and two frames
/// in 40 and 41.
fn address_space(s: &mut State) {
    let make = |s: &mut State, kind, to, number| retype(s, UNTYPED, kind, 0, to, number).unwrap();
    retype(s, UNTYPED, object::UNTYPED, 12, 50, 1).unwrap();
    make(s, kind::PML4, 30, 1);
    make(s, kind::PDPT, 31, 1);
    make(s, kind::PAGE_DIRECTORY, 32, 1);
    make(s, kind::PAGE_TABLE, 33, 1);
    make(s, kind::PAGE, 40, 2);
    let label = x86_64::ASID_CONTROL_MAKE_POOL;
    call(s, ASID_CONTROL, label, &[51, 64], &[50, NODE]).unwrap();
    call(s, 51, x86_64::ASID_POOL_ASSIGN, &[], &[30]).unwrap();
    let labels = [
        x86_64::PDPT_MAP,
        x86_64::PAGE_DIRECTORY_MAP,
        x86_64::PAGE_TABLE_MAP,
    ];
    for (table, label) in (31..).zip(labels) {
        call(s, table, label, &[0x1000, 0], &[30]).unwrap();
    }
}

fn map(s: &mut State, frame: u64, vaddr: u64) -> Result<(), Error> {
    let words = [vaddr, ALL_RIGHTS, 0];
    call(s, frame, x86_64::PAGE_MAP, &words, &[30])
}

/// The entries of the last table.
fn entries(s: &State) -> Vec<(u16, Entry)> {
    let Some(Cap::Paging { object, .. }) = get(s, slot(33)) else {
        panic!("there is a page table in slot 33");
    };
    let entries = s.tables[&object].entries.iter();
    entries.map(|(i, entry)| (*i, *entry)).collect()
}

/// 07, section 8: the number 0 is no identifier. 03, section 8.3: a mapping that was overwritten is
/// not the first frame's any more.
#[test]
fn a_frame_is_unmapped_where_it_still_is() {
    let mut s = boot();
    address_space(&mut s);
    map(&mut s, 40, 0x3000).unwrap();
    map(&mut s, 41, 0x3000).unwrap();
    let Some(Cap::Frame { start, mapping, .. }) = get(&s, slot(41)) else {
        panic!("there is a frame in slot 41");
    };
    let (asid, vaddr) = (1, 0x3000);
    assert_eq!(mapping, Some(Mapping { asid, vaddr }));
    let rights = FrameRights::ReadWrite;
    let page = Entry::Page {
        start,
        rights,
        attributes: 0,
    };
    delete(&mut s, 40);
    assert_eq!(entries(&s), [(3, page)]);
    delete(&mut s, 41);
    assert_eq!(entries(&s), []);
}

/// 03, section 8.3: what is missing is named by what its table would cover.
#[test]
fn missing_tables_are_named() {
    let mut s = boot();
    address_space(&mut s);
    let missing = |bits_left| {
        let failure = LookupFailure::MissingCapability { bits_left };
        Err(Error::FailedLookup {
            is_source: false,
            failure,
        })
    };
    assert_eq!(map(&mut s, 40, 1 << 39), missing(39));
    assert_eq!(map(&mut s, 40, 1 << 30), missing(30));
    assert_eq!(map(&mut s, 40, 1 << 21), missing(21));
    assert_eq!(map(&mut s, 40, 0x1001), Err(Error::Alignment));
    assert_eq!(
        map(&mut s, 40, 0x7fff_ffff_f000),
        Err(Error::InvalidArgument(0))
    );
}

/// 07, section 8: without its pool an address space translates nothing, and what was mapped there
/// goes silently.
#[test]
fn without_its_pool_an_address_space_is_gone() {
    let mut s = boot();
    address_space(&mut s);
    map(&mut s, 40, 0x3000).unwrap();
    delete(&mut s, 51);
    let failure = LookupFailure::InvalidRoot;
    let gone = Error::FailedLookup {
        is_source: false,
        failure,
    };
    assert_eq!(map(&mut s, 41, 0x4000), Err(gone));
    assert_eq!(call(&mut s, 40, x86_64::PAGE_UNMAP, &[], &[]), Ok(()));
    assert_eq!(entries(&s).len(), 1, "no walk leads to the entry");
}

/// 03, sections 7.2 and 7.6; 02, section 7.1: the last handler masks its pin, and the interrupt can be
/// issued again.
#[test]
fn an_interrupt_is_free_without_its_handler() {
    let mut s = boot();
    let issue = |s: &mut State| {
        let words = [10, 64, 0, 5, 1, 0, 7];
        let label = x86_64::IRQ_CONTROL_GET_IOAPIC;
        call(s, IRQ_CONTROL, label, &words, &[NODE])
    };
    issue(&mut s).unwrap();
    assert_eq!(issue(&mut s), Err(Error::RevokeFirst));
    assert!(!s.devices.masked.contains(&(0, 5)));
    revoke(&mut s, IRQ_CONTROL);
    assert!(s.irqs.is_empty() && s.devices.masked.contains(&(0, 5)));
    issue(&mut s).unwrap();
    assert_eq!(s.devices.routes[&(0, 5)], 7 + 16);
}
