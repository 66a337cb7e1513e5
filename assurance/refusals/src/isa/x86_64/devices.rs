//! Interrupts and ports (ABI 03, sections 7.1, 7.2, 8.6 and 8.7).

use alloc::vec::Vec;

use sandglass_abi::boot::slot;
use sandglass_abi::invocation::x86_64::*;
use sandglass_abi::invocation::IRQ_CONTROL_GET;

use crate::case::{argument, call, range, Call, Case, DELETE_FIRST, ILLEGAL, REVOKE_FIRST};
use crate::scene::Scene;

/// All.
pub fn cases(s: &Scene) -> Vec<Case> {
    let mut cases = Vec::new();
    lines(s, &mut cases);
    ports(s, &mut cases);
    accesses(s, &mut cases);
    cases
}

fn lines(s: &Scene, cases: &mut Vec<Case>) {
    let get = call(
        IRQ_CONTROL_GET,
        slot::IRQ_CONTROL,
        &[5, s.empty, 64],
        &[slot::CNODE],
    );
    cases.extend(get.truncated());
    cases.push(get.fails("not with an I/O APIC", ILLEGAL));
    for label in [IRQ_CONTROL_GET_IOAPIC, IRQ_CONTROL_GET_MSI] {
        let words = [s.empty, 64, 0, 5, 0, 0, 5];
        let valid = call(label, slot::IRQ_CONTROL, &words, &[slot::CNODE]);
        cases.extend(valid.truncated());
        cases.extend(
            s.lookups("destination", false, false, |root, index, depth| {
                valid.clone().cap(0, root).word(0, index).word(1, depth)
            }),
        );
        let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
        let occupied = valid.clone().word(0, s.endpoint);
        case(occupied, "destination: occupied", DELETE_FIRST);
        for vector in [108, u64::MAX] {
            case(valid.clone().word(6, vector), "vector", range(0, 107));
        }
        case(valid.clone().word(6, 3), "issued", REVOKE_FIRST);
        // (word, check, the largest)
        let limits: &[_] = if label == IRQ_CONTROL_GET_IOAPIC {
            &[
                (2, "I/O APIC", 0),
                (3, "pin", 23),
                (4, "level", 1),
                (5, "polarity", 1),
            ]
        } else {
            &[(2, "bus", 255), (3, "device", 31), (4, "function", 7)]
        };
        for &(word, check, last) in limits {
            for value in [last + 1, u64::MAX] {
                case(valid.clone().word(word, value), check, range(0, last));
            }
        }
    }
}

fn ports(s: &Scene, cases: &mut Vec<Case>) {
    let words = [0x200, 0x207, s.empty, 64];
    let valid = call(
        IO_PORT_CONTROL_ISSUE,
        slot::IO_PORT_CONTROL,
        &words,
        &[slot::CNODE],
    );
    cases.extend(valid.truncated());
    cases.extend(
        s.lookups("destination", false, false, |root, index, depth| {
            valid.clone().cap(0, root).word(2, index).word(3, depth)
        }),
    );
    let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
    case(
        valid.clone().word(1, 0x1ff),
        "last before first",
        argument(1),
    );
    // Only 16 bits count.
    case(
        valid.clone().word(1, 0x1_0000),
        "last before first",
        argument(1),
    );
    for (first, last) in [(0x100, 0x107), (0, 0xffff), (0x107, 0x107), (0xff, 0x100)] {
        let issued = valid.clone().word(0, first).word(1, last);
        case(issued, "issued", REVOKE_FIRST);
    }
    let occupied = valid.word(2, s.endpoint);
    case(occupied, "destination: occupied", DELETE_FIRST);
}

/// The capability is to ports 0x100 to 0x107.
fn accesses(s: &Scene, cases: &mut Vec<Case>) {
    for (reads, writes, bytes) in [
        (IO_PORT_IN8, IO_PORT_OUT8, 1),
        (IO_PORT_IN16, IO_PORT_OUT16, 2),
        (IO_PORT_IN32, IO_PORT_OUT32, 4),
    ] {
        for (label, words) in [(reads, &[0x100][..]), (writes, &[0x100, 0x55])] {
            let valid = call(label, s.device, words, &[]);
            cases.extend(valid.truncated());
            for port in [0xff, 0x108, 0x109 - bytes, 0xffff, 0x1_0108] {
                let outside = valid.clone().word(0, port);
                cases.push(outside.fails("out of range", ILLEGAL));
            }
        }
    }
}
