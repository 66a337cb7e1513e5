//! 02, section 5 for the capabilities of the boot: the lists that they begin.

use sandglass::cap::IoPort;
use sandglass::{exit, serial};

use super::support::{alive, io_ports, revoke};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("02/5.1/boot-capabilities-stand-alone", stand_alone),
    check(
        "02/5.2/port-control-is-the-parent-of-all-ports",
        port_control_parent,
    ),
];

fn stand_alone(f: &mut Fixture) -> TestResult {
    let info = *f.boot.raw();
    let (frames, tables) = (info.user_image_frames, info.user_image_paging);
    // Frames of one image and tables of one address space are nobody's children. The buffer's
    // frame and the VSpace are parents of what threads have.
    let caps = [
        boot::ASID_POOL.cptr(),
        CPtr::new(9),
        CPtr::new(tables.start),
        CPtr::new(tables.start + 1),
        CPtr::new(tables.end - 1),
        CPtr::new(info.extra_bi_pages.start),
        CPtr::new(frames.start),
        CPtr::new(frames.start + 1),
        CPtr::new(frames.end - 1),
    ];
    for cap in caps {
        revoke(f, cap)?;
        ensure_eq!(alive(f, caps)?, [true; 9]);
    }
    Ok(())
}

/// The slots in which the harness has its console's and its exit's ports.
fn harness_ports(f: &mut Fixture) -> Result<Vec<(Slot, u16, u16)>, Failure> {
    let (first, end) = (f.boot.empty_slots().start, f.empty_slot()?.index());
    let mut found = Vec::new();
    for index in first..end {
        let input = Invocation::new(CPtr::new(index), arch_label::IO_PORT_IN8, &[], &[]);
        // Endpoints, notifications and replies are not invoked: only the first slots are ports'.
        if found.len() == 2 {
            break;
        }
        if input.call().label != TruncatedMessage as u64 {
            continue;
        }
        let line_status = serial::COM1_FIRST + 5;
        let (from, to) = match IoPort::at(index).in8(line_status) {
            Ok(_) => (serial::COM1_FIRST, serial::COM1_FIRST + serial::PORTS - 1),
            Err(_) => (exit::DEBUG_EXIT_PORT, exit::DEBUG_EXIT_PORT),
        };
        found.push((boot::CNODE.slot(index), from, to));
    }
    ensure_eq!(found.len(), 2);
    Ok(found)
}

fn port_control_parent(f: &mut Fixture) -> TestResult {
    let harness = harness_ports(f)?;
    let (one, two) = (io_ports(f, 0x5300, 0x5307)?, io_ports(f, 0x5308, 0x5308)?);
    let copy = f.copy(one)?;
    let revoked = f.slot_of(boot::IO_PORT_CONTROL).revoke();
    // Nothing is printed until the console has its ports again.
    let mut left = 0;
    for (slot, first, last) in harness {
        if boot::IO_PORT_CONTROL.issue(first, last, slot).is_err() {
            left += 1;
        }
    }
    revoked?;
    ensure_eq!(left, 0);
    let caps = [one, two, copy, boot::IO_PORT_CONTROL.cptr()];
    ensure_eq!(alive(f, caps)?, [false, false, false, true]);
    io_ports(f, 0x5300, 0x5308)?;
    Ok(())
}
