//! Invocations that are refused, for every kind of object a few: the checks of ABI page 03, one by one.

use alloc::vec::Vec;

use sandglass::abi::error::ErrorNumber::{self, *};
use sandglass::abi::invocation::{self as label, x86_64 as x86};
use sandglass::abi::object;
use sandglass::boot;
use sandglass::cap::{CPtr, Capability};

use super::{Scene, MAPPED, UNTYPED_BITS};
use crate::fixture::Fixture;

/// A refused invocation: what it is, capability, label, words, extra capabilities, and the error
/// with its words.
pub type Case = (
    &'static str,
    CPtr,
    u64,
    Vec<u64>,
    Vec<CPtr>,
    ErrorNumber,
    Vec<u64>,
);

/// All of them.
pub fn all(fixture: &Fixture, scene: &Scene) -> Vec<Case> {
    [
        untyped_cases(scene),
        cnode_cases(scene),
        tcb_cases(scene),
        sched_cases(fixture, scene),
        memory_cases(scene),
    ]
    .concat()
}

fn untyped_cases(s: &Scene) -> Vec<Case> {
    let (cap, root) = (s.untyped.cptr(), s.cnode.cptr());
    let retype = |what, words: [u64; 6], error, details: &[u64]| -> Case {
        let label = label::UNTYPED_RETYPE;
        (
            what,
            cap,
            label,
            words.to_vec(),
            alloc::vec![root],
            error,
            details.to_vec(),
        )
    };
    let endpoint = object::ENDPOINT;
    let untyped = object::UNTYPED;
    alloc::vec![
        (
            "no root",
            cap,
            label::UNTYPED_RETYPE,
            alloc::vec![endpoint, 0, 0, 0, 4, 1],
            alloc::vec![],
            TruncatedMessage,
            alloc::vec![]
        ),
        retype("type", [14, 0, 0, 0, 4, 1], InvalidArgument, &[0]),
        retype("size", [untyped, 64, 0, 0, 4, 1], RangeError, &[0, 47]),
        retype("small", [untyped, 3, 0, 0, 4, 1], InvalidArgument, &[1]),
        retype("offset", [endpoint, 0, 0, 0, 16, 1], RangeError, &[0, 15]),
        retype("none", [endpoint, 0, 0, 0, 4, 0], RangeError, &[1, 256]),
        retype("window", [endpoint, 0, 0, 0, 4, 13], RangeError, &[1, 12]),
        retype("occupied", [endpoint, 0, 0, 0, 0, 2], DeleteFirst, &[]),
        retype(
            "lookup",
            [endpoint, 0, 2, 4, 4, 1],
            FailedLookup,
            &[0, 2, 4]
        ),
        retype(
            "memory",
            [object::x86_64::LARGE_PAGE, 0, 0, 0, 4, 1],
            NotEnoughMemory,
            &[LEFT]
        ),
    ]
}

/// Bytes of the scene's untyped behind its first page.
const LEFT: u64 = (1 << UNTYPED_BITS) - 4096;

fn cnode_cases(s: &Scene) -> Vec<Case> {
    let root = s.cnode.cptr();
    let case = |what, label, words: &[u64], error, details: &[u64]| -> Case {
        (
            what,
            root,
            label,
            words.to_vec(),
            alloc::vec![root],
            error,
            details.to_vec(),
        )
    };
    let missing = 2;
    alloc::vec![
        case(
            "copy over",
            label::CNODE_COPY,
            &[1, 4, 0, 4, 15],
            DeleteFirst,
            &[]
        ),
        case(
            "copy of nothing",
            label::CNODE_COPY,
            &[4, 4, 5, 4, 15],
            FailedLookup,
            &[1, missing, 4]
        ),
        case(
            "copy, depth 0",
            label::CNODE_COPY,
            &[4, 0, 0, 4, 15],
            RangeError,
            &[1, 64]
        ),
        case(
            "copy, depth 5",
            label::CNODE_COPY,
            &[0, 5, 0, 4, 15],
            FailedLookup,
            &[0, 3, 1, 0]
        ),
        case(
            "copy, short",
            label::CNODE_COPY,
            &[4, 4, 0, 4],
            TruncatedMessage,
            &[]
        ),
        case(
            "mint of a badged capability",
            label::CNODE_MINT,
            &[4, 4, 0, 4, 15, 9],
            IllegalOperation,
            &[]
        ),
        case(
            "move over",
            label::CNODE_MOVE,
            &[1, 4, 0, 4],
            DeleteFirst,
            &[]
        ),
        case(
            "mutate",
            label::CNODE_MUTATE,
            &[4, 4, 0, 4, 0],
            IllegalOperation,
            &[]
        ),
        case(
            "cancel on a frame",
            label::CNODE_CANCEL_BADGED_SENDS,
            &[1, 4],
            IllegalOperation,
            &[]
        ),
        case("no such operation", 99, &[0, 4], IllegalOperation, &[]),
    ]
}

fn tcb_cases(s: &Scene) -> Vec<Case> {
    let tcb = s.tcb.cptr();
    let case = |what, label, words: &[u64], caps: &[CPtr], error, details: &[u64]| -> Case {
        (
            what,
            tcb,
            label,
            words.to_vec(),
            caps.to_vec(),
            error,
            details.to_vec(),
        )
    };
    let (cnode, vspace, null) = (s.cnode.cptr(), boot::VSPACE.cptr(), s.null);
    alloc::vec![
        case(
            "priority",
            label::TCB_SET_PRIORITY,
            &[7],
            &[tcb],
            RangeError,
            &[0, 0]
        ),
        case(
            "priority, authority",
            label::TCB_SET_PRIORITY,
            &[7],
            &[cnode],
            InvalidCapability,
            &[1]
        ),
        case(
            "parameters, context",
            label::TCB_SET_SCHED_PARAMS,
            &[0, 7],
            &[boot::TCB.cptr(), boot::SCHED_CONTEXT.cptr(), null],
            IllegalOperation,
            &[]
        ),
        case(
            "parameters, handler",
            label::TCB_SET_SCHED_PARAMS,
            &[0, 7],
            &[boot::TCB.cptr(), s.context.cptr(), cnode],
            InvalidCapability,
            &[3]
        ),
        case(
            "configure, space",
            label::TCB_CONFIGURE,
            &[0, 0, 0],
            &[null, vspace, null],
            IllegalOperation,
            &[]
        ),
        case(
            "configure, buffer",
            label::TCB_CONFIGURE,
            &[0, 0, 0x1001],
            &[cnode, vspace, s.frame.cptr()],
            AlignmentError,
            &[]
        ),
        case(
            "write, short",
            label::TCB_WRITE_REGISTERS,
            &[0, 3, 1, 2],
            &[],
            TruncatedMessage,
            &[]
        ),
        case(
            "read, none",
            label::TCB_READ_REGISTERS,
            &[1, 0],
            &[],
            RangeError,
            &[1, 20]
        ),
        case(
            "copy of no thread",
            label::TCB_COPY_REGISTERS,
            &[15],
            &[cnode],
            InvalidCapability,
            &[1]
        ),
        case(
            "bind nothing",
            label::TCB_BIND_NOTIFICATION,
            &[],
            &[cnode],
            IllegalOperation,
            &[]
        ),
        case(
            "unbind",
            label::TCB_UNBIND_NOTIFICATION,
            &[],
            &[],
            IllegalOperation,
            &[]
        ),
        case(
            "flags, short",
            label::TCB_SET_FLAGS,
            &[0],
            &[],
            TruncatedMessage,
            &[]
        ),
    ]
}

fn sched_cases(fixture: &Fixture, s: &Scene) -> Vec<Case> {
    let control = fixture.control.cptr();
    let context = s.context.cptr();
    let mhz = u64::from(fixture.tsc.mhz());
    let max = u64::MAX / mhz / 8;
    let configure = |what, words: [u64; 5], error, details: &[u64]| -> Case {
        let label = label::SCHED_CONTROL_CONFIGURE_FLAGS;
        (
            what,
            control,
            label,
            words.to_vec(),
            alloc::vec![context],
            error,
            details.to_vec(),
        )
    };
    let on_context = |what, label, cap, error, details: &[u64]| -> Case {
        (
            what,
            context,
            label,
            alloc::vec![],
            alloc::vec![cap],
            error,
            details.to_vec(),
        )
    };
    alloc::vec![
        configure("budget", [19, 100, 0, 0, 0], RangeError, &[20, max]),
        configure("period", [20, max + 1, 0, 0, 0], RangeError, &[20, max]),
        configure(
            "budget above period",
            [101, 100, 0, 0, 0],
            RangeError,
            &[20, 100]
        ),
        configure("refills", [20, 100, 1, 0, 0], RangeError, &[0, 0]),
        on_context(
            "bind twice",
            label::SCHED_CONTEXT_BIND,
            s.other.cptr(),
            IllegalOperation,
            &[]
        ),
        on_context(
            "bind nothing",
            label::SCHED_CONTEXT_BIND,
            s.null,
            InvalidCapability,
            &[1]
        ),
        on_context(
            "unbind another",
            label::SCHED_CONTEXT_UNBIND_OBJECT,
            s.other.cptr(),
            IllegalOperation,
            &[]
        ),
    ]
}

fn memory_cases(s: &Scene) -> Vec<Case> {
    let map = |what, cap, words: &[u64], root, error, details: &[u64]| -> Case {
        (
            what,
            cap,
            x86::PAGE_MAP,
            words.to_vec(),
            alloc::vec![root],
            error,
            details.to_vec(),
        )
    };
    let (frame, root) = (s.frame.cptr(), boot::VSPACE.cptr());
    alloc::vec![
        map(
            "map elsewhere",
            frame,
            &[MAPPED + 4096, 3, 0],
            root,
            InvalidArgument,
            &[0]
        ),
        map(
            "map into nothing",
            frame,
            &[MAPPED, 3, 0],
            s.null,
            InvalidCapability,
            &[1]
        ),
        map(
            "map, short",
            frame,
            &[MAPPED, 0],
            root,
            TruncatedMessage,
            &[]
        ),
        (
            "invoke nothing",
            s.null,
            1,
            alloc::vec![],
            alloc::vec![],
            InvalidCapability,
            alloc::vec![0]
        ),
        (
            "configure from no untyped",
            boot::ASID_CONTROL.cptr(),
            x86::ASID_CONTROL_MAKE_POOL,
            alloc::vec![4, 4],
            alloc::vec![s.endpoint.cptr(), s.cnode.cptr()],
            InvalidCapability,
            alloc::vec![1]
        ),
    ]
}
