//! The tables of 02, sections 5.2 and 5.3, kind by kind.

use super::{same_object, same_region};
use crate::state::*;

const RIGHTS: Rights = Rights {
    write: true,
    read: true,
    grant: true,
    grant_reply: true,
    call: false,
};
const MAPPING: Option<Mapping> = Some(Mapping {
    asid: 1,
    vaddr: 0x1000,
});

fn untyped(start: Address, bits: u8) -> Cap {
    Cap::Untyped {
        start,
        bits,
        device: false,
        watermark: 0,
    }
}

fn endpoint(object: Address, badge: u64) -> Cap {
    Cap::Endpoint {
        object: EndpointId(object),
        badge,
        rights: RIGHTS,
    }
}

fn frame(start: Address, bits: u8, device: bool) -> Cap {
    let (rights, mapping) = (FrameRights::ReadOnly, None);
    Cap::Frame {
        start,
        bits,
        device,
        rights,
        mapping,
    }
}

fn table(level: Level, mapping: Option<Mapping>) -> Cap {
    Cap::Paging {
        object: TableId(0x4000),
        level,
        mapping,
    }
}

fn cnode(radix: u8, guard_size: u8) -> Cap {
    Cap::CNode {
        object: CNodeId(0x4000),
        radix,
        guard: 0,
        guard_size,
    }
}

fn context(bits: u8) -> Cap {
    Cap::SchedContext {
        object: ContextId(0x4000),
        bits,
    }
}

/// (a, b, whether b is of a's region, whether of the same object).
const fn row(a: Cap, b: Cap, region: bool, object: bool) -> (Cap, Cap, bool, bool) {
    (a, b, region, object)
}

fn check(rows: &[(Cap, Cap, bool, bool)]) {
    for (a, b, region, object) in rows {
        assert_eq!(same_region(*a, *b), *region, "region of {a:?} and {b:?}");
        assert_eq!(same_object(*a, *b), *object, "object of {a:?} and {b:?}");
    }
}

#[test]
fn untyped_memory_holds_what_lies_entirely_inside() {
    let outer = untyped(0x4000, 12);
    check(&[
        row(outer, untyped(0x4000, 12), true, false),
        row(outer, untyped(0x4ff0, 4), true, false),
        row(outer, untyped(0x5000, 4), false, false),
        row(untyped(0x4000, 11), outer, false, false),
        row(outer, endpoint(0x4010, 3), true, false),
        row(outer, endpoint(0x3ff0, 3), false, false),
        row(outer, frame(0x4000, 12, false), true, false),
        row(outer, frame(0x4000, 21, false), false, false),
        row(outer, Cap::Thread(ThreadId(0x4800)), true, false),
        row(outer, cnode(7, 0), true, false),
        row(outer, cnode(8, 0), false, false),
        row(outer, context(12), true, false),
        row(outer, table(Level::Pdpt, None), true, false),
        row(
            outer,
            Cap::AsidPool {
                object: PoolId(0x4000),
                number: 0,
            },
            true,
            false,
        ),
        row(outer, Cap::Domain, false, false),
        row(endpoint(0x4010, 3), outer, false, false),
    ]);
}

#[test]
fn objects_are_what_their_capabilities_name() {
    let notification = |object, badge| Cap::Notification {
        object: NotificationId(object),
        badge,
        rights: RIGHTS,
    };
    let reply = |object, can_grant| Cap::Reply {
        object: ReplyId(object),
        can_grant,
    };
    check(&[
        row(endpoint(0x4000, 0), endpoint(0x4000, 7), true, true),
        row(endpoint(0x4000, 0), endpoint(0x4010, 0), false, false),
        row(endpoint(0x4000, 0), notification(0x4000, 0), false, false),
        row(notification(0x4000, 0), notification(0x4000, 7), true, true),
        row(
            Cap::Thread(ThreadId(0x4000)),
            Cap::Thread(ThreadId(0x4000)),
            true,
            true,
        ),
        row(
            Cap::Thread(ThreadId(0x4000)),
            Cap::Thread(ThreadId(0x4800)),
            false,
            false,
        ),
        row(reply(0x4000, true), reply(0x4000, false), true, true),
        row(cnode(4, 0), cnode(4, 9), true, true),
        row(cnode(4, 0), cnode(5, 0), false, false),
        row(context(7), context(7), true, true),
        row(context(7), context(8), false, false),
    ]);
}

#[test]
fn frames_contain_frames_and_tables_only_themselves() {
    let pml4 = |asid| Cap::Root {
        object: TableId(0x4000),
        asid,
    };
    check(&[
        row(
            frame(0x20_0000, 21, false),
            frame(0x20_0000, 21, false),
            true,
            true,
        ),
        row(
            frame(0x20_0000, 21, false),
            frame(0x20_1000, 12, false),
            true,
            false,
        ),
        row(
            frame(0x20_1000, 12, false),
            frame(0x20_0000, 21, false),
            false,
            false,
        ),
        row(
            frame(0x1000, 12, false),
            frame(0x1000, 12, true),
            true,
            false,
        ),
        row(
            table(Level::Pdpt, None),
            table(Level::Pdpt, MAPPING),
            true,
            true,
        ),
        row(
            table(Level::Pdpt, None),
            table(Level::PageTable, None),
            false,
            false,
        ),
        row(pml4(None), pml4(Some(2)), true, true),
        row(pml4(None), table(Level::Pdpt, None), false, false),
    ]);
}

#[test]
fn controls_hold_what_they_issue() {
    let ports = |first, last| Cap::IoPort { first, last };
    let handler = |irq| Cap::IrqHandler { irq };
    let control = |core| Cap::SchedControl { core };
    check(&[
        row(Cap::IrqControl, handler(16), true, false),
        row(Cap::IrqControl, Cap::IrqControl, true, false),
        row(handler(16), handler(16), true, true),
        row(handler(16), handler(17), false, false),
        row(handler(16), Cap::IrqControl, false, false),
        row(Cap::IoPortControl, ports(1, 2), true, false),
        row(Cap::IoPortControl, Cap::IoPortControl, true, true),
        row(ports(1, 2), ports(1, 2), true, true),
        row(ports(1, 2), ports(1, 3), false, false),
        row(control(0), control(1), true, true),
        row(Cap::Domain, Cap::Domain, true, true),
        row(Cap::AsidControl, Cap::AsidControl, true, true),
        row(Cap::AsidControl, Cap::Domain, false, false),
    ]);
}
