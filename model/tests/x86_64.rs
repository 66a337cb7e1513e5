//! What only x86_64 has, or has in another way.

use sandglass_abi::context::x86_64::{FS_BASE, RAX, RIP};
use sandglass_abi::fault::UNKNOWN_SYSCALL;
use sandglass_abi::invocation::x86_64;
use sandglass_abi::object;
use sandglass_abi::object::x86_64 as kind;
use sandglass_abi::syscall::Syscall;
use sandglass_model::cap::derivation::get;
use sandglass_model::error::Error;
use sandglass_model::event::Event;
use sandglass_model::isa::CAP_OR_BADGE;
use sandglass_model::state::{Cap, Entry, FrameRights, LookupFailure, Mapping, ThreadState};
use sandglass_model::State;

use crate::capabilities::{
    boot, call, delete, retype, revoke, slot, ALL_RIGHTS, ASID_CONTROL, IRQ_CONTROL, NODE, UNTYPED,
};
use crate::communication::{info, received};
use crate::scene::{Scene, ALL};

/// A fault is a message; the answer's label says whether the thread goes on, at the address that
/// the handler gave (05, sections 2, 3 and 6).
#[test]
fn a_fault_is_handled_by_an_answer() {
    for (label, end) in [(0, ThreadState::Running), (1, ThreadState::Inactive)] {
        let mut scene = Scene::new(2);
        scene.endpoint(1, 5, ALL);
        scene.reply(2);
        scene.fault_handler(0, 1);
        scene.run(1);
        scene.receive(Syscall::Recv, 1, 2);
        scene.passive(1);
        scene.run(0);
        scene.set(RAX, 0x0123_4567);
        scene.happens(Event::SoftwareInterrupt { vector: 0x9e });
        assert_eq!(scene.current(), Some(1));
        assert_eq!(received(&scene, 1), (5, UNKNOWN_SYSCALL, 19, 0x0123_4567));
        assert_eq!(scene.read_buffer(1, 1 + 18), 0xffff_ffff_9e23_4567);
        // The restart address of the answer is not canonical: sanitised.
        scene.buffer_word(1, 1 + 15, 1 << 47);
        scene.reply_and_receive(2, 1, info(label, 18), 77);
        assert_eq!(scene.thread(0).state, end);
        assert_eq!(scene.thread(0).registers.user[RAX], 77);
        assert_eq!(scene.thread(0).registers.user[RIP], 0);
        assert_eq!(scene.thread(0).fault, None);
    }
}

/// SetTLSBase ignores addresses that are not canonical (01, section 7).
#[test]
fn a_thread_sets_its_own_fs_base() {
    let mut scene = Scene::new(1);
    for (address, base) in [(0x1234, 0x1234), (1 << 47, 0x1234)] {
        scene.set(CAP_OR_BADGE, address);
        scene.syscall(Syscall::SetTLSBase);
        assert_eq!(scene.thread(0).registers.user[FS_BASE], base);
    }
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
