//! 02, sections 5.1, 5.2, 7.1 and 10 for I/O ports and the control over them.

use sandglass::cap::{IoPort, IoPortControl};
use sandglass::{exit, serial};

use crate::page02::support::{alive, delete, kind_of, operation, revoke, Kind};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "02/5.2/port-control-is-the-parent-of-all-ports",
        port_control_parent,
    ),
    check("02/5.1/ports-follow-their-control", ports_follow_control),
    check("02/7.1/a-deleted-port-range-is-free", port_ranges),
    check("02/10/port-control-moves", port_control_moves),
];

/// Ports that no device listens to.
fn io_ports(f: &mut Fixture, first: u16, last: u16) -> Result<CPtr, Failure> {
    let slot = f.empty_slot()?;
    boot::IO_PORT_CONTROL.issue(first, last, slot)?;
    Ok(slot.capability())
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

/// As handlers.
fn ports_follow_control(f: &mut Fixture) -> TestResult {
    let ports = io_ports(f, 0x5180, 0x5187)?;
    let first = f.copy(ports)?;
    let second = f.copy(first)?;
    let caps = [ports, first, second];
    revoke(f, first)?;
    ensure_eq!(alive(f, caps)?, [true; 3]);
    revoke(f, ports)?;
    ensure_eq!(alive(f, caps)?, [true, false, false]);
    Ok(())
}

fn port_ranges(f: &mut Fixture) -> TestResult {
    let ports = io_ports(f, 0x5100, 0x5107)?;
    let issue = |f: &mut Fixture, first: u64, last: u64| {
        let slot = f.empty_slot()?;
        let words = [first, last, slot.index(), 64];
        let caps = [boot::CNODE.cptr()];
        let label = arch_label::IO_PORT_CONTROL_ISSUE;
        Ok::<_, SetupError>(Invocation::new(boot::IO_PORT_CONTROL, label, &words, &caps))
    };
    let copy = f.copy(ports)?;
    delete(f, ports)?;
    for (first, last) in [(0x5100, 0x5107), (0x5107, 0x5107), (0x50f0, 0x5100)] {
        issue(f, first, last)?.expect_error(RevokeFirst, &[])?;
    }
    delete(f, copy)?;
    for (first, last) in [(0x5107, 0x5107), (0x50f0, 0x5100), (0x5101, 0x5106)] {
        issue(f, first, last)?.expect_ok(&[])?;
    }
    Ok(())
}

fn port_control_moves(f: &mut Fixture) -> TestResult {
    let (home, away) = (f.slot_of(boot::IO_PORT_CONTROL), f.empty_slot()?);
    away.move_from(home)?;
    let moved: IoPortControl = away.capability();
    let (ports, gone) = (f.empty_slot()?, f.is_empty(home)?);
    let issued = moved.issue(0x5200, 0x5203, ports);
    let copied = operation(label::CNODE_COPY, f.empty_slot()?, away, &[15]).call();
    home.move_from(away)?;
    issued?;
    ensure_eq!((gone, copied.label), (true, IllegalOperation as u64));
    ensure_eq!(kind_of(f, ports.capability::<CPtr>())?, Kind::IoPort);
    Ok(())
}
