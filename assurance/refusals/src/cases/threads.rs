//! Threads (ABI 03, section 4).

use alloc::vec;
use alloc::vec::Vec;

use sandglass_abi::boot::slot;
use sandglass_abi::invocation::*;

use crate::case::{
    call, capability, range, Call, Case, ALIGNMENT, ILLEGAL, REVOKE_FIRST, TRUNCATED,
};
use crate::isa;
use crate::scene::Scene;

/// The user context has so many registers (ABI 07, section 1.1).
const REGISTERS: u64 = isa::REGISTERS as u64;

/// All.
pub fn cases(s: &Scene) -> Vec<Case> {
    let mut cases = Vec::new();
    registers(s, &mut cases);
    priorities(s, &mut cases);
    sched_params(s, &mut cases);
    notifications(s, &mut cases);
    buffers(s, &mut cases);
    roots(s, &mut cases);
    handlers(s, &mut cases);
    for label in [TCB_SET_TLS_BASE, TCB_SET_FLAGS] {
        let words: &[u64] = if label == TCB_SET_FLAGS {
            &[0, 0]
        } else {
            &[0]
        };
        cases.extend(call(label, s.thread, words, &[]).truncated());
    }
    cases
}

fn registers(s: &Scene, cases: &mut Vec<Case>) {
    let read = call(TCB_READ_REGISTERS, s.thread, &[1, REGISTERS], &[]);
    cases.extend(read.truncated());
    let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
    for count in [0, REGISTERS + 1, u64::MAX] {
        let read = read.clone().word(1, count);
        case(read, "number of registers", range(1, REGISTERS));
    }
    case(read.of(s.caller.tcb), "itself", ILLEGAL);
    for words in [&[][..], &[1]] {
        let write = call(TCB_WRITE_REGISTERS, s.thread, words, &[]);
        case(write, "too few words", TRUNCATED);
    }
    for (said, sent) in [(1, 0), (20, 19), (21, 20), (u64::MAX, 20)] {
        let mut words = vec![1, said];
        words.resize(2 + sent, 0);
        let write = call(TCB_WRITE_REGISTERS, s.thread, &words, &[]);
        case(write, "fewer registers than said", TRUNCATED);
    }
    let write = call(TCB_WRITE_REGISTERS, s.caller.tcb, &[1, 1, 0], &[]);
    case(write, "itself", ILLEGAL);
    // Suspends the source, resumes the target, transfers everything.
    let copy = call(TCB_COPY_REGISTERS, s.thread, &[0b1111], &[s.served.tcb]);
    for other in [s.empty, s.endpoint, s.node] {
        let copy = copy.clone().cap(0, other);
        case(copy, "source: no thread", capability(1));
    }
    cases.extend(copy.truncated());
}

fn priorities(s: &Scene, cases: &mut Vec<Case>) {
    for label in [TCB_SET_PRIORITY, TCB_SET_MC_PRIORITY] {
        let valid = call(label, s.served.tcb, &[7], &[s.thread]);
        cases.extend(valid.truncated());
        for other in [s.empty, s.endpoint, s.context] {
            let other = valid.clone().cap(0, other);
            cases.push(other.fails("authority: no thread", capability(1)));
        }
        for priority in [8, 255, 256, u64::MAX] {
            let high = valid.clone().word(0, priority);
            cases.push(high.fails("above the authority", range(0, 7)));
        }
        let high = valid.clone().word(0, 101).cap(0, s.caller.tcb);
        cases.push(high.fails("above the authority", range(0, 100)));
    }
}

fn sched_params(s: &Scene, cases: &mut Vec<Case>) {
    let label = TCB_SET_SCHED_PARAMS;
    let valid = call(
        label,
        s.thread,
        &[1, 1],
        &[s.caller.tcb, s.context, s.endpoint],
    );
    cases.extend(valid.truncated());
    let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
    for other in [s.empty, s.endpoint] {
        let other = valid.clone().cap(0, other);
        case(other, "authority: no thread", capability(1));
    }
    let weak = valid.clone().cap(0, s.thread);
    let limit = weak.clone().word(0, 8);
    case(limit, "limit above the authority", range(0, 7));
    let priority = weak.word(1, u64::MAX);
    case(priority, "priority above the authority", range(0, 7));
    let has_one = valid.clone().of(s.served.tcb);
    case(has_one, "context: the thread has another", ILLEGAL);
    let of_another = valid.clone().cap(1, s.served.context);
    case(of_another, "context: of another thread", ILLEGAL);
    let blocked = valid.clone().of(s.blocked);
    case(blocked, "context: blocked, and it is not released", ILLEGAL);
    let itself = valid.clone().of(s.caller.tcb).cap(1, s.empty);
    case(itself, "context: none for itself", ILLEGAL);
    for other in [s.endpoint, s.thread, s.node] {
        let other = valid.clone().cap(1, other);
        case(other, "context: another capability", capability(2));
    }
    for handler in bad_handlers(s) {
        let handler = valid.clone().cap(2, handler);
        case(handler, "fault handler", capability(3));
    }
}

/// No endpoint, or without the rights (ABI 05, section 5).
fn bad_handlers(s: &Scene) -> [u64; 4] {
    [s.notification, s.node, s.receive_endpoint, s.write_endpoint]
}

fn notifications(s: &Scene, cases: &mut Vec<Case>) {
    let bind = call(TCB_BIND_NOTIFICATION, s.thread, &[], &[s.notification]);
    cases.extend(bind.truncated());
    let mut case = |call: Call, check: &str| cases.push(call.fails(check, ILLEGAL));
    case(bind.clone().of(s.served.tcb), "the thread has one");
    for other in [s.empty, s.endpoint, s.context] {
        case(bind.clone().cap(0, other), "no notification");
    }
    let weak = bind.clone().cap(0, s.write_notification);
    case(weak, "no right to read");
    let waited = bind.clone().cap(0, s.waited_notification);
    case(waited, "somebody waits");
    let bound = bind.cap(0, s.bound_notification);
    case(bound, "of another thread");
    let unbind = call(TCB_UNBIND_NOTIFICATION, s.thread, &[], &[]);
    case(unbind, "none is bound");
}

fn buffers(s: &Scene, cases: &mut Vec<Case>) {
    // (a valid call, the word with the address, the capability of the frame)
    let set = call(TCB_SET_IPC_BUFFER, s.thread, &[0x7000_0400], &[s.frame]);
    let words = [0, 0, 0x7000_0400];
    let caps = [slot::CNODE, s.space, s.frame];
    let configure = call(TCB_CONFIGURE, s.thread, &words, &caps);
    for (valid, word, cap) in [(set, 0, 0), (configure, 2, 2)] {
        cases.extend(valid.truncated());
        let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
        case(
            valid.clone().cap(cap, s.parent),
            "buffer: derive",
            REVOKE_FIRST,
        );
        for table in [s.free_tables[2], s.unassigned_space] {
            case(valid.clone().cap(cap, table), "buffer: derive", ILLEGAL);
        }
        for other in [s.empty, s.endpoint, slot::IRQ_CONTROL, s.tables[2]] {
            case(valid.clone().cap(cap, other), "buffer: no frame", ILLEGAL);
        }
        let device = valid.clone().cap(cap, s.device_frame);
        case(device, "buffer: device", ILLEGAL);
        for address in [1, 0x7000_0200, 0x7000_0401, u64::MAX] {
            let address = valid.clone().word(word, address);
            case(address, "buffer: alignment", ALIGNMENT);
        }
    }
}

fn roots(s: &Scene, cases: &mut Vec<Case>) {
    // (a valid call, the capability of the CNode, behind which is that of the root table)
    let caps = [slot::CNODE, s.space, s.frame];
    let configure = call(TCB_CONFIGURE, s.thread, &[0, 0, 0x7000_0400], &caps);
    let caps = [s.endpoint, slot::CNODE, s.space];
    let set = call(TCB_SET_SPACE, s.thread, &[0, 0], &caps);
    cases.extend(set.truncated());
    for (valid, cnode) in [(configure, 0), (set, 1)] {
        let space = cnode + 1;
        let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
        let sole = valid.clone().of(s.sole_owner);
        case(sole, "its space would be deleted", ILLEGAL);
        let guard = valid.clone().word(0, 63);
        case(guard, "capability space: guard too large", ILLEGAL);
        let children = valid.clone().cap(cnode, s.parent);
        case(children, "capability space: derive", REVOKE_FIRST);
        for other in [s.empty, s.endpoint, s.space, slot::IRQ_CONTROL] {
            let other = valid.clone().cap(cnode, other);
            case(other, "capability space: no CNode", ILLEGAL);
        }
        // Data other than 0 for what has a badge.
        for badged in [s.badged_endpoint, s.badged_notification] {
            let badged = valid.clone().word(1, 9).cap(space, badged);
            case(badged, "address space: update", ILLEGAL);
        }
        let children = valid.clone().cap(space, s.parent);
        case(children, "address space: derive", REVOKE_FIRST);
        let unassigned = valid.clone().cap(space, s.unassigned_space);
        case(unassigned, "address space: no identifier", ILLEGAL);
        for other in [s.empty, s.endpoint, s.node, s.tables[2], s.frame] {
            let other = valid.clone().cap(space, other);
            case(other, "address space: no root table", ILLEGAL);
        }
    }
}

fn handlers(s: &Scene, cases: &mut Vec<Case>) {
    let caps = [s.endpoint, slot::CNODE, s.space];
    let set = call(TCB_SET_SPACE, s.thread, &[0, 0], &caps);
    let timeout = call(TCB_SET_TIMEOUT_ENDPOINT, s.thread, &[], &[s.endpoint]);
    cases.extend(timeout.truncated());
    for handler in bad_handlers(s) {
        let set = set.clone().cap(0, handler);
        cases.push(set.fails("fault handler", capability(1)));
        let timeout = timeout.clone().cap(0, handler);
        cases.push(timeout.fails("timeout handler", capability(1)));
    }
}
